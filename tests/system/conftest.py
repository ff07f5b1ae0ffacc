"""Tests that mostly wait for windows, and keep to streams of their own, wait side by side."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.system.system import System

AT_ONCE = 6
FOLDER = Path(__file__).parent


class Together:
    """Runs all selected tests marked `together`, a few at a time, as soon as the first one is called.

    Each test still reports for itself: its call waits for its own run, and raises its exception.
    """

    def __init__(self, items: list[pytest.Function], system: System) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="together")
        self._runs: dict[str, Future[Any]] = {
            item.nodeid: self._pool.submit(item.obj, system=system, **parameters(item)) for item in items
        }

    def result(self, item: pytest.Function) -> None:
        """Wait for the run of a test; its exception is raised here."""
        self._runs[item.nodeid].result()

    def close(self) -> None:
        """Wait for running tests, and cancel the others."""
        self._pool.shutdown(cancel_futures=True)


def parameters(item: pytest.Function) -> dict[str, Any]:
    """The arguments that a test gets from `parametrize`."""
    return dict(item.callspec.params) if hasattr(item, "callspec") else {}


def runs_together(item: pytest.Item) -> bool:
    """Whether a test is marked `together`; these tests have no fixture but `system`."""
    if item.get_closest_marker("together") is None:
        return False
    assert isinstance(item, pytest.Function)
    fixtures = set(item._fixtureinfo.argnames) - parameters(item).keys()
    assert fixtures == {"system"}, (
        f"{item.nodeid} cannot run concurrently with others: it uses {sorted(fixtures)}"
    )
    return True


@pytest.fixture(scope="session")
def together(running_system: System, request: pytest.FixtureRequest) -> Iterator[Together]:
    """The runs of all tests that are marked so."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    running = Together([item for item in items if runs_together(item)], running_system)
    yield running
    running.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Make a test that is marked `together` wait for its run."""
    if not runs_together(pyfuncitem):
        return None
    runs: Together = pyfuncitem._request.getfixturevalue("together")
    runs.result(pyfuncitem)
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run those tests first, so that nothing else runs at the same time, and kills last."""
    indexes = [index for index, item in enumerate(items) if item.path.parent == FOLDER]
    own = sorted(
        (items[index] for index in indexes),
        key=lambda item: (not runs_together(item), item.path.name == "test_kills.py"),
    )
    for index, item in zip(indexes, own, strict=True):
        items[index] = item
