"""`queenspark groups`: consumer groups and how far behind they are."""

from typing import Annotated

import typer

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.confirm import confirm
from queenspark.cli.noun import noun
from queenspark.cli.options import AsJson, Limit, Offset, Search, Sort, Url, Yes
from queenspark.cli.output import print_json, print_page, print_table, records_of, say

app = noun("List, inspect and delete consumer groups.")

GroupName = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group.")]

COLUMNS = [
    ("group", "name"),
    ("queue", "queue"),
    ("partitions", "partitions"),
    ("lag", "lag"),
    ("lag, s", "lagSeconds"),
    ("in flight", "processing"),
    ("leases", "activeLeases"),
    ("last ack", "lastAckedAt"),
]

CURSORS = [
    ("queue", "queue"),
    ("partition", "partition"),
    ("in flight", "handedOut"),
    ("leased", "leased"),
    ("holder", "leaseHolder"),
    ("since", "leasedAt"),
    ("lease ends", "leaseExpiresAt"),
    ("last ack", "lastAckedAt"),
]


@app.command("list")
def list_groups(
    behind: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Only groups that are at least this far behind.")
    ] = None,
    search: Search = None,
    sort: Sort = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the consumer groups with their lag (default of `queenspark groups`)."""
    query = {"search": search, "sort": sort, "limit": limit, "offset": offset, "minLagSeconds": behind}
    with BrokerApi(url) as broker:
        if behind is None:
            response = broker.get("consumer-groups", query=query)
        else:
            response = broker.get("consumer-groups", "lagging", query=query)
    nothing = "No consumer groups." if behind is None else "No consumer group is that far behind."
    print_page(response, "consumerGroups", COLUMNS, nothing=nothing, offset=offset, as_json=as_json)


@app.command("show")
def show_group(group: GroupName, url: Url = None, as_json: AsJson = False) -> None:
    """Show a group: queues, partitions, cursors, leases and lag."""
    with BrokerApi(url) as broker:
        response = broker.get("consumer-groups", group)
    if as_json:
        return print_json(response)
    queues = records_of(response, "queues")
    print_table(queues, COLUMNS)
    cursors = [
        {**cursor, "queue": queue.get("queue")} for queue in queues for cursor in records_of(queue, "places")
    ]
    return print_table(cursors, CURSORS) if cursors else None


@app.command("delete")
def delete_group(
    group: GroupName,
    queue: Annotated[
        str | None, typer.Option(metavar="QUEUE", help="Only the group's cursors in this queue.")
    ] = None,
    yes: Yes = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete a group with its cursors; used again, it starts over."""
    where = f" in the queue {queue}" if queue else ""
    confirm(f"Delete the consumer group {group}{where}?", yes)
    with BrokerApi(url) as broker:
        path = ("consumer-groups", group, "queues", queue) if queue else ("consumer-groups", group)
        response = broker.delete(*path, query={"deleteMetadata": True})
    if as_json:
        return print_json(response)
    return say(f"Deleted the consumer group {group}{where}.")
