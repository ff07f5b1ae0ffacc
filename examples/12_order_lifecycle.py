"""The lifecycle of an order: three services report to three queues, and the partition is the order.

A window collects the events of one order. Prints the state of each order and the next action.
"""

from queenspark import Queen, Window

EVENTS = {
    "order-created": ["o-1", "o-2", "o-3"],
    "payment-processed": ["o-1", "o-2"],
    "shipment-created": ["o-1"],
}


def check(window: Window) -> None:
    """Derive the state of an order from the queues that have a message."""
    match len(window.group_by("queue")):
        case 3:
            print(f"{window.key}: complete, tell the customer")
        case 2:
            print(f"{window.key}: paid, waits for its shipment")
        case _:
            print(f"{window.key}: not paid, send a reminder")


with Queen() as queen:
    stream = queen.stream("order-lifecycle", "orders")
    stream.delete()
    for name in EVENTS:
        queen.queue(name).delete()

    report = queen.transaction()  # one step for all three queues: all is stored, or nothing
    for name, orders in EVENTS.items():
        for order in orders:
            report.queue(name).partition(order).push({"order": order})
    report.commit()

    stream.sources(list(EVENTS)).partitioned().session(gap="2s").grace_period(0).define()
    queen.consumer("order-lifecycle", "orders").process(check, limit=3)
