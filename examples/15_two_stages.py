"""A two-stage pipeline; each stage writes its results in a transaction.

Stage 1 processes the clicks every two seconds and adds user data. Stage 2 counts the enriched clicks per
country and minute, by event time. Prints the final counts from a third queue.
"""

from collections import Counter

from queenspark import Queen, Window

CLICKS = [("10:00:01", "ann"), ("10:00:08", "ben"), ("10:00:31", "ann"), ("10:01:05", "cid")]
COUNTRIES = {"ann": "NO", "ben": "IT", "cid": "IT"}

with Queen() as queen:
    first = queen.stream("stage-1").sources(["raw-clicks"]).tumbling_time(2).grace_period(0)
    second = queen.stream("stage-2").sources(["rich-clicks"]).tumbling_time("1m").grace_period(0)
    clicks, rich_clicks, counts = (
        queen.queue(name) for name in ("raw-clicks", "rich-clicks", "click-counts")
    )
    for old in (first, second, clicks, rich_clicks, counts):
        old.delete()

    clicks.push([{"at": f"2025-11-03T{time}Z", "user": user} for time, user in CLICKS])
    rich_clicks.create()
    first.define()
    second.event_time("data.at").idle_timeout(2).define()

    def enrich(window: Window) -> None:
        """Ack the window and push its results: both, or neither."""
        rich = window.map(lambda click: click.data | {"country": COUNTRIES[click.data["user"]]})
        queen.transaction().ack(window).queue("rich-clicks").push(rich).commit()

    def count(window: Window) -> dict[str, object]:
        """The same transaction, made by `process(into=…)` from the handler's return value."""
        return {"minute": window.start, "clicks": Counter(window.values("data.country"))}

    queen.consumer("stage-1", "enricher").process(enrich, limit=1)
    queen.consumer("stage-2", "counter").process(count, into="click-counts", limit=2)
    for result in counts.batch(10).pop(wait=5, auto_ack=True):
        print(f"{result.data['minute'][11:16]}: {result.data['clicks']}")
