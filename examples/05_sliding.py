"""Sliding windows: one minute long, a new one every thirty seconds, so each message is in two of them.

Prints the load over the last minute, twice a minute.
"""

from queenspark import Queen, Window

LOAD = [("10:00:10", 40), ("10:00:40", 60), ("10:01:20", 20)]


def show(window: Window) -> None:
    """The average over the window."""
    load = window.aggregate(avg="data.percent")["avg"]
    print(f"{window.start:%H:%M:%S} to {window.end:%H:%M:%S}: {load:.0f} % of {window.count} samples")


with Queen() as queen:
    stream = (
        queen.stream("load-of-a-minute")
        .sources(["load-samples"])
        .sliding_time("1m", "30s")
        .event_time("data.at")
        .grace_period(0)
        .idle_timeout(2)
    )
    samples = queen.queue("load-samples")
    stream.delete()
    samples.delete()
    samples.push([{"at": f"2025-11-03T{time}Z", "percent": percent} for time, percent in LOAD])

    stream.define()
    queen.consumer("load-of-a-minute", "show").process(show, limit=4)
