"""Long processing: a lease is renewed while the handler works, so the window is not redelivered.

The lease lasts three seconds and the work four. `process` renews the lease automatically, at a third of
its time. With `poll` you renew it yourself. Prints the outcome of both.
"""

import time
from collections import Counter

from queenspark import Queen, Window

seen: Counter[str] = Counter()


def work(window: Window) -> None:
    time.sleep(4)
    print(f"worked through {window.messages[0].data} to {window.messages[-1].data}")


with Queen() as queen:
    stream, pictures = queen.stream("picture-batches"), queen.queue("pictures")
    stream.delete()
    pictures.delete()
    pictures.push([f"{number}.png" for number in range(8)])
    stream.sources(["pictures"]).count(4).lease_timeout("3s").define()

    resize = queen.consumer("picture-batches", "resize", on_event=lambda event: seen.update([event.kind]))
    resize.process(work, limit=1)
    print(f"deliveries: {seen['delivered']}, lost: {seen['lost']}, renewed by itself: {seen['renewed'] > 0}")

    window = resize.poll()
    assert window is not None
    window.renew("10s")
    time.sleep(3.5)  # longer than the lease was at first
    window.ack()
    print(f"{window.messages[0].data} to {window.messages[-1].data}: renewed and acked by hand")
