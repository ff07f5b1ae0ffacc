"""POST, GET and DELETE /api/v1/keys: API keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta

from ..store.api_keys import ApiKey, NewKey
from .broker import Broker
from .errors import bad_request, not_found
from .http import Call, Response, Right, Route, ScopeError, json, parse_scopes
from .limits import check_name
from .paging import PageQuery, page_of, paged
from .responses.access import Key, KeyList
from .times import iso, iso_time, parse_time

Rate = Annotated[float, Meta(gt=0, le=1e9)]


class KeyRequest(msgspec.Struct, rename="camel"):
    """A key to create: with a role, scopes, or both."""

    name: str
    role: Literal["read-only", "read-write", "admin"] | None = None
    scopes: list[str] | None = None
    expires_at: str | None = None
    requests_per_second: Rate | None = None
    messages_per_second: Rate | None = None


def shown_key(key: ApiKey, secret: str | None = None) -> Key:
    """A key as the API shows it."""
    return Key(
        id=key.id,
        name=key.name,
        role=key.role,
        scopes=key.scopes,
        requests_per_second=key.requests_per_second,
        messages_per_second=key.messages_per_second,
        created_at=iso_time(key.created_at),
        created_by=key.created_by,
        expires_at=iso(key.expires_at),
        last_used_at=iso(key.last_used_at),
        revoked_at=iso(key.revoked_at),
        key=UNSET if secret is None else secret,
    )


def new_key(request: KeyRequest) -> NewKey:
    """Validate a request for a key, or raise 400."""
    check_name("name", request.name)
    if request.role is None and not request.scopes:
        raise bad_request(
            "role or scopes is required: pass role (read-only, read-write or admin), scopes, or both"
        )
    if request.scopes == []:
        raise bad_request(
            "scopes is empty, which would allow nothing: pass at least one, or omit scopes for all rights of"
            " the role"
        )
    try:
        scopes = None if request.scopes is None else [str(scope) for scope in parse_scopes(request.scopes)]
    except ScopeError as error:
        raise bad_request(str(error)) from None
    expires = parse_time("expiresAt", request.expires_at)
    if expires is not None and expires <= datetime.now(UTC):
        raise bad_request(f"expiresAt ({request.expires_at}) is in the past: use a future time")
    return NewKey(
        name=request.name,
        role=request.role,
        scopes=scopes,
        expires_at=expires,
        requests_per_second=request.requests_per_second,
        messages_per_second=request.messages_per_second,
    )


async def create(broker: Broker, call: Call) -> Response:
    """Create a key; only this response contains the secret."""
    key, secret = await broker.store.api_keys.create(new_key(call.body), call.caller.name)
    call.acted_on = f"{key.id} {key.name}"
    return json(shown_key(key, secret), 201)


async def list_keys(broker: Broker, call: Call) -> Response:
    """List the keys, including revoked and expired ones."""
    query: PageQuery = call.query
    keys, total = await broker.store.api_keys.page(page_of(query, "createdAt", visible=None))
    return json(paged("keys", [shown_key(key) for key in keys], total, query))


async def revoke(broker: Broker, call: Call) -> Response:
    """Revoke a key, on every broker within five seconds."""
    key = await broker.store.api_keys.revoke(call.path["id"].replace("\x00", ""))
    if key is None:
        raise not_found(f"key {call.path['id']} does not exist")
    broker.bus.keys_changed()
    call.acted_on = f"{key.id} {key.name}"
    return json(shown_key(key))


KEYS = "/api/v1/keys"

ROUTES = [
    Route(
        "POST",
        KEYS,
        create,
        "Create an API key",
        Right.ACCESS_ADMIN,
        {201: Key},
        body=KeyRequest,
        messages={
            "": "name is required",
            "name": "name is required",
            "role": "role must be read-only, read-write or admin",
            "scopes": "scopes must be an array of strings, such as queue:orders.*:push",
        },
    ),
    Route("GET", KEYS, list_keys, "List API keys", Right.ACCESS_ADMIN, {200: KeyList}, query=PageQuery),
    Route("DELETE", f"{KEYS}/:id", revoke, "Revoke an API key", Right.ACCESS_ADMIN, {200: Key}),
]
