"""Decoding of bodies and queries; errors are 400 and name the field."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ..errors import bad_request
from .route import Route
from .router import Match

_FIELD = re.compile(r"`(\w+)`(?: - at `\$(.*)`)?$")
_PATH = re.compile(r"at `\$([^`]*)`$")


def decode_query(route: Route, query_string: bytes) -> Any:
    """Decode the query as declared by the route."""
    pairs = dict(parse_qsl(query_string.decode("latin-1"), keep_blank_values=False)) if query_string else {}
    try:
        return msgspec.convert(pairs, route.query, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(_explain(str(error), route.messages)) from error


def decode_body(match: Match, raw: bytes, max_depth: int) -> Any:
    """Decode the body as declared by the route."""
    route = match.route
    assert match.decoder is not None
    if not raw.strip():
        if route.empty_body:
            assert route.body is not None
            return route.body()
        raw = b"{}"
    try:
        raw.decode()  # PostgreSQL accepts valid UTF-8 only
        return match.decoder.decode(raw)
    except UnicodeDecodeError as error:
        raise bad_request("the request body is not valid UTF-8") from error
    except RecursionError as error:
        raise bad_request(f"the request body is nested deeper than {max_depth} levels") from error
    except msgspec.ValidationError as error:
        raise bad_request(_explain(str(error), route.messages)) from error
    except msgspec.DecodeError as error:
        raise bad_request(f"the request body is not valid JSON: {error}") from error


def _explain(reason: str, messages: dict[str, str]) -> str:
    """Rewrite a decoder error: name the field, and use the promised text if there is one."""
    if reason.startswith("Object missing required field"):
        match = _FIELD.search(reason)
        field = match[1] if match else ""
        return messages.get(field, f"{field} is required")
    at = _PATH.search(reason)
    field = re.sub(r"\[[^\]]*\]$", "", at[1]).rpartition(".")[2] if at else ""
    if not field:
        return messages.get("", "the request body must be a JSON object")
    return messages.get(field, f"{field}: {reason.partition(' - at ')[0].replace('`', '')}")
