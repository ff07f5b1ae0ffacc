"""Repeating an operation that failed."""

import pytest

from queenspark.retry import repeat

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio."""
    return "asyncio"


class Failing:
    """Raises the given errors, one for each call, then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


async def test_it_is_repeated_while_it_fails_for_a_reason_that_passes() -> None:
    assert await repeat(Failing(KeyError(), ValueError()), (KeyError, ValueError), (0, 0, 0)) == 3


async def test_another_error_ends_it() -> None:
    failing = Failing(KeyError(), ValueError())
    with pytest.raises(ValueError):  # noqa: PT011 - it has no message
        await repeat(failing, (KeyError,), (0, 0))
    assert failing.calls == 2


async def test_after_the_last_pause_its_error_comes_out() -> None:
    failing = Failing(KeyError("first"), KeyError("second"), KeyError("third"))
    with pytest.raises(KeyError, match="third"):
        await repeat(failing, (KeyError,), (0, 0))
