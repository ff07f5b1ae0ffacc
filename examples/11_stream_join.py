"""A stream join: clicks and purchases of a user, from two queues, in one window.

Prints the conversion (purchases per click) and the hourly revenue of each user.
"""

from queenspark import Outgoing, Queen, Window

DAY = "2025-11-03"
CLICKS = [("ann", "10:01"), ("ann", "10:12"), ("ben", "10:15"), ("ann", "10:20"), ("ann", "10:33")]
PURCHASES = [("ann", "10:21", 99.50), ("cid", "10:30", 12.00), ("ann", "10:40", 20.25)]


def analyse(window: Window) -> None:
    """Both sides of the join."""
    clicks = window.filter(lambda message: message.queue == "user-clicks")
    purchases = window.filter(lambda message: message.queue == "user-purchases")
    conversion = f"{len(purchases) / len(clicks):.0%}" if clicks else "without a click"
    revenue = sum(purchases.values("data.amount"))
    print(f"{window.key}: {len(purchases)} purchases, {conversion}, revenue {revenue:.2f}")


with Queen() as queen:
    stream = (
        queen.stream("user-behaviour", "analytics")
        .sources(["user-clicks", "user-purchases"])
        .partitioned()
        .tumbling_time("1h")
        .event_time("data.at")
        .grace_period("5m")
        .idle_timeout(2)
    )
    clicks, purchases = queen.queue("user-clicks"), queen.queue("user-purchases")
    stream.delete()
    for queue in (clicks, purchases):
        queue.delete()

    clicks.push([Outgoing({"at": f"{DAY}T{time}Z"}, user) for user, time in CLICKS])
    purchases.push(
        [Outgoing({"at": f"{DAY}T{time}Z", "amount": price}, user) for user, time, price in PURCHASES]
    )
    stream.define()
    queen.consumer("user-behaviour", "analysis").process(analyse, limit=3)
