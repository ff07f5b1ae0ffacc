"""A global stream: one window over all messages of all its queues, regardless of partition.

Three services log to separate queues. Prints the health of the whole system every five minutes.
"""

from queenspark import Queen, Window

LOGS = {
    "api-logs": [("10:01", 200), ("10:03", 500), ("10:07", 200)],
    "app-logs": [("10:02", 200), ("10:06", 200)],
    "db-logs": [("10:04", 200), ("10:08", 503), ("10:09", 500)],
}


def report(window: Window) -> None:
    """Count the errors of all services."""
    errors = window.filter(lambda message: message.data["status"] >= 500)
    services = sorted({message.queue for message in window.all_messages})
    print(f"{window.start:%H:%M}: {len(errors)} of {window.count} failed, in {', '.join(services)}")


with Queen() as queen:
    stream = (
        queen.stream("system-metrics", "monitoring")
        .sources(list(LOGS))
        .tumbling_time("5m")
        .event_time("data.at")
        .grace_period("5m")  # the queues are that far apart
        .idle_timeout(2)
    )
    stream.delete()
    for name, lines in LOGS.items():
        queue = queen.queue(name)
        queue.delete()
        queue.push([{"at": f"2025-11-03T{time}Z", "status": status} for time, status in lines])

    stream.define()
    queen.consumer("system-metrics", "report").process(report, limit=2)
