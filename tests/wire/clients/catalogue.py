"""All scenarios by name."""

import inspect
from collections.abc import Awaitable, Callable
from types import ModuleType

from queen import Queen

from tests.wire.clients import ack, admin, buffer, consume, cursor, dead_letter, pop, push, queue, transaction

Scenario = Callable[[Queen, str], Awaitable[None]]

MODULES = (queue, push, buffer, pop, consume, ack, transaction, dead_letter, cursor, admin)


def scenarios_of(module: ModuleType) -> dict[str, Scenario]:
    """The scenarios that a module defines."""
    return {
        name: function
        for name, function in inspect.getmembers(module, inspect.iscoroutinefunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }


SCENARIOS = {name: scenario for module in MODULES for name, scenario in scenarios_of(module).items()}
