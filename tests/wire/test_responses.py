"""Every route responds as documented by OpenAPI: no field is missing, wrong or undocumented."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from queenspark.broker.app import routes
from queenspark.embedded import EmbeddedPostgres
from tests.broker_process import Broker
from tests.conftest import StartBroker
from tests.leader import LEAD
from tests.postgres_servers import PostgresServer
from tests.streams.sealing import minute
from tests.streams.stream_api import StreamApi
from tests.wire.api import Api, Json, ack_operation, push_operation, responded
from tests.wire.deadline import eventually
from tests.wire.document import Document
from tests.wire.sql import Sql

EPOCH = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def checked(postgres_18: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Document]:
    """The document, after it has seen a response of everything."""
    log_file = tmp_path_factory.mktemp("responses") / "broker.log"
    with postgres_18.database() as url:
        started = Broker(url, log_file)
        try:
            with Api(started.url, url) as api:
                document = Document(api.read("/openapi.json"))
                api.http.event_hooks = {"response": [document.check]}
                for exercise in (
                    queues,
                    deliveries,
                    counts,
                    dead_letters,
                    traces,
                    groups,
                    streams,
                    jobs,
                    system,
                    access,
                ):
                    exercise(api)
                yield document
        finally:
            started.stop()


def queues(api: Api) -> None:
    api.configure("q", namespace="n", task="t")
    api.push("q", 1)
    both = {"transactionId": "same", "traceId": "trace", "headers": {"tenant": "north"}}
    api.push_items([{"queue": "q", "payload": 1, **both}] * 2)
    api.read("/api/v1/resources/queues/q/log")
    assert api.get("/api/v1/resources/queues/gone/log").status_code == 404
    api.configure("gone")
    responded(api.delete("/api/v1/resources/queues/gone"), 200)
    assert api.get("/api/v1/resources/queues/gone").status_code == 404


def deliveries(api: Api) -> None:
    assert api.pop("q", "no such partition").status_code == 204
    assert api.get("/api/v1/pop", namespace="nowhere").status_code == 204
    assert api.empty("q", consumerGroup="later", subscriptionMode="new")
    (message,) = api.take("q", "Default", consumerGroup="g", autopilot="true", batch=1)
    responded(api.post(f"/api/v1/lease/{message['leaseId']}/extend", {"seconds": 60}), 200)
    assert api.post("/api/v1/lease/none/extend").status_code == 404
    assert api.ack(message, consumerGroup="g")["success"]
    assert not api.ack({**message, "transactionId": "unknown"}, consumerGroup="g")["success"]
    assert api.get("/api/v1/pop", namespace="n", wait="true", timeout=10_000).status_code == 200
    messages = api.take("q", consumerGroup="batch", batch=10)
    api.complete(messages, "batch")
    (message,) = api.take("q", consumerGroup="transactions")
    ack = ack_operation(message, consumerGroup="transactions")
    assert api.transaction([ack, push_operation("other", 1, 2)])["success"]
    assert not api.transaction([{**ack, "transactionId": "unknown"}])["success"]


def counts(api: Api) -> None:
    for kind in ("queues", "queues/q", "namespaces", "tasks", "overview"):
        api.read(f"/api/v1/resources/{kind}")
    for kind in ("", "/queues", "/queues/q", "/queues/q/messages", "/analytics"):
        api.read(f"/api/v1/status{kind}")


def dead_letters(api: Api) -> None:
    def bury(number: int) -> Json:
        """Push a message and turn it into a dead letter."""
        assert api.push_items([{"queue": "dead", "payload": number, "headers": {"n": "1"}}]).is_success
        (message,) = api.take("dead", consumerGroup="g")
        assert api.ack(message, "dlq", consumerGroup="g", error="broken")["dlq"]
        return message

    api.configure("dead")
    first, second = bury(1), bury(2)
    assert len(api.dead_letters("dead")) == 2
    path = "/api/v1/messages/{partitionId}/{transactionId}"
    api.read("/api/v1/messages", queue="dead")
    api.read("/api/v1/messages", queue="no such queue")
    api.read(path.format(**first))
    responded(api.post(f"{path.format(**first)}/retry"), 200)
    responded(api.post("/api/v1/dlq/retry?queue=dead"), 200)
    api.drain("dead", 2, consumerGroup="g")
    third = bury(3)
    with psycopg.connect(api.database_url or "", autocommit=True) as connection:
        connection.execute(
            "DELETE FROM queenspark.messages WHERE transaction_id = %s", (third["transactionId"],)
        )
    assert "failedAt" in api.read(path.format(**third))
    responded(api.delete("/api/v1/dlq", queue="dead"), 200)
    responded(api.delete(path.format(**second)), 200)


def traces(api: Api) -> None:
    (pushed,) = api.push("traced", 1)
    which = {"transactionId": pushed["transaction_id"], "partitionId": pushed["partition_id"]}
    body = {**which, "data": {"step": 1}, "traceNames": ["mine"], "consumerGroup": "g", "eventType": "info"}
    responded(api.post("/api/v1/traces", body), 201)
    api.read("/api/v1/traces/names")
    api.read("/api/v1/traces/by-name/mine")
    api.read("/api/v1/traces/{partitionId}/{transactionId}".format(**which))


def groups(api: Api) -> None:
    api.push("grouped", 1, 2)
    api.take("grouped", consumerGroup="slow")
    api.read("/api/v1/consumer-groups")
    eventually(lambda: api.read("/api/v1/consumer-groups/lagging", minLagSeconds=0)["consumerGroups"])
    api.read("/api/v1/consumer-groups/slow")
    responded(api.post("/api/v1/consumer-groups/slow/subscription", {"subscriptionTimestamp": EPOCH}), 200)
    api.seek("slow", "grouped", toEnd=True)
    api.seek("slow", "grouped", timestamp=EPOCH)
    api.seek("slow", "grouped", "Default", toBeginning=True)
    responded(api.delete("/api/v1/consumer-groups/slow/queues/grouped"), 200)
    responded(api.delete("/api/v1/consumer-groups/slow"), 200)


def streams(api: Api) -> None:
    with closing(StreamApi(api, api.database_url or "")) as stream:
        _exercise(stream)


def _exercise(stream: StreamApi) -> None:
    api = stream.api
    stream.define(partitioned=True, event_time="at", window_grace_period_ms=0)
    times = (EPOCH, EPOCH, "2026-01-01T00:00:01Z")
    records = stream.push(*({"at": time} for time in times), headers={"tenant": "north"})
    of = {"stream": stream.id, "version": 1}
    noted = [{**of, "key": "p", "txid": record.position[0], "id": record.position[1]} for record in records]
    start = 1_767_225_600_000_000
    stream.seal(
        stream.over(records, start_us=start, end_us=start + 60_000_000),
        minute("other", 1),
        minute("third", 1, values='{"total": 5}'),
        late=[{**noted[0], "time_us": 0, "closed_us": 1_000_000, "dropped": True}],
        dead=noted[1:2],
        stats=[{**of, "watermark_us": start, "open_windows": 2, "records": 9, "windows": 4}],
    )
    stream.run("""INSERT INTO queenspark.pipeline_stats (key, value) VALUES ('streams', '{"batch": 1}')""")
    stream.run(LEAD)
    windows: list[Json] = responded(stream.try_poll(maxWindows=10, maxMessages=2), 200)["windows"]
    (mine,) = (window for window in windows if window["count"] == 3)
    api.read(f"/api/v1/stream/window/{mine['leaseId']}/messages", cursor=mine["nextCursor"])
    responded(stream.renew(mine, 60_000), 200)
    for window in windows:
        stream.ack(window)
    assert stream.ack(mine) == {"success": True, "acked": True}
    assert stream.empty()
    stream.poll("second")
    stream.seek(EPOCH)
    api.read("/api/v1/resources/streams")
    api.read("/api/v1/resources/streams/stats")
    stream.resource()
    assert stream.resource("explain")["reasons"]
    _explained(stream)
    for kind in ("consumers", "windows", "late", "dead", "keys", "versions"):
        assert stream.resource(kind)[kind]
    _timeline(stream)
    responded(api.delete(f"/api/v1/resources/streams/{stream.name}"), 200)


def _timeline(stream: StreamApi) -> None:
    """Windows of every state, and one with its messages."""
    shown = stream.resource("timeline", **{"from": "1970-01-01T00:00:00Z"})
    assert shown["open"]
    window = next(each for each in shown["windows"] if each["count"] == 3)
    found = stream.resource("windows", window["partitionId"], window["transactionId"], limit=2)
    assert len(found["messages"]) == 2
    third = next(each for each in shown["windows"] if each["key"] == "third")
    assert stream.resource("windows", third["partitionId"], third["transactionId"])["aggregates"]


def _explained(stream: StreamApi) -> None:
    """Open a window, which is the next one."""
    (record,) = stream.push({"at": "2026-01-01T00:00:02Z"})
    txid, id_ = record.position
    opened = {"open_windows": 1, "open_txid": txid, "open_id": id_}
    state = json.dumps({"txid": txid, "id": id_, "tick": record.created_us, "seq": 1_000_000})
    stream.seal(stats=[{"stream": stream.id, "version": 1, **opened}], state=state)
    assert stream.resource("explain")["next"]["key"] == "p"


def jobs(api: Api) -> None:
    sql = Sql(api)
    api.push("orders", {"country": "DE"})
    sql(
        "CREATE STREAM countries AS SELECT country FROM orders;"
        "CREATE STREAM schema (a INT) WITH (queue = 'inserted'); INSERT INTO schema VALUES (1);"
        "PAUSE JOB countries; RESUME JOB countries; RESTART JOB countries; DESCRIBE countries; SHOW JOBS;"
        "EXPLAIN SELECT country FROM orders; DROP STREAM schema;"
        "CREATE OR REPLACE STREAM countries AS SELECT country FROM orders WITH (retention = '1h')"
    )
    sql("SELECT country FROM orders", dryRun=True)
    with sql.select("SELECT country FROM orders", timeout=1) as lines:
        assert len(list(lines)) == 1
    sql.refused("SELECT")
    rows = {"name": "defined", "namespace": "default", "source_queue_names": ["orders"], "output": "rows"}
    responded(api.post("/api/v1/stream/define", rows), 201)
    sql.run(
        "INSERT INTO queenspark.stream_dead (stream_id, version, key, txid, id, reason, start_us, end_us)"
        " VALUES (%s, 1, 'k', 1, 1, 'why', 0, 1)",
        sql.stream("countries")[0],
    )
    with TemporaryDirectory() as folder:
        sql(
            "CREATE SOURCE outside (a INT) WITH (connector = 'files', path = '{folder}', mode = 'once');"
            "CREATE STREAM of_files AS SELECT a FROM outside".replace("{folder}", folder)
        )
    sql.run(
        "INSERT INTO queenspark.job_runs (stream_id, version, report, finished_at) VALUES (%s, 1, %s, now())",
        sql.stream("of_files")[0],
        '{"files": 1, "bytes": 2, "filesLeft": 3, "bytesLeft": 4,'
        ' "partitions": 5, "lagRecords": 6, "position": "7.8", "unreadSince": "2026-01-31T12:00:00+00:00"}',
    )
    assert api.read("/api/v1/jobs/of_files")["run"]["files"] == 1
    api.read("/api/v1/jobs")
    sql.job("countries")
    assert api.read("/api/v1/jobs/countries/explain")["reasons"]
    for action in ("resume", "restart", "pause"):
        responded(api.post(f"/api/v1/jobs/countries/{action}"), 200)
    eventually(lambda: api.read("/api/v1/attention")["attention"])
    assert api.read("/api/v1/jobs/countries/dead")["dead"]
    sql.run(
        "INSERT INTO queenspark.stream_late (stream_id, version, key, txid, id, time_us, closed_us, dropped)"
        " VALUES (%s, 1, 'k', 1, 1, 0, 1, true)",
        sql.stream("countries")[0],
    )
    assert api.read("/api/v1/jobs/countries/late")["late"]
    responded(api.delete("/api/v1/jobs/countries"), 200)


def system(api: Api) -> None:
    for path in ("/health", "/metrics", "/openapi.json"):
        api.read(path)
    assert api.get("/metrics/prometheus").status_code == 200
    for path in ("/", "/streams"):
        assert api.http.get(path, headers={"Accept": "text/html"}).status_code == 302
    eventually(lambda: api.read("/api/v1/series")["series"], within=30)
    with psycopg.connect(api.database_url or "", autocommit=True) as connection:
        connection.execute(
            "INSERT INTO queenspark.processes (name, kind, version) VALUES ('p', 'pipeline', '1')"
        )
    assert api.read("/api/v1/system")["pipelines"]
    _status_with_a_held_horizon(api)
    for path in ("/api/v1/system/maintenance", "/api/v1/system/maintenance/pop"):
        responded(api.post(path, {"enabled": True}), 200)
        api.push("staged", 1)
        api.read(path)
        responded(api.post(path, {"enabled": False}), 200)


def access(api: Api) -> None:
    api.read("/api/v1/me")
    body = {"name": "k", "role": "read-only", "scopes": ["queues:read"], "requestsPerSecond": 1}
    made = responded(api.post("/api/v1/keys", body), 201)
    api.read("/api/v1/keys")
    responded(api.delete(f"/api/v1/keys/{made['id']}"), 200)
    api.read("/api/v1/audit")


def _status_with_a_held_horizon(api: Api) -> None:
    with psycopg.connect(api.database_url or "") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        deadline = time.monotonic() + 20
        while api.read("/api/v1/status")["horizonHeldBy"] is None:
            assert time.monotonic() < deadline


def test_every_response_of_every_route_was_checked(checked: Document) -> None:
    without_a_database = {("get_health", "503")}
    assert checked.statuses() - checked.seen_statuses == without_a_database


def test_every_documented_field_is_sent(checked: Document) -> None:
    elsewhere = {"Unhealthy", "Error"}
    unseen = {field for field in checked.fields() - checked.seen_fields if field.schema not in elsewhere}
    assert unseen == set()


def test_a_broker_without_its_database_responds_as_documented(
    broker: StartBroker, durable_postgres: EmbeddedPostgres
) -> None:
    with Api(broker(database_url=durable_postgres.url).url) as api:
        document = Document(api.read("/openapi.json"))
        durable_postgres.stop()
        for path, status in (("/health", 503), ("/api/v1/resources/queues", 503)):
            response = api.get(path)
            assert response.status_code == status
            document.check(response)
    assert ("get_health", "503") in document.seen_statuses


def test_every_route_has_a_schema_for_each_response(api: Api) -> None:
    paths = api.read("/openapi.json")["paths"]
    for route in routes():
        operation: dict[str, Any] = paths[re.sub(r":(\w+)", r"{\1}", route.path)][route.method.lower()]
        assert operation["x-right"] == route.right
        for status in route.responses:
            content = operation["responses"][str(status)].get("content")
            assert (content is None) == (status == 204)
        assert {"4XX", "5XX"} <= operation["responses"].keys()
