"""Fraud alerts in a queue, exactly once.

The handler's result is pushed `into` a queue in one transaction with the ack of the window: each alert is
there once, across crashes. Prints the alerts.
"""

from queenspark import LeasedMessage, Outgoing, Queen, Window

PAYMENTS = [
    ("anna", 40, "Bern"),
    ("ben", 6000, "Oslo"),
    ("cleo", 20, "Rome"),
    ("ben", 7000, "Oslo"),
    ("cleo", 30, "Lima"),
    ("cleo", 10, "Oslo"),
]


def detect(window: Window) -> dict[str, object] | None:
    """An alert, or None when there is nothing to push."""
    found = window.aggregate(sum="data.amount", distinct="data.city")
    total, cities = found["sum"], found["distinct"]
    if total <= 10_000 and cities < 3:
        return None
    return {"user": window.key, "total": total, "cities": cities, "window": window.id}


def warn(alert: LeasedMessage) -> None:
    print(f"alert: {alert.data['user']} paid {alert.data['total']} in {alert.data['cities']} cities")


with Queen() as queen:
    stream = queen.stream("payments-by-user")
    stream.delete()
    payments, alerts = queen.queue("payments"), queen.queue("alerts")
    for queue in (payments, alerts):
        queue.delete()
    payments.push([Outgoing({"amount": amount, "city": city}, user) for user, amount, city in PAYMENTS])

    stream.sources(["payments"]).partitioned().tumbling_time(2).grace_period(0).define()
    queen.consumer("payments-by-user", "fraud").process(detect, into="alerts", limit=3)
    alerts.each().idle(1).consume(warn)
