"""Tumbling windows: consecutive, each message is in exactly one.

Prints the pages of each minute. A window includes its start and excludes its end: the view at 10:01:00 is
in the second one. Minutes without messages have no window, unless the stream has `.emit_empty()`.
"""

from queenspark import Queen, Window

VIEWS = [("10:00:05", "/"), ("10:00:59", "/books"), ("10:01:00", "/cart"), ("10:03:30", "/")]


def show(window: Window) -> None:
    """Print the bounds and pages of a window."""
    print(f"{window.start:%H:%M:%S} to {window.end:%H:%M:%S}: {window.values('data.page')}")


with Queen() as queen:
    # Event time. A window is sealed when a message with a later time arrives, and the last one after the
    # idle timeout.
    stream = (
        queen.stream("views-by-minute")
        .sources(["tumbling-views"])
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period(0)
        .idle_timeout(2)
    )
    views = queen.queue("tumbling-views")
    stream.delete()
    views.delete()
    views.push([{"at": f"2025-11-03T{time}Z", "page": page} for time, page in VIEWS])

    stream.define()
    queen.consumer("views-by-minute", "show").process(show, limit=3)
