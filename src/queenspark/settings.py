"""All settings of Queenspark, with their defaults; each can be given as an environment variable.

A field `pool_size` is read from `QUEENSPARK_POOL_SIZE`. Options of the command line override the
environment. `docs/settings.md` lists the same settings for people.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

PREFIX = "QUEENSPARK_"
MIB = 1024 * 1024
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^/\s,A-Z]+")  # as browsers send it


class SettingsError(ValueError):
    """A setting has an unusable value; the message names the variable and says what to do."""


def _setting(
    default: Any, doc: str, *, at_least: float = 0, choices: tuple[str, ...] = (), secret: bool = False
) -> Any:
    """Declare one setting: its default, what it does, and which values it takes."""
    metadata = {"doc": doc, "at_least": at_least, "choices": choices}
    return field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set, as plain values."""

    database_url: str | None = _setting(
        None,
        "PostgreSQL to use, as a libpq URL; `queenspark up` starts its own when there is none",
        secret=True,
    )
    host: str = _setting("127.0.0.1", "address that the broker listens on")
    port: int = _setting(6632, "port that the broker listens on", at_least=1)
    data_dir: Path = _setting(
        Path("queenspark-data"), "folder of the embedded PostgreSQL and of the logs of `queenspark up`"
    )
    pool_size: int = _setting(16, "database connections of one broker", at_least=2)
    push_lanes: int = _setting(2, "gathered inserts that one broker runs at a time", at_least=1)
    max_body_bytes: int = _setting(64 * MIB, "largest request body", at_least=1024)
    max_item_bytes: int = _setting(8 * MIB, "largest payload of one message", at_least=1)
    max_batch: int = _setting(
        10_000, "most items of one push, messages of one pop and acknowledgments of one call", at_least=1
    )
    max_json_depth: int = _setting(64, "deepest nesting of JSON in a request", at_least=1)
    max_wait_seconds: float = _setting(60.0, "longest wait of a long poll, whatever the client asks for")
    cors_origins: tuple[str, ...] = _setting(
        (), "origins whose pages may use the API in a browser, separated by commas; `*` allows every origin"
    )
    encryption_key: str | None = _setting(
        None, "key for queues with `encryptionEnabled`: 32 bytes in base64", secret=True
    )
    look_seconds: float = _setting(
        1.0, "time between two looks, from which safe time is known", at_least=0.01
    )
    retention_interval_seconds: float = _setting(30.0, "time between two runs of retention", at_least=0.1)
    retention_batch: int = _setting(5000, "most messages that one statement of retention deletes", at_least=1)
    stream_hold_seconds: float = _setting(
        86400.0, "how much longer than its time retention keeps a message that a stream still needs"
    )
    stats_interval_seconds: float = _setting(
        10.0, "time between two rounds of counting lag and queue sizes", at_least=0.1
    )
    spark_master: str = _setting(
        "local[*]", "where Spark runs: on this machine's cores, or the URL of a cluster"
    )
    spark_properties: Path | None = _setting(
        None, "file with properties of Spark, in the form of `spark-defaults.conf`; they win over ours"
    )
    spark_driver_memory: str = _setting("2g", "memory of Spark's driver, which with `local` is all of Spark")
    spark_shuffle_partitions: int = _setting(
        4, "parts of a shuffle; a streaming query keeps the number that it began with", at_least=1
    )
    spark_max_rows: int = _setting(
        800_000, "most messages that the streams query reads in one batch", at_least=1
    )
    spark_checkpoint: str | None = _setting(
        None, "where the streams query keeps its state: any path of Hadoop; else a folder of the data folder"
    )
    external_jobs: int = _setting(
        4,
        "most jobs over external sources and sinks at a time; each has a Spark query of its own",
        at_least=0,
    )
    drain_seconds: float = _setting(10.0, "time that a stopping broker gives to requests in flight")
    log_level: str = _setting("info", "how much is logged", choices=("debug", "info", "warning", "error"))
    url: str = _setting("http://127.0.0.1:6632", "broker that the commands of the command line talk to")

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            _check_bounds(item.name, value, item.metadata)
        if self.port > 65535:
            raise SettingsError(f"{variable('port')} is {self.port}: give a port from 1 to 65535")
        if self.encryption_key is not None:
            decode_key(self.encryption_key)
        for origin in self.cors_origins:
            if not _ORIGIN.fullmatch(origin):
                raise SettingsError(
                    f"{variable('cors_origins')} has {origin!r}: give origins such as https://example.org"
                    " or http://localhost:8080, without a path, or *"
                )
        if not self.url.startswith(("http://", "https://")):
            raise SettingsError(
                f"{variable('url')} is {self.url!r}: give a URL such as http://127.0.0.1:6632"
            )

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ, **overrides: Any) -> "Settings":
        """Read the settings from `env`; an override that is not None wins over its variable."""
        hints = get_type_hints(cls)
        unknown = overrides.keys() - hints.keys()
        if unknown:
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        values = {name: value for name, value in overrides.items() if value is not None}
        for name, hint in hints.items():
            text = env.get(variable(name), "").strip()
            if name not in values and text:
                values[name] = _parse(name, text, hint)
        return cls(**values)


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def decode_key(text: str) -> bytes:
    """The 32 bytes of an encryption key that is written in base64."""
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        key = b""
    if len(key) != 32:
        raise SettingsError(
            f"{variable('encryption_key')} is not the base64 of 32 bytes; "
            "make one with: openssl rand -base64 32"
        )
    return key


def _parse(name: str, text: str, hint: Any) -> Any:
    if hint is int or hint is float:
        try:
            return hint(text)
        except ValueError:
            kind = "a whole number" if hint is int else "a number"
            default = next(item.default for item in fields(Settings) if item.name == name)
            raise SettingsError(f"{variable(name)} is {text!r}: give {kind}, such as {default}") from None
    if hint == tuple[str, ...]:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return Path(text) if hint in (Path, Path | None) else text


def _check_bounds(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    at_least, choices = metadata["at_least"], metadata["choices"]
    # `not >=` instead of `<`, so that nan is refused too
    if isinstance(value, int | float) and not value >= at_least:
        raise SettingsError(f"{variable(name)} is {value}: give at least {at_least:g}")
    if choices and value not in choices:
        raise SettingsError(f"{variable(name)} is {value!r}: give one of {', '.join(choices)}")
