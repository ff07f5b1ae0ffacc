"""Consumer groups: each group receives every window, at its own pace.

One group updates a dashboard; another is added later and archives the same windows from the beginning.
Prints the output of both.
"""

from queenspark import Outgoing, Queen, Window

DEPOSITS = [("anna", 50), ("ben", 20), ("anna", 30), ("ben", 5)]

shown: set[str] = set()
archived: set[str] = set()


def dashboard(window: Window) -> None:
    """Only the sum."""
    shown.add(window.id)
    print(f"dashboard: {window.key} has {sum(window.values('data.amount'))}")


def archive(window: Window) -> None:
    """Every message."""
    archived.add(window.id)
    print(f"archive: {window.key} paid in {window.values('data.amount')}")


with Queen() as queen:
    stream, deposits = queen.stream("account-activity"), queen.queue("deposits")
    stream.delete()
    deposits.delete()
    deposits.push([Outgoing({"amount": amount}, partition=owner) for owner, amount in DEPOSITS])

    stream.sources(["deposits"]).partitioned().tumbling_time(2).grace_period(0).define()
    queen.consumer("account-activity", "dashboard").process(dashboard, limit=2)
    queen.consumer("account-activity", "archive").process(archive, limit=2)
    print(f"the same windows: {shown == archived}")
