"""Real-time dashboard metrics: views, distinct users, top pages, and tail latency.

The windows use push time. Prints the metrics of one window as JSON.
"""

import json
from collections import Counter

from queenspark import Queen, Window

VIEWS = [
    ("ann", "/", 110),
    ("ben", "/", 130),
    ("ann", "/books", 250),
    ("cid", "/", 90),
    ("ben", "/books", 900),
    ("ann", "/cart", 120),
]


def update(window: Window) -> None:
    """The whole dashboard is one call of `aggregate` and a counter."""
    found = window.aggregate(count=True, p95="data.ms", distinct="data.user")
    metrics = {
        "views": found["count"],
        "users": found["distinct"],
        "p95_ms": found["p95"],
        "top": Counter(window.values("data.page")).most_common(2),
    }
    print(json.dumps(metrics))


with Queen() as queen:
    stream, views = queen.stream("dashboard"), queen.queue("page-views")
    stream.delete()
    views.delete()
    views.push([{"user": user, "page": page, "ms": ms} for user, page, ms in VIEWS])

    stream.sources(["page-views"]).tumbling_time(2).grace_period(0).define()
    queen.consumer("dashboard", "screen").process(update, limit=1)
