"""The seam before every handler: it sees the request and its route, and a rejected request has no effect."""

import asyncio
import re

import httpx2
import pytest

from queenspark.broker.app import application, routes
from queenspark.broker.broker import Broker
from queenspark.broker.errors import ApiError
from queenspark.broker.http import (
    Admit,
    App,
    Call,
    Caller,
    Cors,
    OpenGate,
    Response,
    Right,
    Route,
    json,
)
from queenspark.settings import Settings
from queenspark.store.errors import DatabaseUnavailable

ROUTES = routes()
PARAMETER = re.compile(r":\w+")


async def send(app: App, method: str, path: str, **more: object) -> httpx2.Response:
    """One request to an application."""
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://broker") as client:
        return await client.request(method, path, **more)  # type: ignore[arg-type]


def broker() -> Broker:
    """A broker that was never started: any access to its store fails."""
    return Broker(Settings(database_url="postgresql://nobody@localhost:1/nowhere"))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_rejected_caller_gets_the_error_on_every_route(route: Route) -> None:
    seen = []

    async def refuse(call: Call, wanted: Route) -> Caller:
        seen.append((call.method, wanted.right))
        raise ApiError(403, f"{wanted.right} is not yours")

    path = PARAMETER.sub("x", route.path)
    response = asyncio.run(send(application(broker(), refuse), route.method, path, content=b"no json"))
    assert response.status_code == 403
    assert response.json() == {
        "error": f"{route.right} is not yours", "code": "forbidden", "retryable": False,
    }  # fmt: skip
    assert seen == [(route.method, route.right)]


def test_a_refusal_of_get_is_one_of_head() -> None:
    async def refuse(call: Call, route: Route) -> Caller:
        raise ApiError(401, "who are you?")

    assert asyncio.run(send(application(broker(), refuse), "HEAD", "/health")).status_code == 401


def whoami(admit: Admit) -> App:
    """An application that responds with the caller, and one of the headers."""

    async def response(_: Broker, call: Call) -> Response:
        return json({"name": call.caller.name, "role": call.caller.role, "x": call.headers.get("x-y")})

    route = Route("GET", "/me", response, "Who is calling", Right.PUBLIC, {200: dict[str, str]})
    return App(broker(), [route], max_body_bytes=10, max_depth=10, cors=Cors(), admit=admit)


def test_a_handler_sees_the_caller_and_the_headers() -> None:
    async def admit(call: Call, route: Route) -> Caller:
        return Caller(call.headers["Authorization"].removeprefix("Bearer "), role="reader")

    headers = {"Authorization": "Bearer anna", "X-Y": "z"}
    response = asyncio.run(send(whoami(admit), "GET", "/me", headers=headers))
    assert response.json() == {"name": "anna", "role": "reader", "x": "z"}


def test_everybody_is_anonymous_unless_the_seam_says_otherwise() -> None:
    response = asyncio.run(send(whoami(OpenGate(Cors(), "127.0.0.1").admit), "GET", "/me"))
    assert response.json() == {"name": "anonymous", "role": None, "x": None}


def test_a_failure_of_the_seam_is_an_ordinary_error() -> None:
    async def fail(call: Call, route: Route) -> Caller:
        raise DatabaseUnavailable("the database is away")

    response = asyncio.run(send(application(broker(), fail), "GET", "/health"))
    assert response.status_code == 503
    assert response.json()["retryable"] is True
    assert response.headers["retry-after"] == "1"


def test_every_right_is_needed_somewhere() -> None:
    assert {route.right for route in ROUTES} == set(Right)
