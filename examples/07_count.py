"""Count windows: a fixed number of messages of a key, regardless of time.

A window has four prices, and a new one starts every second price. Prints each with its average. The last
two prices wait for two more.
"""

from queenspark import Queen, Window

PRICES = [10, 12, 11, 15, 18, 20]


def show(window: Window) -> None:
    """The prices and their average."""
    prices = window.values("data")
    print(f"{window.key}: {prices}, on average {sum(prices) / len(prices)}")


with Queen() as queen:
    stream, prices = queen.stream("moving-average"), queen.queue("prices")
    stream.delete()
    prices.delete()
    prices.partition("ACME").push(PRICES)

    stream.sources(["prices"]).partitioned().count(4, slide=2).define()
    queen.consumer("moving-average", "show").process(show, limit=2)
