"""`queenspark status`: health and totals."""

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.exits import Failure
from queenspark.cli.options import AsJson, Url
from queenspark.cli.output import print_facts, print_json
from queenspark.client.brokers import shown


def status(url: Url = None, as_json: AsJson = False) -> None:
    """Show the health of the broker and its database, and totals over all queues."""
    with BrokerApi(url) as broker:
        healthy, health = broker.health()
        overview = broker.get("resources", "overview") if healthy else None
    where = shown(broker.url)
    if as_json:
        print_json({"url": where, "health": health, "overview": overview})
    else:
        print_facts({"url": where, **health, **(overview if isinstance(overview, dict) else {})})
    if not healthy:
        raise Failure(f"The broker at {where} is unhealthy: {health.get('error') or health.get('status')}.")
