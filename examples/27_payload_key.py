"""Totals by a field of the payload: the stream computes them, and the handler only reads them.

The orders of all customers are in one partition; the key is a field of each order. Prints the spending of
each customer per minute, without refunds, if it was more than 20.
"""

from queenspark import Queen, Window

ORDERS = [
    ("10:00:07", "ann", 12.5),
    ("10:00:15", "ben", 30.0),
    ("10:00:31", "ann", 9.0),
    ("10:00:40", "ben", -30.0),  # a refund
    ("10:00:55", "cid", 8.0),
    ("10:01:10", "ann", 25.0),
]


def report(window: Window) -> None:
    """The aggregates come with the window."""
    found = window.aggregates
    print(f"{window.start:%H:%M} {window.key}: {found['orders']} orders, {found['total']:.2f} in all")


with Queen() as queen:
    stream = (
        queen.stream("customer-totals", "shop")
        .sources(["shop-orders"])
        .key("data.customer")
        .where("data.amount > 0")
        .aggregate(total="sum(data.amount)", orders="count(*)")
        .having("total > 20")
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period(0)
        .idle_timeout(2)
    )
    orders = queen.queue("shop-orders")
    stream.delete()
    orders.delete()
    orders.push(
        [{"at": f"2025-11-03T{at}Z", "customer": name, "amount": amount} for at, name, amount in ORDERS]
    )

    stream.define()
    queen.consumer("customer-totals", "report").process(report, limit=3)
