"""Validated options of the data source `queen`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import NamedTuple

from ...settings import EncryptionKeys, Settings, decode_key, variable
from ...store.definitions import WINDOW_QUEUES
from ...store.names import name_fault
from ..errors import OptionError

READ_OPTIONS = ("url", "queue", "queues", "start", "maxRowsPerTrigger")
WRITE_OPTIONS = ("url", "queue", "name")
_OF_SPARK = ("path", "checkpointLocation", "queryName")  # given to every data source

EARLIEST = "earliest"
LATEST = "latest"


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """Read options: the queues, the start, and the batch size."""

    url: str = field(repr=False)
    encryption_key: EncryptionKeys | None = field(repr=False)
    queues: tuple[str, ...]
    start: str | datetime
    max_rows: int | None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Parse Spark's options; raises OptionError for an invalid one."""
        given = _known(options, READ_OPTIONS)
        settings = Settings.from_env()
        return cls(
            url=_url(given, settings),
            encryption_key=_key(settings),
            queues=_queues(given),
            start=_start(given.get("start", EARLIEST)),
            max_rows=_max_rows(given.get("maxrowspertrigger")),
        )


class Limits(NamedTuple):
    """Limits of one message."""

    most_bytes: int
    most_depth: int


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """Write options: the target, and the name under which a repeated write is recognised."""

    url: str = field(repr=False)
    encryption_key: EncryptionKeys | None = field(repr=False)
    queue: str
    name: str | None
    limits: Limits

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse Spark's options; raises OptionError for an invalid one."""
        given = _known(options, WRITE_OPTIONS)
        settings = Settings.from_env()
        queue = given.get("queue", "")
        if fault := name_fault(queue):
            raise OptionError(f"option queue {fault}: set it to the name of the queue to write to")
        if queue.startswith(WINDOW_QUEUES):
            raise OptionError(
                f"option queue is {queue!r}: names that begin with {WINDOW_QUEUES!r} belong to streams;"
                " choose another name"
            )
        return cls(
            url=_url(given, settings),
            encryption_key=_key(settings),
            queue=queue,
            name=given.get("name"),
            limits=Limits(settings.max_item_bytes, settings.max_json_depth),
        )


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the options by lower-case name; unknown ones are rejected."""
    by_lower = {name.lower(): name for name in (*names, *_OF_SPARK)}
    for name in options:
        if name.lower() not in by_lower:
            close = get_close_matches(name.lower(), by_lower, 1, cutoff=0.5)
            hint = f"did you mean {by_lower[close[0]]}?" if close else f"use one of {', '.join(names)}"
            raise OptionError(f"unknown option {name}: {hint}")
    return {name.lower(): value for name, value in options.items()}


def _url(given: Mapping[str, str], settings: Settings) -> str:
    url = given.get("url") or settings.database_url
    if not url:
        raise OptionError(
            f"option url is missing: set it to the URL of PostgreSQL, or set {variable('database_url')}"
        )
    return url


def _key(settings: Settings) -> EncryptionKeys | None:
    return decode_key(settings.encryption_key) if settings.encryption_key else None


def _queues(given: Mapping[str, str]) -> tuple[str, ...]:
    if ("queue" in given) == ("queues" in given):
        problem = "both options queue and queues are given" if "queue" in given else "option queue is missing"
        raise OptionError(f"{problem}: set queue to one name, or queues to several, separated by commas")
    names = [given["queue"]] if "queue" in given else [name.strip() for name in given["queues"].split(",")]
    for name in names:
        if fault := name_fault(name):
            raise OptionError(f"option {'queue' if 'queue' in given else 'queues'}: a name {fault}")
    return tuple(dict.fromkeys(names))


def _start(text: str) -> str | datetime:
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"option start is {text!r}: use {EARLIEST}, {LATEST} or a time such as 2026-05-01T12:00:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _max_rows(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"option maxRowsPerTrigger is {text!r}: use a whole number of at least 1")
    return int(text)
