"""Event-time aggregation: windows by the time of the event, not by push time.

The messages arrive out of order. Prints requests, average, 95th percentile and error rate per minute.
"""

from queenspark import Queen, Window

REQUESTS = [
    ("10:00:07", 120, 200),
    ("10:00:31", 80, 200),
    ("10:01:02", 95, 200),
    ("10:00:44", 700, 500),  # took its time, also on the way here
    ("10:01:40", 105, 404),
    ("10:01:15", 100, 200),
]


def report(window: Window) -> None:
    """The metrics of a minute."""
    times = window.aggregate(avg="data.ms", p95="data.ms")
    errors = window.filter(lambda message: message.data["status"] >= 500)
    print(
        f"{window.start:%H:%M}: {window.count} requests, {times['avg']:.0f} ms on average, "
        f"p95 {times['p95']:.0f} ms, {len(errors) / window.count:.0%} errors"
    )


with Queen() as queen:
    stream = (
        queen.stream("api-by-minute", "monitoring")
        .sources(["api-requests"])
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period("30s")  # stay open for late messages
        .idle_timeout(2)
    )
    requests = queen.queue("api-requests")
    stream.delete()
    requests.delete()
    requests.push([{"at": f"2025-11-03T{at}Z", "ms": ms, "status": status} for at, ms, status in REQUESTS])

    stream.define()
    queen.consumer("api-by-minute", "report").process(report, limit=2)
