"""Errors: when a handler raises, its window is nacked with the reason and redelivered after a delay.

Here the database is down at the first attempt. Windows of other keys continue; those of this key wait, to
keep their order. `on_event` reports everything, for logs and metrics. Prints the attempts and the events.
"""

from queenspark import Event, Queen, Window


def save(window: Window) -> None:
    """Fails once; `retries` says how often it failed before."""
    print(f"attempt {window.retries + 1}: {window.values('data')}")
    if window.retries == 0:
        raise ConnectionError("the database is away")


def heard(event: Event) -> None:
    reason = f" ({event.error})" if event.error else ""
    print(f"{event.kind}{reason}")


with Queen() as queen:
    stream, jobs = queen.stream("job-batches"), queen.queue("jobs")
    stream.delete()
    jobs.delete()
    jobs.push(["scan", "sort", "send"])

    stream.sources(["jobs"]).count(3).define()
    queen.consumer("job-batches", "savers", on_event=heard).process(save, limit=2)
