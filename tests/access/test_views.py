"""The routes behind the dashboard: limited to visible objects; and files only for administrators."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from queenspark.broker.http.right import ROLES
from tests.access.conftest import As
from tests.wire.api import Api, Json, refused, responded
from tests.wire.deadline import eventually

MakeKey = Callable[..., str]


@pytest.fixture(scope="module")
def us(admin: Api) -> str:
    """A stream, a paused job and a silent group in our names, and the same in those of others."""
    us = f"us{uuid4().hex[:8]}"
    for namespace in (us, f"not{us}"):
        queue, job = f"{namespace}.orders", f"{namespace}_rows"
        admin.push(queue, {"n": 1}, {"n": 2})
        definition = {
            "name": "minutes", "namespace": namespace, "source_queue_names": [queue],
            "window_type": "tumbling", "window_duration_ms": 1000,
        }  # fmt: skip
        responded(admin.post("/api/v1/stream/define", definition), 201)
        statements = f"CREATE STREAM {job} AS SELECT n FROM `{queue}`; PAUSE JOB {job}"
        responded(admin.post("/api/v1/sql", {"sql": statements}), 200)
        admin.take(queue, consumerGroup=f"mail of {namespace}")
    with psycopg.connect(admin.database_url or "", autocommit=True) as connection:
        connection.execute("UPDATE queenspark.messages SET created_at = created_at - interval '5 minutes'")
    return us


def texts(api: Api) -> str:
    items: list[Json] = api.read("/api/v1/attention")["attention"]
    return "\n".join(item["text"] for item in items)


def test_a_stream_of_others_has_no_timeline(as_: As, key: MakeKey, us: str) -> None:
    scoped = as_(key("viewer", scopes=[f"stream:{us}/*:read"]))
    for path in ("timeline", "keys", "versions"):
        url = f"/api/v1/resources/streams/minutes/{path}"
        responded(scoped.get(url, namespace=us), 200)
        responded(scoped.get(url), 200)
        missing = refused(scoped.get(url, namespace="nowhere"), 404)
        assert refused(scoped.get(url, namespace=f"not{us}"), 404) == missing
    window = "/api/v1/resources/streams/minutes/windows/1/t"
    assert refused(scoped.get(window, namespace=f"not{us}"), 404) == "Stream not found"


def test_attention_lists_only_visible_objects(as_: As, key: MakeKey, admin: Api, us: str) -> None:
    eventually(lambda: f"mail of not{us}" in texts(admin), within=30)
    all_of_us = [f"queue:{us}*:read", f"stream:{us}/*:read", f"job:{us}*:read"]
    scoped = as_(key("all of us", scopes=all_of_us))
    assert f"mail of {us}" in texts(scoped)
    assert f"Job {us}_rows is paused." in texts(scoped)
    assert f"not{us}" not in scoped.get("/api/v1/attention").text
    assert {item["kind"] for item in scoped.read("/api/v1/attention")["attention"]} <= {
        "queue",
        "job",
        "stream",
    }
    jobs_only = as_(key("jobs", scopes=[f"job:{us}*:read"]))
    assert texts(jobs_only) == f"Job {us}_rows is paused."
    system_only = as_(key("system", scopes=["system:read"]))
    assert us not in texts(system_only)
    assert "No pipeline is leading" in texts(system_only)
    reader = as_(key("reader", role="read-only"))
    assert f"not{us}" in texts(reader)


def test_only_administrators_see_the_session_that_holds_back_the_log(
    as_: As, key: MakeKey, admin: Api
) -> None:
    reader = as_(key("reader", role="read-only"))
    with psycopg.connect(admin.database_url or "", application_name="somebody") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        eventually(lambda: "A transaction of somebody (pid" in texts(admin), within=40)
        assert "A transaction has held back the horizon" in texts(reader)
        assert "somebody" not in texts(reader)


def test_streams_of_others_are_not_in_the_counts(as_: As, key: MakeKey, us: str) -> None:
    scoped = as_(key("counts", scopes=["system:read", f"stream:{us}/*:read"]))
    found = scoped.read("/api/v1/resources/streams/stats")["byStream"]
    assert [(row["namespace"], row["name"]) for row in found] == [(us, "minutes")]


def test_processes_and_settings_are_for_administrators(as_: As, key: MakeKey, admin: Api) -> None:
    assert admin.read("/api/v1/system")["settings"]
    for role in ("read-only", "read-write"):
        assert "system:admin" in refused(as_(key(role, role=role)).get("/api/v1/system"), 403)
    assert refused(as_(key("no admin", scopes=["system:read"])).get("/api/v1/system"), 403)


FILES = "WITH (connector = 'files', path = '{path}')"
SOURCE = f"CREATE SOURCE us_{{name}} (n INT) {FILES}"
SINK = f"CREATE SINK us_{{name}} AS SELECT n FROM {{us}}_lines {FILES}"


@pytest.mark.parametrize("statement", [SOURCE, SINK], ids=["CREATE SOURCE", "CREATE SINK"])
def test_only_the_role_admin_lets_jobs_use_files(
    as_: As, key: MakeKey, admin: Api, us: str, tmp_path: Path, statement: str
) -> None:
    kind = " ".join(statement.split()[:2])
    (tmp_path / "in.json").write_text('{"n": 1}\n')

    def sql(name: str) -> Json:
        return {"sql": statement.format(name=name, path=tmp_path, us=us)}

    lines = f"CREATE OR REPLACE SOURCE {us}_lines (n INT) {FILES.format(path=tmp_path)}"
    responded(admin.post("/api/v1/sql", {"sql": lines}), 200)
    for role in set(ROLES) - {"admin"}:
        assert "job:admin" in refused(as_(key(role, role=role)).post("/api/v1/sql", sql("role")), 403)
    callers: dict[str, dict[str, Any]] = {
        "jobs": {"scopes": ["jobs:*"]},
        "everything": {"scopes": ["jobs:*", "queues:*", "streams:*", "system:*"]},
        "bounded": {"role": "admin", "scopes": ["jobs:*", "queues:*"]},
    }
    for name, options in callers.items():
        error = refused(as_(key(name, **options)).post("/api/v1/sql", sql("scopes")), 403)
        assert f"{name} lacks the role admin: {kind}" in error
        dry = as_(key(name, **options)).post("/api/v1/sql", {**sql("dry"), "dryRun": True})
        assert kind in refused(dry, 403)
    responded(admin.post("/api/v1/sql", sql(kind.split()[1].lower())), 200)
