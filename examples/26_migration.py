"""From a plain queue consumer to a stream.

Before: batches of arbitrary size. After: windows, which do not depend on the speed of the consumer.
Producers are unchanged, and both consumers can run in parallel until the old one is switched off. Prints
the results of both.
"""

from queenspark import Batch, Queen, Window

TEMPERATURES = [("10:00", 20), ("10:20", 22), ("11:10", 25), ("11:30", 27), ("12:05", 24)]


def before(messages: Batch) -> None:
    """Batches have no meaning: an average of each would depend on how busy the consumer was."""
    print(f"before: {len(messages)} messages")
    messages.ack()


def after(window: Window) -> None:
    """A window is an hour, and it is acked when this returns."""
    mean = window.aggregate(avg="data.celsius")["avg"]
    print(f"after: {window.start:%H:%M}, {window.count} messages, {mean:.0f} °C on average")


with Queen() as queen:
    temperatures = queen.queue("temperatures")
    stream = queen.stream("temperatures-by-hour")
    stream.delete()
    temperatures.delete()
    temperatures.push([{"at": f"2025-11-03T{time}Z", "celsius": value} for time, value in TEMPERATURES])

    temperatures.auto_ack(False).batch(100).idle(1).consume(before)

    # The stream reads the queue from the beginning, independent of other consumers' acks. Use
    # .start("latest") or .start(time) to start elsewhere.
    (
        stream.sources(["temperatures"])
        .tumbling_time("1h")
        .event_time("data.at")
        .grace_period(0)
        .idle_timeout(2)
        .define()
    )
    queen.consumer("temperatures-by-hour", "averages").process(after, limit=3)
