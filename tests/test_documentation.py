"""The pages name every route, metric and option that there is, and link to nothing that there is not."""

import re
from pathlib import Path

import msgspec
import pytest

from queenspark.broker.app import routes
from queenspark.broker.metrics import Metrics
from queenspark.broker.queues import QueueOptions
from queenspark.formats.definition import StreamDefinition

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "examples" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

ROUTES = {(route.method, route.path) for route in routes()}
METRICS = {
    family.name + ("_total" if family.type == "counter" else "") for family in Metrics().registry.collect()
}
OPTIONS = {field.encode_name for field in msgspec.structs.fields(QueueOptions)}

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ELSEWHERE = re.compile(r"[a-z]+:")


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def first_cells(text: str) -> set[str]:
    """The backquoted text at the beginning of the rows of all tables."""
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def section(text: str, heading: str) -> str:
    """The part of a page under a heading, up to the next one."""
    match = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"there is no section {heading}"
    return match[1]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    titles = HEADING.findall(FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links(path: Path) -> list[str]:
    """The links of a page that are not to another site."""
    found = LINK.findall(FENCE.sub("", path.read_text()))
    return [target for target in found if not ELSEWHERE.match(target)]


def test_every_route_is_in_the_page_of_the_http_api() -> None:
    rows = set(re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \|", page("http-api.md"), re.MULTILINE))
    assert rows == ROUTES


def test_every_metric_is_in_the_page_about_operations() -> None:
    assert first_cells(section(page("operations.md"), "Metrics")) == METRICS


def test_every_option_is_in_the_page_about_queues() -> None:
    assert first_cells(section(page("queues.md"), "Configure")) == OPTIONS


def test_every_field_of_a_definition_is_in_the_page_about_streams() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", section(page("streams.md"), "Define"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named == set(StreamDefinition.__struct_fields__)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in links(path):
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), f"{path.name} links to {target}"
        if anchor:
            assert anchor in anchors(linked.read_text()), f"{path.name} links to {target}"


def test_every_file_of_the_walk_of_a_message_is_there() -> None:
    named = set(re.findall(r"`([a-z_/]+(?:\.py|/))`", page("walk.md"))) - {"src/queenspark/"}
    missing = [name for name in sorted(named) if not (ROOT / "src" / "queenspark" / name).exists()]
    assert len(named) > 15
    assert missing == []
