"""Session windows: a session lasts while messages arrive, and ends when the key is idle for the gap.

Each visitor has their own sessions. Prints the pages of each; alice comes back after a pause.
"""

import time

from queenspark import Outgoing, Queen, Window

VISITS = [("alice", "/"), ("alice", "/books"), ("bob", "/help")]


def show(window: Window) -> None:
    """The pages of one session."""
    print(f"{window.key}: {' → '.join(window.values('data.page'))}")


with Queen() as queen:
    stream, visits = queen.stream("visits-by-session"), queen.queue("visits")
    stream.delete()
    visits.delete()
    visits.create()
    stream.sources(["visits"]).partitioned().session(gap="1s").grace_period(0).define()

    visits.push([Outgoing({"page": page}, partition=visitor) for visitor, page in VISITS])
    time.sleep(1.5)
    visits.partition("alice").push([{"page": "/"}, {"page": "/cart"}, {"page": "/pay"}])

    queen.consumer("visits-by-session", "show").process(show, limit=3)
