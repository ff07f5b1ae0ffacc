"""Quick start: push messages, group them into windows, process each window.

Prints the messages of a two-second window. The stream uses push time, the default.
"""

from queenspark import Queen, Window

EVENTS = [
    {"user": "alice", "action": "signed in"},
    {"user": "bob", "action": "signed in"},
    {"user": "alice", "action": "bought a book"},
]


def show(window: Window) -> None:
    """Called with each window. When it returns, the window is acked and not redelivered."""
    for message in window.all_messages:
        print(f"{message.data['user']} {message.data['action']}")
    print(f"a window of {window.count} messages")


with Queen() as queen:
    stream, events = queen.stream("user-activity"), queen.queue("user-events")
    stream.delete()  # left over from an earlier run
    events.delete()

    events.push(EVENTS)
    stream.sources(["user-events"]).tumbling_time(2).grace_period(0).define()
    queen.consumer("user-activity", "analytics").process(show, limit=1)
