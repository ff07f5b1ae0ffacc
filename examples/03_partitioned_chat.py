"""A partitioned stream: the same partition name in several queues is one key with its own windows.

Messages, reactions and edits are three queues, and the partition is the chat room. Prints one line per
room with all of its events, in order.
"""

import time

from queenspark import Queen, Window

QUEUES = ["chat-messages", "chat-reactions", "chat-edits"]


def summarise(window: Window) -> None:
    """One room: its users and their actions."""
    by_queue = window.group_by("queue")
    counts = [f"{len(by_queue.get(queue, []))} {queue.removeprefix('chat-')}" for queue in QUEUES]
    users = list(dict.fromkeys(window.values("data.user")))
    print(f"{window.key}: {', '.join(counts)} by {' and '.join(users)}")


with Queen() as queen:
    stream = queen.stream("chat-activity", "chat")
    stream.delete()
    messages, reactions, edits = queues = [queen.queue(name) for name in QUEUES]
    for queue in queues:
        queue.delete()
        queue.create()
    stream.sources(QUEUES).partitioned().tumbling_time(3).grace_period(0).define()

    time.sleep(-time.time() % 3)  # align with the start of a window, so that everything is in one
    messages.partition("room-1").push({"user": "alice", "text": "Helo!"})
    messages.partition("room-2").push({"user": "carol", "text": "Anybody here?"})
    reactions.partition("room-1").push({"user": "bob", "emoji": "👋"})
    edits.partition("room-1").push({"user": "alice", "text": "Hello!"})

    queen.consumer("chat-activity", "summaries").process(summarise, limit=2)
