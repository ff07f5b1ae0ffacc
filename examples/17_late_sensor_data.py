"""Late data: a reading for a sealed window produces the next revision of that window.

A window stays open for its grace period. Later readings are still processed; `late("warn")` also lists
them, `late("drop")` only counts them. Prints each window as it arrives, and the late reading.
"""

from queenspark import Queen, Window

READINGS = [
    ("10:00:10", 20.0),
    ("10:00:50", 22.0),
    ("10:01:10", 23.0),
    ("10:00:30", 21.0),  # not late: the first minute waits until a reading of 10:01:30 or later is there
    ("10:01:40", 24.0),  # now the first minute is sealed
    ("10:00:20", 17.0),  # late
]


def show(window: Window) -> None:
    """Keep the highest revision of a window: it has all of its readings."""
    mean = window.aggregate(avg="data.celsius")["avg"]
    print(f"{window.start:%H:%M}, revision {window.revision}: {window.count} readings, {mean:.1f} °C")


with Queen() as queen:
    stream = (
        queen.stream("climate", "iot")
        .sources(["readings"])
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period("30s")
        .late("warn")
        .idle_timeout(2)
    )
    readings = queen.queue("readings")
    stream.delete()
    readings.delete()
    readings.push([{"at": f"2025-11-03T{time}Z", "celsius": celsius} for time, celsius in READINGS])

    stream.define()
    queen.consumer("climate", "show").process(show, limit=3)
    for late in stream.late_messages():
        print(f"late: the reading of {late['time'][11:19]}")
