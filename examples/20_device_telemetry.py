"""Device telemetry: temperature, pressure and status in three queues, joined into one window per device.

Prints a snapshot of each device for the minute, and whether it needs attention.
"""

from queenspark import Outgoing, Queen, Window

TELEMETRY: dict[str, list[tuple[str, str, float | str]]] = {
    "device-temperature": [
        ("pump-1", "10:00:05", 61),
        ("pump-2", "10:00:10", 88),
        ("pump-1", "10:00:35", 65),
    ],
    "device-pressure": [
        ("pump-1", "10:00:06", 2.5),
        ("pump-2", "10:00:11", 4.75),
        ("pump-2", "10:00:41", 5.25),
    ],
    "device-status": [("pump-1", "10:00:20", "ok"), ("pump-2", "10:00:45", "alarm")],
}


def snapshot(window: Window) -> None:
    """Readings per sensor type."""
    of = {queue: messages.values("data.value") for queue, messages in window.group_by("queue").items()}
    temperature, pressure = max(of["device-temperature"]), max(of["device-pressure"])
    health = "critical" if temperature > 80 or pressure > 5 else of["device-status"][-1]
    print(f"{window.key}: up to {temperature} °C and {pressure} bar, {window.count} readings, {health}")


with Queen() as queen:
    stream = (
        queen.stream("device-telemetry", "iot")
        .sources(list(TELEMETRY))
        .partitioned()
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period("15s")
        .idle_timeout(2)
    )
    stream.delete()
    for name, readings in TELEMETRY.items():
        queue = queen.queue(name)
        queue.delete()
        queue.push(
            [Outgoing({"at": f"2025-11-03T{at}Z", "value": value}, device) for device, at, value in readings]
        )

    stream.define()
    queen.consumer("device-telemetry", "snapshots").process(snapshot, limit=2)
