"""Options in WITH: their names and values, by statement."""

from __future__ import annotations

import re
from collections.abc import Callable

from .cursor import Cursor
from .duration import duration_text, short_duration
from .errors import did_you_mean
from .source import Span
from .statements import Option
from .tokens import Kind

Check = Callable[[str], str]  # returns the normalised value, or raises ValueError with the valid values

_ISO = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?", re.IGNORECASE
)  # fmt: skip


def _duration(value: str) -> str:
    found = short_duration(value)
    if found is None:
        raise ValueError("a duration such as 500ms, 30s, 5m, 1h or 1d")
    return duration_text(found)


def _some_duration(value: str) -> str:
    if short_duration(value) == 0:
        raise ValueError("longer than zero")
    return _duration(value)


def _choice(*choices: str) -> Check:
    def check(value: str) -> str:
        if value.lower() not in choices:
            raise ValueError("one of " + ", ".join(f"'{each}'" for each in choices))
        return value.lower()

    return check


def _start(value: str) -> str:
    if value.lower() in ("earliest", "latest"):
        return value.lower()
    if not _ISO.fullmatch(value):
        raise ValueError("'earliest', 'latest' or a time such as '2026-01-31T12:00:00Z'")
    return value


def _text(value: str) -> str:
    if not value.strip():
        raise ValueError("something that is not empty")
    return value


def _names(value: str) -> str:
    if not all(name.strip() for name in value.split(",")):
        raise ValueError("names separated by commas")
    return value


def _character(value: str) -> str:
    found = value.replace("\\t", "\t")
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise ValueError("one character such as ',', ';', '|' or '\\t'")
    return found


_SECRET = (
    "password", "passphrase", "secret", "token", "credential", "jaas", "private.key", ".pem",
    "oauthbearer.config",
)  # fmt: skip


def is_secret(name: str) -> bool:
    """Whether the value of an option must be hidden."""
    return any(word in name for word in _SECRET)


_PASSWORD = re.compile(r"^([a-z][a-z0-9+.-]*://[^:/?#@]*):.*@", re.IGNORECASE | re.DOTALL)
_PARAMETER = re.compile(r"([?&]([^=&]*)=)[^&]*")


def without_password(value: str) -> str:
    """Hide the password and the secret parameters of a URL; other texts are returned unchanged."""
    if "://" not in value:
        return value
    # Up to the last @: a key with a slash is not a valid URL, but must not be shown either.
    return _PARAMETER.sub(_parameter, _PASSWORD.sub(r"\1:…@", value))


def _parameter(found: re.Match[str]) -> str:
    name = found[2].lower()
    return f"{found[1]}…" if is_secret(name) or "key" in name or name == "sig" else found[0]


def shown_value(name: str, value: str) -> str:
    """The value of an option, with secrets hidden."""
    return "…" if is_secret(name) else without_password(value)


def without_secrets(given: dict[str, str]) -> dict[str, str]:
    """Options with secrets hidden."""
    return {name: shown_value(name, value) for name, value in given.items()}


def _passed_on(value: str) -> str:
    return value


_boolean = _choice("true", "false")

#: Options of a query.
JOB: dict[str, Check] = {
    "grace": _duration, "idle_timeout": _some_duration, "late": _choice("process", "warn", "drop"),
    "keep": _duration, "max_ahead": _some_duration, "emit_empty": _boolean, "ttl": _some_duration,
    "on_error": _choice("dead_letter", "skip"), "start": _start, "retention": _some_duration,
    "partition_by": _text,
}  # fmt: skip
#: Options of a schema over queues.
STREAM: dict[str, Check] = {"queue": _text, "queues": _names}
_FILES: dict[str, Check] = {"path": _text, "format": _choice("json", "csv", "parquet", "text")}
_READ_FILES: dict[str, Check] = _FILES | {
    "mode": _choice("stream", "once"), "header": _boolean, "delimiter": _character,
}  # fmt: skip
_KAFKA: dict[str, Check] = {"brokers": _text, "topic": _text}
#: librdkafka settings, which are passed through: kafka.security.protocol, kafka.sasl.password …
KAFKA_PREFIX = "kafka."
#: Options of a source, by connector.
SOURCES: dict[str, dict[str, Check]] = {
    "files": _READ_FILES, "kafka": _KAFKA | {
        "format": _choice("json", "text", "raw"), "start": _start, "key_in_one_partition": _boolean,
    },
}  # fmt: skip
#: Query options that also apply to a sink FROM a stream.
OF_STREAM = ("start", "on_error")
#: Options of a sink, by connector.
SINKS: dict[str, dict[str, Check]] = {
    "files": {"path": _text, "format": _choice("json", "csv", "parquet"), "partition_by": _text},
    "kafka": _KAFKA | {"partition_by": _text},
}
#: Options of a sink FROM a stream, by connector.
STREAM_SINKS: dict[str, dict[str, Check]] = {
    connector: own | {"metadata": _text} | {name: JOB[name] for name in OF_STREAM}
    for connector, own in SINKS.items()
}


