"""Sessionization: the activity of a user until half an hour without a click.

The clicks come from a log file, so the sessions use event time. Prints length and path of each session.
"""

from queenspark import Outgoing, Queen, Window

CLICKS = [
    ("09:00", "dora", "/"),
    ("09:04", "dora", "/books"),
    ("09:10", "emil", "/"),
    ("09:25", "dora", "/cart"),
    ("09:55", "dora", "/"),  # exactly half an hour later: a new session
    ("10:20", "dora", "/pay"),
]


def show(window: Window) -> None:
    """A session ends a gap after its last click."""
    first, last = window.messages[0].data["at"], window.messages[-1].data["at"]
    path = " ".join(window.values("data.page"))
    print(f"{window.key}: {first[11:16]} to {last[11:16]}, {path}")


with Queen() as queen:
    stream = (
        queen.stream("user-sessions", "analytics")
        .sources(["site-clicks"])
        .partitioned()
        .session(gap="30m")
        .event_time("data.at")
        .grace_period("5m")
        .idle_timeout(2)
    )
    clicks = queen.queue("site-clicks")
    stream.delete()
    clicks.delete()
    clicks.push([Outgoing({"at": f"2025-11-03T{time}Z", "page": page}, user) for time, user, page in CLICKS])

    stream.define()
    queen.consumer("user-sessions", "show").process(show, limit=3)
