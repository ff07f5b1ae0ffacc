"""`queenspark status`."""

from tests.broker_process import Broker
from tests.command import Command


def test_a_healthy_broker_says_so(queenspark: Command, shared_broker: Broker) -> None:
    result = queenspark("status")
    assert result.code == 0
    assert shared_broker.url in result.out
    assert "healthy" in result.out


def test_the_state_is_available_as_json(queenspark: Command, queue: str) -> None:
    queenspark("push", queue, "1")
    state = queenspark("status", "--json").json()
    assert state["health"]["status"] == "healthy"
    assert state["overview"]
