"""Seek and replay: move a group back in time to receive the windows from there on again.

Other groups are not affected. Prints the windows before and after the seek. The group of a plain queue is
moved the same way, with `queen.queue(name).group(group).seek("beginning")`.
"""

from queenspark import Queen, Window

SALES = [("10:00", 5), ("10:01", 7), ("10:02", 3), ("10:03", 9)]


def book(window: Window) -> None:
    print(f"{window.start:%H:%M}: {sum(window.values('data.pieces'))} pieces")


with Queen() as queen:
    stream = (
        queen.stream("sales-by-minute")
        .sources(["sales"])
        .tumbling_time("1m")
        .event_time("data.at")
        .grace_period(0)
        .idle_timeout(2)
    )
    sales = queen.queue("sales")
    stream.delete()
    sales.delete()
    sales.push([{"at": f"2025-11-03T{time}:30Z", "pieces": pieces} for time, pieces in SALES])
    stream.define()

    books = queen.consumer("sales-by-minute", "books")
    books.process(book, limit=4)

    print("again from 10:02 on")
    stream.seek("books", "2025-11-03T10:02:00Z")
    books.process(book, idle=2)
