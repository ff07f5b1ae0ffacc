"""Secrets are nowhere to be seen: in no event log, plan, log, error, metric, page or process list."""

import base64
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.access.conftest import make_key
from tests.access.issuer import SECRET as JWT_SECRET
from tests.access.issuer import token
from tests.broker_process import Broker
from tests.postgres_servers import PostgresServer
from tests.processes import descendants
from tests.system.pipeline_process import PipelineProcess
from tests.ui.conftest import Dashboard
from tests.wire.api import Api
from tests.wire.deadline import eventually
from tests.wire.sql import Sql

PASSWORD = "hunter2-planted-password"
KEY = base64.b64encode(b"a planted key of thirty-two byte").decode()


def with_password(url: str) -> str:
    """The URL of a database with a password, which the tests' server ignores."""
    parts = psycopg.conninfo.conninfo_to_dict(url)
    socket, user = parts.get("host"), parts.get("user")
    return f"postgresql://{user}:{PASSWORD}@/{parts['dbname']}?host={socket}&port={parts.get('port', 5432)}"


@pytest.fixture
def seen(system_postgres: PostgresServer, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Everything visible of a system with secrets, by location; and its secrets."""
    events = tmp_path / "events"
    events.mkdir()
    properties = tmp_path / "spark.conf"
    properties.write_text(f"spark.eventLog.enabled true\nspark.eventLog.dir file://{events}\n")
    with system_postgres.database() as plain:
        url = with_password(plain)
        secrets: dict[str, Any] = {
            "jwt_enabled": "true",
            "jwt_secret": JWT_SECRET,
            "encryption_key": f"k1:{KEY}",
        }
        broker = Broker(url, tmp_path / "broker.log", log_level="debug", access_control="true", **secrets)
        pipeline = PipelineProcess(
            url, tmp_path / "pipeline", spark_properties=properties, encryption_key=f"k1:{KEY}"
        )
        pipeline.start()
        found: dict[str, str] = {}
        try:
            pipeline.wait_until_leading()
            _, api_key = make_key(plain, role="admin")
            found["API key"] = api_key.split("_", 2)[2]
            found["token"] = bearer = token(seconds=600)
            with Api(broker.url, plain) as api, ExitStack() as running:
                api.http.headers["Authorization"] = f"Bearer {api_key}"
                found |= use(api)
                dashboard = Dashboard(broker, api, tmp_path / "ui.log", api_key=api_key)
                running.callback(dashboard.stop)
                found |= pages(dashboard.url, api_key)
                found |= pages(dashboard.url, bearer)
                found |= processes([broker.pid, pipeline.process.pid, dashboard.process.pid])
            with Api(broker.url) as api:
                api.http.headers["Authorization"] = f"Bearer {bearer}"
                found["me"] = api.get("/api/v1/me").text
        finally:
            pipeline.stop()
            broker.stop()
        files = [
            broker.log_file,
            tmp_path / "ui.log",
            *events.rglob("*"),
            *(tmp_path / "pipeline").rglob("*"),
        ]
        for path in files:
            if path.is_file():
                found[str(path)] = path.read_bytes().decode("latin-1")
        assert any("events" in name and "SparkListener" in text for name, text in found.items())
        yield found


def use(api: Api) -> dict[str, str]:
    """The API's responses while a job over an encrypted queue runs, and when something is wrong."""
    api.configure("secret", encryptionEnabled=True)
    api.push("secret", {"n": 1})
    Sql(api)(
        "CREATE STREAM seen AS SELECT n FROM secret;"
        "CREATE STREAM fails AS SELECT 1 / (n - n) AS x FROM secret"
    )
    eventually(lambda: api.read("/api/v1/messages", queue="seen")["messages"], within=120)
    paths = (
        "/health", "/metrics", "/metrics/prometheus", "/api/v1/status", "/api/v1/system", "/api/v1/keys",
        "/api/v1/audit", "/api/v1/attention", "/api/v1/series", "/api/v1/jobs",
        "/api/v1/jobs/fails", "/api/v1/resources/streams/stats", "/openapi.json", "/no/such/path",
        "/api/v1/jobs/none",
    )  # fmt: skip
    responses = {path: api.get(path).text for path in paths}
    responses["an error"] = api.post("/api/v1/sql", {"sql": "SELECT FROM"}).text
    return responses


def pages(url: str, credential: str) -> dict[str, str]:
    """The dashboard's pages as the owner of a credential gets them, with the responses to a login."""
    with httpx2.Client(base_url=url, timeout=20) as client:
        login = client.post("/login", data={"credential": credential}, headers={"Origin": url})
        assert login.status_code == 303, login.text
        shown = {"login page": client.get("/login"), "login": login}
        for path in ("/", "/queues", "/streams", "/jobs", "/groups", "/system", "/keys", "/audit"):
            shown[path] = client.get(path)
            assert shown[path].status_code == 200, path
    return {
        f"dashboard {path} of {credential[:4]}": f"{page.headers}\n{page.text}"
        for path, page in shown.items()
    }


def processes(pids: list[int]) -> dict[str, str]:
    """The command lines of processes and of all that they started, as `ps` shows them."""
    found = {}
    children = [child for pid in pids for child in descendants(pid)]
    for pid in [*pids, *children]:
        try:
            found[f"command line of {pid}"] = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            continue
    assert any("java" in line for line in found.values())
    assert str(os.getpid()) not in found
    return found


@pytest.mark.long
def test_secrets_are_shown_nowhere(seen: dict[str, str]) -> None:
    secrets = [PASSWORD, KEY, "a planted key of thirty-two byte", JWT_SECRET]
    secrets += [seen.pop("API key"), seen.pop("token")]
    assert "settings" in seen["/api/v1/system"]
    leaks = [(where, secret) for where, text in seen.items() for secret in secrets if secret in text]
    assert leaks == []
    assert '"anna"' in seen["me"]
