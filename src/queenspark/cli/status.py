"""`queenspark status`: health and totals."""

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.options import AsJson, Url
from queenspark.cli.output import print_facts, print_json


def status(url: Url = None, as_json: AsJson = False) -> None:
    """Show the health of the broker and its database, and totals over all queues."""
    with BrokerApi(url) as broker:
        healthy, health = broker.health()
        overview = broker.get("resources", "overview") if healthy else None
    if as_json:
        print_json({"url": broker.url, "health": health, "overview": overview})
    else:
        print_facts({"url": broker.url, **health, **(overview if isinstance(overview, dict) else {})})
    if not healthy:
        raise Failure(
            f"The broker at {broker.url} is unhealthy: {health.get('error') or health.get('status')}."
        )
