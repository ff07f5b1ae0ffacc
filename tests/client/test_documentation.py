"""The page about the client names every public name, and its examples run one after the other."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from queenspark import client
from tests.broker_process import Broker
from tests.streams.stream_api import StreamApi
from tests.test_documentation import page
from tests.wire.deadline import eventually

PAGE = page("client.md")
WORDS = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE)))) | set(
    re.findall(r"[├└]── (\w+)", PAGE)
)
CLASSES = [
    client.Queen,
    client.Queue,
    client.Stream,
    client.Consumer,
    client.Window,
    client.Batch,
    client.LeasedMessage,
    client.Messages,
    client.Transaction,
    client.Admin,
    client.Event,
    client.DeadLetter,
    client.Outgoing,
    client.Pushed,
    client.SqlResults,
    client.SqlResult,
    client.SqlColumn,
]
SAME = {"index", "count", "as_ack", "lease"}
"""The members of every sequence, and those for internal use."""


def public(kind: type) -> list[str]:
    return [name for name in dir(kind) if not name.startswith("_") and name not in SAME]


@pytest.mark.parametrize("name", client.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert name in WORDS


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_method_is_on_the_page_with_its_arguments(kind: type) -> None:
    for name in public(kind):
        assert name in WORDS, f"{kind.__name__}.{name} is missing"
        member = inspect.getattr_static(kind, name)
        if inspect.isfunction(member):
            for argument in list(inspect.signature(member).parameters.values())[1:]:
                documented = argument.name in WORDS or argument.kind is argument.VAR_KEYWORD
                assert documented, f"{argument.name} of {kind.__name__}.{name} is missing"
    for name in inspect.signature(client.Queen).parameters:
        assert name in WORDS, f"{name} of Queen is missing"


def test_both_clients_have_the_same_names() -> None:
    for kind in CLASSES:
        other = getattr(client, f"Async{kind.__name__}", None)
        if other is not None:
            assert {name.replace("aclose", "close") for name in public(other)} == set(public(kind))


def test_the_examples_run(shared_broker: Broker, stream: StreamApi, tmp_path: Path) -> None:
    """Windows of the page's stream are sealed here, as soon as it is defined."""
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
    program = program.replace("http://127.0.0.1:6632", shared_broker.url)
    program = program.replace("http://localhost:6632", shared_broker.url)
    running = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=os.environ | {"QUEENSPARK_URL": shared_broker.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: _defined(stream) or running.poll() is not None, within=60)
        if running.poll() is None:
            for key in ("anna", "bert"):
                stream.seal(stream.over(stream.push({"id": 1, "amount": 2}, {"id": 2}, partition=key)))
        said, _ = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 0, said
    for line in (
        "anna 7",
        "[7, 8, 9, 10, 11]",
        "anna 9 ValueError: no amount",
        "300000",
        "{'delivered': 1, 'done': 1}",
        "['anna', 'bert']",
        "page string",
        "['orders'",
    ):
        assert line in said, said


def _defined(stream: StreamApi) -> bool:
    """Whether the page has defined its stream; then it is the one that is sealed."""
    stream.name, stream.namespace, stream.queue = "baskets", "shop", "orders"
    response = stream.api.get("/api/v1/resources/streams/baskets")
    if response.status_code != 200:
        return False
    stream.id = int(response.json()["id"])
    ((stream.queue_id,),) = stream.run("SELECT queue_id FROM queenspark.streams WHERE id = %s", stream.id)
    return True
