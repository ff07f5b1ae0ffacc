"""`queenspark audit`: administrative operations."""

from typing import Annotated

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.options import AsJson, Limit, Offset, Url
from queenspark.cli.output import print_page

COLUMNS = [
    ("at", "at"),
    ("caller", "caller"),
    ("with", "kind"),
    ("from", "address"),
    ("action", "action"),
    ("of", "subject"),
    ("status", "status"),
]


def audit(
    caller: Annotated[
        str | None, typer.Option("--caller", metavar="NAME", help="Only operations of this caller.")
    ] = None,
    limit: Limit = 100,
    offset: Offset = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List administrative operations, newest first, with caller, time and address."""
    with BrokerApi(url) as broker:
        response = broker.get("audit", query={"caller": caller, "limit": limit, "offset": offset})
    nothing = "No administrative operations found."
    print_page(response, "acts", COLUMNS, nothing=nothing, offset=offset, as_json=as_json)
