"""Explains why a SELECT has no rows yet."""

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.client.sync.lines import Lines


def no_rows_hint(url: str, lines: Lines | None = None) -> str:
    """The likely reason, queried on a separate connection.

    A caller without the right to read the system gets it from the header of the SELECT's response.
    """
    try:
        with BrokerApi(url) as broker:
            pipeline = broker.get("resources", "streams", "stats")["pipeline"]
    except Failure:
        if lines is not None and lines.is_led is False:
            return (
                "No rows yet: no pipeline was leading when the SELECT began; start one with"
                " `queenspark pipeline`."
            )
        return "No rows yet: no record matches, or the pipeline is starting or not running."
    if not pipeline["active"]:
        return "No rows yet: no pipeline is leading; start one with `queenspark pipeline`."
    if error := pipeline["query"].get("error"):
        return f"No rows yet: the pipeline's query fails and restarts: {error}"
    return "No rows yet: no record matches, or no window is sealed yet."
