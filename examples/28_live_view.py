"""A live view: running totals with each message, without reading the messages again.

With `emit("changes")` a window is emitted after each of its messages, as its next revision. Prints the
score of a match after each goal, and at the end the average of each player's last two ratings.
"""

from queenspark import Queen, Window

GOALS = [("red", 1), ("blue", 1), ("red", 1), ("red", 1)]
RATINGS = [("ann", 6), ("ann", 8), ("ben", 5), ("ann", 9)]


def score(window: Window) -> None:
    """The revision counts the messages of the window."""
    print(f"goal {window.revision}: red {window.aggregates['red']}, blue {window.aggregates['blue']}")


def rating(window: Window) -> None:
    """One for each rating: the last two of its player."""
    print(f"{window.key}: {window.aggregates['mean']} over {window.count}")


with Queen() as queen:
    match, form = queen.stream("match"), queen.stream("form")
    goals, ratings = queen.queue("goals"), queen.queue("ratings")
    for used in (match, form, goals, ratings):
        used.delete()
    goals.push([{"team": team, "n": n} for team, n in GOALS])
    ratings.push([{"player": player, "value": value} for player, value in RATINGS])

    match = match.sources(["goals"]).count(100).emit("changes")
    match.aggregate(
        red="count(*) filter (where data.team = 'red')", blue="count(*) filter (where data.team = 'blue')"
    ).define()
    queen.consumer("match", "screen").process(score, limit=4, messages=False)

    form.sources(["ratings"]).key("data.player").rows(2).aggregate(mean="avg(data.value)").define()
    queen.consumer("form", "screen").process(rating, limit=4, messages=False)
