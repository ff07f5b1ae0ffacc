"""Maintenance: pushes are staged, pops return nothing, and nothing is lost."""

from collections.abc import Iterator

import pytest

from tests.conftest import StartBroker
from tests.wire.api import Api, payloads_of, refused, responded
from tests.wire.deadline import eventually

PUSH = "/api/v1/system/maintenance"
POP = "/api/v1/system/maintenance/pop"


@pytest.fixture(scope="module")
def maintained(module_broker: StartBroker) -> Iterator[Api]:
    """The API of a dedicated broker: maintenance affects all clients."""
    with Api(module_broker().url) as api:
        yield api


@pytest.fixture
def own(maintained: Api) -> Iterator[Api]:
    """The same API; turns maintenance off after the test."""
    yield maintained
    for mode in (PUSH, POP):
        switch(maintained, mode, enabled=False)


def switch(api: Api, mode: str, enabled: bool) -> None:
    responded(api.post(mode, {"enabled": enabled}), 200)


@pytest.mark.parametrize("mode", [PUSH, POP])
def test_a_mode_can_be_asked_for_and_switched(own: Api, mode: str) -> None:
    assert not any(value is True for value in own.read(mode).values())
    switch(own, mode, enabled=True)
    assert any(value is True for value in own.read(mode).values())
    switch(own, mode, enabled=False)
    assert not any(value is True for value in own.read(mode).values())


@pytest.mark.parametrize("mode", [PUSH, POP])
def test_a_mode_is_switched_by_a_boolean(own: Api, mode: str) -> None:
    assert "enabled" in refused(own.post(mode, {}), 400)
    assert "enabled" in refused(own.post(mode, {"enabled": "perhaps"}), 400)


def test_pushes_are_accepted_and_staged_during_push_maintenance(own: Api, queue: str) -> None:
    own.push(queue, "before")
    switch(own, PUSH, enabled=True)
    own.push(queue, "during")
    assert payloads_of(own.drain(queue, 1)) == ["before"]
    assert own.empty(queue)


def test_staged_pushes_are_appended_in_order_when_maintenance_ends(own: Api, queue: str) -> None:
    own.push(queue, 0)
    switch(own, PUSH, enabled=True)
    for number in range(1, 20):
        own.push(queue, number)
    switch(own, PUSH, enabled=False)
    own.push(queue, 20)
    delivered = payloads_of(own.drain(queue, 21))
    assert [number for number in delivered if number < 20] == list(range(20))
    assert sorted(delivered) == list(range(21))


def test_staged_pushes_survive_a_crash_of_the_broker(broker: StartBroker, queue: str) -> None:
    started = broker()
    with Api(started.url) as api:
        switch(api, PUSH, enabled=True)
        api.push(queue, "staged")
    started.kill()
    started.start()
    with Api(started.url) as api:
        assert api.empty(queue)
        switch(api, PUSH, enabled=False)
        assert payloads_of(api.take(queue)) == ["staged"]


def test_a_staged_duplicate_is_stored_once(own: Api, queue: str) -> None:
    item = {"queue": queue, "payload": 1, "transactionId": "same"}
    switch(own, PUSH, enabled=True)
    own.push_items([item])
    own.push_items([item])
    switch(own, PUSH, enabled=False)
    assert payloads_of(own.drain(queue, 1)) == [1]
    assert own.empty(queue)


def test_bad_pushes_are_refused_during_push_maintenance_too(own: Api, queue: str) -> None:
    switch(own, PUSH, enabled=True)
    refused(own.push_items([{"queue": queue, "payload": 1, "partition": 7}]), 400)


def test_pops_return_204_during_pop_maintenance(own: Api, queue: str) -> None:
    own.push(queue, 1)
    switch(own, POP, enabled=True)
    assert own.pop(queue, wait="true", timeout=200).status_code == 204
    assert own.pop(queue).status_code == 204
    switch(own, POP, enabled=False)
    assert payloads_of(own.take(queue)) == [1]


def test_an_ack_is_taken_during_pop_maintenance(own: Api, queue: str) -> None:
    own.push(queue, 1)
    message = own.take(queue)[0]
    switch(own, POP, enabled=True)
    assert own.ack(message)["success"] is True


def test_every_broker_obeys(broker: StartBroker, queue: str) -> None:
    with Api(broker().url) as one, Api(broker().url) as other:
        one.push(queue, 1)
        switch(one, POP, enabled=True)
        eventually(lambda: other.read(POP) == one.read(POP))
        assert other.empty(queue)
        switch(one, POP, enabled=False)
        eventually(lambda: not other.empty(queue))
