"""The time of a key's check does not depend on how much of a guess is right."""

import asyncio
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from queenspark.broker.access.gate import Gate
from queenspark.broker.access.known_keys import KnownKeys
from queenspark.broker.errors import ApiError
from queenspark.broker.http import Call, Right, Route
from queenspark.settings import Settings
from queenspark.store.api_keys import ApiKey, hash_of
from queenspark.store.store import Store
from tests.access.conftest import make_key

SECRET = "q" * 43


class Unequal(bytes):
    """Bytes that fail when they are compared or looked up by value, which takes longer the more is equal."""

    def _compared(self, *_: object) -> Any:
        raise AssertionError("compared by value")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = _compared
    __iter__ = __getitem__ = __contains__ = startswith = endswith = find = _compared


def test_hashes_of_one_length_are_compared_in_constant_time() -> None:
    now, hashed = datetime.now(UTC), Unequal(hash_of(SECRET))
    stored = ApiKey("id", "name", hashed, "admin", None, None, None, now, "test", None, None, None)
    assert stored.is_of(SECRET)
    for guess in (wrong_early(SECRET), wrong_late(SECRET), "", SECRET[:-1], SECRET * 20):
        assert not stored.is_of(guess)
        assert len(hash_of(guess)) == len(hashed) == 32


def test_a_known_credential_is_found_by_its_hash(database: str) -> None:
    _, text = make_key(database, role="admin")
    right = (b"x-api-key", Unequal(text.encode()))
    wrong = (b"x-api-key", Unequal(text[:-1].encode() + b"~"))

    async def admitted() -> None:
        store = Store(database, pool_size=2)
        await store.open()
        try:
            gate = Gate(Settings(access_control=True), store)
            for _ in range(3):  # the first one reads the database
                assert (await gate.admit(call(right), ROUTE)).name == "key"
                with pytest.raises(ApiError, match="not valid"):
                    await gate.admit(call(wrong), ROUTE)
            assert text not in str(vars(gate))
        finally:
            await store.close()

    asyncio.run(admitted())


async def _endpoint(*_: object) -> Any:
    raise AssertionError


ROUTE = Route("GET", "/", _endpoint, "", Right.KNOWN, {})


def call(header: tuple[bytes, bytes]) -> Call:
    """A request with this header."""
    scope = {"method": "GET", "path": "/", "headers": [header], "client": ("127.0.0.1", 1)}

    async def receive() -> Any:
        raise AssertionError

    return Call(scope, receive)


ROUNDS = 2000
ATTEMPTS = 5


def test_a_guess_takes_as_long_whether_its_first_or_its_last_character_is_wrong(database: str) -> None:
    _, text = make_key(database, role="admin")
    guesses = wrong_early(text), wrong_late(text)

    def leaking(guess: str) -> None:
        """A check that stops at the first difference, to compare with."""
        all(given == wanted for given, wanted in zip(guess, text, strict=True))

    async def differences() -> list[float]:
        store = Store(database, pool_size=2)
        await store.open()
        try:
            keys = KnownKeys(store.api_keys)

            def check(guess: str) -> None:
                try:
                    keys.check(guess).send(None)  # does not wait: the key is cached
                except ApiError:
                    return
                raise AssertionError("accepted, or not cached")

            found = []
            for _ in range(ATTEMPTS):
                await keys.check(text)
                found.append(difference(check, *guesses))
            return found
        finally:
            await store.close()

    # Other processes disturb single measurements: the median of many counts, and the best of a few medians.
    leak = max(difference(leaking, *guesses) for _ in range(ATTEMPTS))
    assert leak > 0, "the measurement shows no difference where there is one"
    assert min(map(abs, asyncio.run(differences()))) < leak / 4


def wrong_early(text: str) -> str:
    """A key with a wrong first character of the secret."""
    head, secret = text[: -len(SECRET)], text[-len(SECRET) :]
    return f"{head}~{secret[1:]}"


def wrong_late(text: str) -> str:
    """A key with a wrong last character."""
    return f"{text[:-1]}~"


def difference(check: Callable[[str], None], early: str, late: str) -> float:
    """Nanoseconds that the late guess takes longer: the median of many pairs, each guess first in half."""
    found = []
    for number in range(ROUNDS):
        took = {}
        for guess in (early, late) if number % 2 else (late, early):
            begun = time.perf_counter_ns()
            check(guess)
            took[guess] = time.perf_counter_ns() - begun
        found.append(took[late] - took[early])
    return statistics.median(found)
