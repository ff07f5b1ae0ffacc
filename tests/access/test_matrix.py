"""Every route with every kind of caller: without a token, with a wrong one, of each role and scope."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from uuid import uuid4

import httpx2
import pytest

from queenspark.broker.app import routes
from queenspark.broker.http import Caller, Right, Route, parse_scopes
from queenspark.broker.http.right import OF_EVERYBODY, PARTS, ROLES
from queenspark.broker.http.scope import KINDS
from tests.access.calls import ROUTES, UNKNOWN, Ids, call, identity
from tests.access.issuer import public_pem, token
from tests.access.test_tokens import confused, unsigned
from tests.broker_process import Broker
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, Json, responded
from tests.wire.deadline import eventually

EVERY_ROUTE = pytest.mark.parametrize("route", ROUTES, ids=identity)
SCOPES = [f"{kind}:m*:{action}" for kind, actions in KINDS.items() if kind != "system" for action in actions]
SCOPES += [f"system:{action}" for action in KINDS["system"]]


@pytest.fixture(scope="module")
def client(closed: Broker) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=closed.url, verify=False, timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def holders(closed: Broker, key: Callable[..., str], admin: Api) -> dict[str, tuple[str, Caller]]:
    """Keys of every role and every scope, with the callers that they stand for."""
    held = {role: (key(role, role=role), Caller.known("", "key", role, None)) for role in ROLES}
    for scope in SCOPES:
        held[scope] = key(scope, scopes=[scope]), Caller.known("", "key", None, parse_scopes([scope]))
    return held


def wrong_tokens() -> dict[str, str]:
    return {
        "wrong": token(key=None)[:-4] + "AAAA",
        "expired": token(seconds=-7200),
        "wrong algorithm": confused(public_pem("RS256").encode()),
        "none": unsigned({"alg": "none"}),
    }


@EVERY_ROUTE
def test_every_route_requires_a_valid_token(closed: Broker, client: httpx2.Client, route: Route) -> None:
    assert call(client, route, "mine", None).status_code == 401
    # From addresses of their own, or they would have to wait.
    address = f"127.0.2.{1 + ROUTES.index(route)}"
    transport = httpx2.HTTPTransport(local_address=address, verify=False)
    with httpx2.Client(base_url=closed.url, transport=transport) as guesser:
        for kind, wrong in wrong_tokens().items():
            response = call(guesser, route, "mine", wrong)
            assert response.status_code == 401, kind
            assert response.headers["www-authenticate"]


@EVERY_ROUTE
def test_a_role_or_scope_that_lacks_the_right_is_403(
    client: httpx2.Client, holders: dict[str, tuple[str, Caller]], admin: Api, route: Route
) -> None:
    has_queue = ":queue" in route.path
    for holder, (credential, caller) in holders.items():
        if has_queue and caller.can(route.right):
            admin.push("mine", {"n": 1})  # an earlier one may have deleted it
        response = call(client, route, "mine", credential)
        if route.right in PARTS and caller.role is None and caller.can(route.right):
            continue  # each operation and statement needs its own: see test_reach.py
        if caller.can(route.right):
            assert response.status_code not in (401, 403), f"{holder}: {response.text}"
            assert response.status_code < 500, f"{holder}: {response.text}"
            assert not has_queue or response.status_code != 404, f"{holder}: {response.text}"
        else:
            assert response.status_code == 403, f"{holder}: {response.text}"
            assert str(route.right) in response.json()["error"]


#: Their behaviour with names outside the scopes is in test_reach.py: they have none, or look them up.
_WITHOUT_A_NAME = ("system", "access", "sql", "known")


#: Responses about a missing object other than 404.
_MISSING = {"GET /api/v1/pop": (204,), "POST /api/v1/stream/ack": (400,)}


class Theirs:
    """Real objects outside the scopes: a queue with a lease and a dead letter, a stream, a job."""

    def __init__(self, admin: Api, name: str) -> None:
        self.name = name
        self.job = f"{name}_rows"
        admin.configure(name, namespace=name, task=name)
        admin.push(name, {"n": 1}, {"n": 2}, {"n": 3})
        (dead,) = admin.take(name, consumerGroup="g")
        self.dead = _ids(dead)
        assert admin.ack(dead, "dlq", consumerGroup="g", error="broken")["dlq"]
        trace = {name: dead[name] for name in ("transactionId", "partitionId")}
        responded(admin.post("/api/v1/traces", {**trace, "data": {}, "traceNames": [name]}), 201)
        self.leased = _ids(admin.take(name, consumerGroup="g")[0])
        sql = f"CREATE STREAM {self.job} AS SELECT n FROM `{name}`"
        responded(admin.post("/api/v1/sql", {"sql": sql}), 200)
        with closing(StreamApi(admin, admin.database_url or "")) as stream:
            stream.name = stream.namespace = stream.queue = name
            stream.define(partitioned=True)
            records = [stream.push({"n": 4}, partition=key) for key in ("a", "b")]
            stream.seal(*(stream.over(own) for own in records))
            self.window = _ids(stream.poll())

    def request(self, route: Route) -> tuple[str, Ids]:
        """The name and the ids for a route."""
        if route.right.kind == "job":
            return self.job, UNKNOWN
        if route.right.kind == "stream":
            return self.name, self.window
        has_lease = ":leaseId" in route.path or "/ack" in route.path
        return self.name, self.leased if has_lease else self.dead


def _ids(delivered: Json) -> Ids:
    return Ids(delivered["leaseId"], delivered["partitionId"], delivered["transactionId"])


@pytest.fixture(scope="module")
def theirs(admin: Api) -> Callable[..., Theirs]:
    """Objects outside the scopes; made again after a test that may have changed them."""
    made: list[Theirs] = []

    def fresh(*, is_kept: bool) -> Theirs:
        found = made.pop() if made else Theirs(admin, f"theirs{uuid4().hex[:8]}")
        if is_kept:
            made.append(found)
        return found

    return fresh


@EVERY_ROUTE
def test_a_name_outside_the_scopes_is_as_if_it_did_not_exist(
    client: httpx2.Client,
    holders: dict[str, tuple[str, Caller]],
    admin: Api,
    theirs: Callable[..., Theirs],
    route: Route,
) -> None:
    if route.right.kind in _WITHOUT_A_NAME:
        return
    name, ids = theirs(is_kept=route.method == "GET" and "/pop" not in route.path).request(route)
    admin.delete("/api/v1/resources/queues/mine")  # its groups are in scope
    listed = []
    for holder, (credential, caller) in holders.items():
        if caller.scopes is None or not caller.can(route.right):
            continue
        response = call(client, route, name, credential, ids)
        if route.right in PARTS and response.status_code == 403:
            continue
        if response.status_code == 200:
            # A list without it, or a response about a missing object.
            assert "theirs" not in response.text, f"{holder}: {response.text}"
            body = response.json()
            for each in body if isinstance(body, list) else [body]:
                assert not each.get("success") or each["count"] == 0, f"{holder}: {body}"
            listed.append(body)
        else:
            assert response.status_code in _MISSING.get(identity(route), (404,)), f"{holder}: {response.text}"
    # It does exist: an administrator gets it, and a list has it.
    as_admin = partial(call, client, route, name, holders["admin"][0], ids)
    if route.method == "GET" and listed:
        eventually(lambda: name in as_admin().text)  # the lag is counted in the background
    else:
        found = as_admin()
        assert found.status_code in (200, 201), found.text
        assert found.json() not in listed, found.text


def test_every_route_has_a_right_and_every_right_an_owner() -> None:
    assert all(isinstance(route.right, Right) for route in routes())
    assert {route.right for route in routes()} == set(Right)
    scoped = {right for right in Right if any(scope.grants(right) for scope in parse_scopes(SCOPES))}
    assert scoped | set(PARTS) | OF_EVERYBODY | {Right.ACCESS_ADMIN} == set(Right)
    public = {identity(route) for route in routes() if route.right is Right.PUBLIC}
    assert public == {"GET /", "GET /streams", "GET /health", "GET /openapi.json"}


def test_paths_and_headers_do_not_bypass_access_control(closed: Broker, client: httpx2.Client) -> None:
    for path in (
        "/health/../api/v1/keys", "//api/v1/keys", "/api//v1/keys", "/API/V1/KEYS", "/api/v1/keys/",
        "/api/v1/keys%2f", "/api/v1/keys;x=1", "/api/v1/keys?access=1", "/api/v1/keys%00",
        "/health%2f..%2fapi%2fv1%2fkeys", "/openapi.json/../api/v1/keys", "/api/v1/./keys",
    ):  # fmt: skip
        response = client.get(httpx2.URL(closed.url + "/").copy_with(raw_path=path.encode()))
        assert response.status_code in (400, 401, 404), f"{path}: {response.status_code}"
    for header in (
        "X-Original-URL", "X-Rewrite-URL", "X-Forwarded-For", "X-Forwarded-User", "X-Real-IP", "Forwarded",
        "X-HTTP-Method-Override", "X-Remote-User", "Cookie", "Host", "X-Forwarded-Host",
    ):  # fmt: skip
        assert client.get("/api/v1/keys", headers={header: "127.0.0.1"}).status_code in (400, 401), header
    assert client.head("/api/v1/keys").status_code == 401
    # OPTIONS lists the methods of a path, which the OpenAPI document publishes anyway.
    assert client.options("/api/v1/keys").content == b""
