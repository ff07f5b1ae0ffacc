"""The tables of rights in the docs are those of the routes."""

import re
from pathlib import Path

from queenspark.broker.app import routes
from tools.rights import PAGE, tables


def test_the_tables_of_rights_are_current() -> None:
    assert tables() in PAGE.read_text(), "run tools/rights.py"


def test_every_route_is_in_the_http_api() -> None:
    page = (Path(PAGE).parent / "http-api.md").read_text()
    documented = set(re.findall(r"^\| (GET|POST|DELETE) \| `([^`]+)`", page, re.MULTILINE))
    assert {(route.method, route.path) for route in routes()} == documented
