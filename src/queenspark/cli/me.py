"""`queenspark me`: the caller's identity and rights."""

from queenspark.cli.broker_api import BrokerApi
from queenspark.cli.options import AsJson, Url
from queenspark.cli.output import print_facts, print_json


def me(url: Url = None, as_json: AsJson = False) -> None:
    """Show your identity and rights on the broker."""
    with BrokerApi(url) as broker:
        response = broker.get("me")
    if as_json:
        return print_json(response)
    lists = {name: ", ".join(response[name]) for name in ("scopes", "rights") if response[name] is not None}
    return print_facts({**response, **lists})