def options(cursor: Cursor) -> tuple[Option, ...]:
    """Parse `(name = value, …)`. Valid names and values depend on the statement."""
    found: list[Option] = []
    cursor.expect("(")
    while True:
        span = cursor.span
        name = _name(cursor)
        if any(each.name == name for each in found):
            raise span.error(f"the option {name} is given twice; remove one")
        cursor.expect("=")
        found.append(Option(name=name, value=_value(cursor, name), span=span))
        if not cursor.takes(","):
            break
    cursor.expect(")")
    return tuple(found)


def _name(cursor: Cursor) -> str:
    """Parse the name of an option; librdkafka settings contain dots and keywords."""
    name = cursor.name("the name of an option")
    while cursor.takes("."):
        if not cursor.at(Kind.WORD, Kind.QUOTED):
            raise cursor.expected("the rest of the name of an option after the dot")
        name += f".{cursor.next().text}"
    return name.lower()


def _value(cursor: Cursor, name: str) -> str:
    if cursor.at(Kind.STRING, Kind.NUMBER) or cursor.sees_any(("TRUE", "FALSE")):
        return cursor.next().text
    if cursor.sees("INTERVAL"):
        return duration_text(cursor.duration(name))
    raise cursor.expected(f"the value of {name}, a string in quotes")


def checked(given: tuple[Option, ...], known: dict[str, Check], what: str) -> tuple[Option, ...]:
    """Validate and normalise options, sorted by name. Raises SqlError."""
    found = []
    for option in given:
        if option.name not in known:
            names = ", ".join(known)
            hint = did_you_mean(option.name, known)
            raise option.span.error(f"{what} has no option {option.name}{hint or f'; use one of {names}'}")
        try:
            value = known[option.name](option.value)
        except ValueError as error:
            raise option.span.error(f"{option.name} is {option.value!r}; it must be {error}") from None
        found.append(Option(name=option.name, value=value, span=option.span))
    return tuple(sorted(found, key=lambda option: option.name))


def divided(
    given: tuple[Option, ...], connectors: dict[str, dict[str, Check]]
) -> tuple[tuple[Option, ...], tuple[Option, ...]]:
    """Split options into those of a source or sink, and the others."""
    chosen = next((option.value.lower() for option in given if option.name == "connector"), "")
    known = connectors.get(chosen, {})
    names = {"connector", *known, *_passed(given, known)}
    return (
        tuple(option for option in given if option.name in names),
        tuple(option for option in given if option.name not in names),
    )


def _passed(given: tuple[Option, ...], own: dict[str, Check]) -> dict[str, Check]:
    """The librdkafka settings among the options of a connector."""
    return {
        each.name: _passed_on for each in given if "brokers" in own and each.name.startswith(KAFKA_PREFIX)
    }


def connector_options(
    given: tuple[Option, ...], connectors: dict[str, dict[str, Check]], what: str, span: Span
) -> tuple[Option, ...]:
    """Validate the options of a source or sink, by its connector."""
    connector = next((option for option in given if option.name == "connector"), None)
    names = " or ".join(f"'{name}'" for name in connectors)
    if connector is None:
        raise span.error(f"{what} needs a connector; write connector = {names}")
    known = {"connector": _choice(*connectors)}
    checked((connector,), known, what)
    own = connectors[connector.value.lower()]
    found = checked(
        given, known | _passed(given, own) | own, f"{what} with the connector {connector.value.lower()!r}"
    )
    for name in ("path", "brokers", "topic"):
        if name in own and all(option.name != name for option in given):
            raise span.error(f"{what} with the connector {connector.value!r} needs the option {name}")
    return found
