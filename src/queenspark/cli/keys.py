"""`queenspark keys`: API keys, made, listed and revoked through a broker or in the database itself."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.direct_keys import create_directly, list_directly, revoke_directly
from queenspark.cli.exits import Exit, Failure
from queenspark.cli.noun import noun
from queenspark.cli.options import AsJson, Limit, Offset, Search, Sort, Url, Yes, rate
from queenspark.cli.output import print_facts, print_json, print_page, say
from queenspark.client.duration import seconds
from queenspark.client.errors import InvalidValue

app = noun("Create, list and revoke API keys.")

Direct = Annotated[
    bool,
    typer.Option("--direct", help="Connect to QUEENSPARK_DATABASE_URL without a broker; for the first key."),
]
Rate = Annotated[
    float | None, typer.Option(parser=rate, metavar="N", help="Rate limit per second and broker.")
]

COLUMNS = [
    ("id", "id"),
    ("name", "name"),
    ("role", "role"),
    ("scopes", "scopes"),
    ("created", "createdAt"),
    ("by", "createdBy"),
    ("expires", "expiresAt"),
    ("last used", "lastUsedAt"),
    ("revoked", "revokedAt"),
]


@app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the key's owner.")] = "admin",
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="read-only, read-write or admin.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", metavar="SCOPE", help="Scope, such as queue:orders.*:push; repeatable."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="Lifetime, such as 90d.")
    ] = None,
    requests_per_second: Rate = None,
    messages_per_second: Rate = None,
    direct: Direct = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key and print it. It is shown once; only its hash is stored."""
    body = {
        "name": name,
        "role": role,
        "scopes": scope or None,
        "expiresAt": _end(expires),
        "requestsPerSecond": requests_per_second,
        "messagesPerSecond": messages_per_second,
    }
    if direct:
        made = create_directly(body)
    else:
        with BrokerApi(url) as broker:
            made = broker.post("keys", body=body)
    if as_json:
        return print_json(made)
    say(f"Created the key {made['id']} for {name}. It is not shown again:")
    return typer.echo(made["key"])


def _end(expires: str | None) -> str | None:
    if expires is None:
        return None
    try:
        return (datetime.now(UTC) + timedelta(seconds=seconds("--expires", expires))).isoformat()
    except (InvalidValue, OverflowError) as error:
        raise Failure(f"{error}.", Exit.USAGE) from None


@app.command("list")
def list_keys(
    search: Search = None,
    sort: Sort = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    direct: Direct = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the keys without their secrets (default of `queenspark keys`)."""
    query = {"search": search, "sort": sort, "limit": limit, "offset": offset}
    if direct:
        response: Any = list_directly(query)
    else:
        with BrokerApi(url) as broker:
            response = broker.get("keys", query=query)
    nothing = "No keys found; create one with `queenspark keys create`."
    print_page(response, "keys", COLUMNS, nothing=nothing, offset=offset, as_json=as_json, shown=_with_scopes)


def _with_scopes(key: dict[str, Any]) -> dict[str, Any]:
    return {**key, "scopes": ", ".join(key["scopes"] or []) or None}


@app.command("revoke")
def revoke_key(
    key: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as shown by `queenspark keys`.")],
    yes: Yes = False,
    direct: Direct = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key permanently; every broker rejects it within five seconds."""
    confirm(f"Revoke the key {key}?", yes)
    if direct:
        revoked = revoke_directly(key)
    else:
        with BrokerApi(url) as broker:
            revoked = broker.delete("keys", key)
    return print_json(revoked) if as_json else print_facts(revoked)
