"""Consumer groups: the list, and one group with its partitions."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from ..components import Table, action, badge, link
from ..frame import Frame, act
from ..parts import (
    PAGE_ROWS,
    Listing,
    Pager,
    Tiles,
    confirm,
    field,
    panel,
    queue_name,
    queue_url,
    stream_of,
    url,
)
from ..seek import ask_position, seek
from ..words import ago, clock, duration, number, rate

_MOST_LEASES = 50
_COLUMNS: list[dict[str, Any]] = [
    {"name": "name", "label": "Group", "sort": True},
    {"name": "queue", "label": "Queue or stream", "sort": True},
    {"name": "poppedPerSecond", "label": "Popped/s", "align": "right", "sort": True},
    {"name": "ackedPerSecond", "label": "Acked/s", "align": "right", "sort": True},
    {"name": "lag", "label": "Lag", "align": "right", "sort": True},
    {"name": "lagSeconds", "label": "Oldest unacked", "align": "right", "sort": True},
    {"name": "processing", "label": "In flight", "align": "right", "sort": True},
    {"name": "leases", "label": "Leases", "align": "right"},
    {"name": "partitions", "label": "Partitions", "align": "right", "sort": True},
    {"name": "acked", "label": "Last ack", "align": "right"},
]


def register() -> None:
    """Register the routes."""
    ui.page("/groups")(_list_page)
    ui.page("/group")(_group_page)


async def _list_page() -> None:
    frame = Frame(
        "Groups", "/groups", "Consumers that share the messages of a queue or the windows of a stream."
    )
    with frame.body:
        listing = Listing(
            _COLUMNS,
            sort="-lag",
            empty_text="No groups yet. The first pop or poll that names a group creates it.",
        )
    with frame.actions:
        field("Search groups", on_change=listing.find)
    await frame.live_list(listing, "consumer-groups", name="consumerGroups", row=_row)


def _row(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{group['name']}/{group['queue']}",
        "name": link(group["name"], url("/group", name=group["name"])),
        "queue": link(
            queue_name(group["queue"]),
            queue_url(group["queue"]),
            sub="stream" if stream_of(group["queue"]) else "queue",
        ),
        **{name: rate(value) for name, value in group["rates"].items()},
        "lag": number(group["lag"]),
        "lagSeconds": duration(group["lagSeconds"]) if group["lag"] else "–",
        "processing": number(group["processing"]),
        "leases": number(group["activeLeases"]),
        "partitions": number(group["partitions"]),
        "acked": ago(group["lastAckedAt"]),
    }


async def _group_page(name: str) -> None:
    frame = Frame(name, "/groups", "Consumer group", crumb=("Groups", "/groups"))
    queen = frame.session.queen

    async def change(verb: str, queue: str) -> None:
        if verb == "delete":
            text = f"It loses its position on {queue_name(queue)}. The next pop creates it again."
            if await confirm(f"Delete group {name}?", text, "Delete") and await act(
                queen.admin.delete_group(name, queue=queue), f"Deleted {name}."
            ):
                ui.navigate.to("/groups")
            return
        where = await ask_position(
            f"Seek {name} on {queue_name(queue)}",
            "Its leases are revoked; acks under them are rejected.",
        )
        if where is not None:
            await act(seek(queen, queue, name, where), f"{name} continues from {where}.")
            await live.refresh()

    with frame.body:
        tiles = Tiles(("Lag", "Popped", "Acked", "In flight", "Leases", "Queues and streams"))
        with panel("Queues and streams", flush=True):
            reads = Table(
                [
                    {"name": "queue", "label": "Name"},
                    *({**column, "sort": False} for column in _COLUMNS[2:]),
                    {"name": "act", "label": "", "align": "right"},
                ],
                on_action=change,
            )
        ui.element("div").style("height: 16px")
        with panel("Leases", flush=True, about="first to expire first"):
            leases = Table(
                [
                    {"name": "partition", "label": "Partition"},
                    {"name": "queue", "label": "Queue or stream"},
                    {"name": "holder", "label": "Held by"},
                    {"name": "since", "label": "Since", "align": "right"},
                    {"name": "until", "label": "Until", "align": "right"},
                    {"name": "leased", "label": "Messages", "align": "right"},
                ],
                empty="No consumer holds a lease.",
            )
        ui.element("div").style("height: 16px")
        with panel("Partitions", flush=True):
            places = Table(
                [
                    {"name": "partition", "label": "Partition"},
                    {"name": "queue", "label": "Queue or stream"},
                    {"name": "state", "label": "State"},
                    {"name": "handed", "label": "In flight", "align": "right"},
                    {"name": "acked", "label": "Last ack", "align": "right"},
                ],
                empty="The group has not read a partition yet.",
            )

            async def turned() -> None:
                await live_places.refresh()

            pager = Pager(turned, by_name=True)

    def show(response: dict[str, Any]) -> None:
        queues = response["queues"]
        tiles.show("Lag", number(response["lag"]))
        for name in ("Popped", "Acked"):
            each_rate = [each["rates"][f"{name.lower()}PerSecond"] for each in queues]
            tiles.show(name, rate(sum(each_rate)), "/s")
        tiles.show("In flight", number(sum(each["processing"] for each in queues)))
        tiles.show("Leases", number(sum(each["activeLeases"] for each in queues)))
        tiles.show("Queues and streams", number(len(queues)))
        reads.show(
            [
                {
                    **_row(each),
                    "id": each["queue"],
                    "act": [
                        action("Seek…", "seek", right="queue:admin"),
                        action("Delete", "delete", tone="bad", right="queue:admin"),
                    ],
                }
                for each in queues
            ]
        )

    def read(**query: Any) -> Any:
        return queen.admin.request("GET", "consumer-groups", name, query=query)

    def show_leases(response: dict[str, Any]) -> None:
        leases.show([_lease(queue, place) for queue, place in _places(response)])

    def show_places(response: dict[str, Any]) -> None:
        found = _places(response)
        pager.show(len(found))
        places.show([_place(queue, place) for queue, place in found[:PAGE_ROWS]])

    live = await frame.live(("group", name), lambda _: read(limit=1), show)
    await frame.live(("leases", name), lambda _: read(leased="true", limit=_MOST_LEASES), show_leases)
    live_places = await frame.live(
        lambda: ("places", name, pager.offset),
        lambda key: read(limit=PAGE_ROWS + 1, offset=key[-1]),
        show_places,
    )


def _places(response: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(each["queue"], place) for each in response["queues"] for place in each["places"]]


def _lease(queue: str, place: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{queue}/{place['partitionId']}",
        "partition": place["partition"],
        "queue": link(queue_name(queue), queue_url(queue)),
        "holder": place["leaseHolder"] or "–",
        "since": ago(place["leasedAt"]) if place["leasedAt"] else "–",
        "until": clock(place["leaseExpiresAt"]),
        "leased": number(place["leased"]),
    }


def _place(queue: str, place: dict[str, Any]) -> dict[str, Any]:
    if place["leased"]:
        state = badge("leased", "accent")
    elif place["handedOut"]:
        state = badge("will be retried", "warn")
    elif place["availableAt"]:
        state = badge("ready", "wait")
    else:
        state = badge("idle", "calm")
    return {
        "id": place["partitionId"],
        "partition": place["partition"],
        "queue": link(queue_name(queue), queue_url(queue)),
        "state": state,
        "handed": number(place["handedOut"]),
        "acked": ago(place["lastAckedAt"]),
    }
