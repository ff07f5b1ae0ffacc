"""The client: queues, streams, consumers, transactions and SQL over HTTP, asynchronous and synchronous.

`aio` is written by hand and `sync` is generated from it. All other modules use neither tasks nor threads.
The classes of both are loaded on first access: no program needs all of them, and commands need none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .aggregation import Groups
from .dead_letters import DeadLetter
from .duration import Duration
from .errors import (
    BufferFull,
    InDoubt,
    InvalidValue,
    LeaseLost,
    NotAllowed,
    NotFound,
    NotSent,
    QueenError,
    QueueFull,
    RateLimited,
    Refused,
    SqlError,
    TooLarge,
    TransactionRefused,
    Unavailable,
    Unreachable,
)
from .events import Event
from .messages import Message, Messages
from .outgoing import Outgoing, Pushed
from .sql_results import SqlColumn, SqlResult

if TYPE_CHECKING:
    from .aio.admin import AsyncAdmin
    from .aio.consumer import AsyncConsumer
    from .aio.message import AsyncBatch, AsyncLeasedMessage
    from .aio.queen import AsyncQueen
    from .aio.queue import AsyncQueue
    from .aio.sql import AsyncSqlResults
    from .aio.stream import AsyncStream
    from .aio.transaction import AsyncTransaction
    from .aio.window import AsyncWindow
    from .sync.admin import Admin
    from .sync.consumer import Consumer
    from .sync.message import Batch, LeasedMessage
    from .sync.queen import Queen
    from .sync.queue import Queue
    from .sync.sql import SqlResults
    from .sync.stream import Stream
    from .sync.transaction import Transaction
    from .sync.window import Window

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncBatch",
    "AsyncConsumer",
    "AsyncLeasedMessage",
    "AsyncQueen",
    "AsyncQueue",
    "AsyncSqlResults",
    "AsyncStream",
    "AsyncTransaction",
    "AsyncWindow",
    "Batch",
    "BufferFull",
    "Consumer",
    "DeadLetter",
    "Duration",
    "Event",
    "Groups",
    "InDoubt",
    "InvalidValue",
    "LeaseLost",
    "LeasedMessage",
    "Message",
    "Messages",
    "NotAllowed",
    "NotFound",
    "NotSent",
    "Outgoing",
    "Pushed",
    "Queen",
    "QueenError",
    "Queue",
    "QueueFull",
    "RateLimited",
    "Refused",
    "SqlColumn",
    "SqlError",
    "SqlResult",
    "SqlResults",
    "Stream",
    "TooLarge",
    "Transaction",
    "TransactionRefused",
    "Unavailable",
    "Unreachable",
    "Window",
]

_MODULES = {
    "Admin": "admin",
    "Batch": "message",
    "Consumer": "consumer",
    "LeasedMessage": "message",
    "Queen": "queen",
    "Queue": "queue",
    "SqlResults": "sql",
    "Stream": "stream",
    "Transaction": "transaction",
    "Window": "window",
}
"""The modules of the classes in `sync`; `aio` has the same."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name.removeprefix("Async"))
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"{__name__}.{'aio' if name.startswith('Async') else 'sync'}.{module}")
    return getattr(found, name)
