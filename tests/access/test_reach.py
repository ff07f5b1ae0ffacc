"""Names outside the scopes: not readable, changeable or listed, and treated as missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from queenspark.broker.http import Caller, parse_scopes
from queenspark.broker.metrics import Metrics
from tests.access.conftest import As
from tests.wire.api import Api, Json, ack_operation, push_operation, refused, responded
from tests.wire.deadline import eventually

MakeKey = Callable[..., str]


@pytest.fixture
def us() -> str:
    """A part of names that no other test uses."""
    return f"us{uuid4().hex[:8]}"


@pytest.fixture
def mine(us: str) -> str:
    return f"{us}.orders"


@pytest.fixture
def theirs(us: str) -> str:
    return f"not.{us}.orders"


@pytest.fixture
def scoped(as_: As, key: MakeKey, us: str) -> Api:
    """A caller with all rights on names that begin with `us`."""
    return as_(key(us, scopes=[f"queue:{us}*:*", f"stream:{us}/*:*", f"job:{us}*:*"]))


@pytest.fixture
def both(admin: Api, mine: str, theirs: str) -> tuple[str, str]:
    """Two queues with a message, a group, a dead letter and a trace each."""
    for queue in (mine, theirs):
        admin.configure(queue, namespace=f"of {queue}", task=f"for {queue}")
        admin.push(queue, {"queue": queue, "n": 1}, {"queue": queue, "n": 2})
        (message,) = admin.take(queue, consumerGroup=f"g {mine}")
        assert admin.ack(message, "dlq", consumerGroup=f"g {mine}")["dlq"]
        trace = {"transactionId": message["transactionId"], "partitionId": message["partitionId"]}
        responded(
            admin.post("/api/v1/traces", {**trace, "data": {}, "traceNames": [f"t {mine}", f"t {queue}"]}),
            201,
        )
    return mine, theirs


def test_lists_hide_names_outside_the_scopes(scoped: Api, both: tuple[str, str]) -> None:
    mine, theirs = both
    lists = {
        "/api/v1/resources/queues": "queues",
        "/api/v1/status/queues": "queues",
        "/api/v1/resources/namespaces": "namespaces",
        "/api/v1/resources/tasks": "tasks",
        "/api/v1/consumer-groups": "consumerGroups",
        "/api/v1/messages": "messages",
        "/api/v1/dlq": "messages",
        f"/api/v1/traces/by-name/t {mine}": "traces",
        "/api/v1/traces/names": "names",
    }
    for path, name in lists.items():
        response = scoped.read(path)
        assert response[name], path
        assert theirs not in str(response), path
        if "total" in response:
            assert response["total"] == len(response[name]), path
    group = scoped.read(f"/api/v1/consumer-groups/g {mine}")
    assert [queue["queue"] for queue in group["queues"]] == [mine]
    assert scoped.read("/api/v1/messages", queue=theirs)["messages"] == []


def test_a_queue_of_others_is_404(scoped: Api, admin: Api, both: tuple[str, str]) -> None:
    _, theirs = both
    hidden = f"queue {theirs} does not exist"
    assert refused(scoped.get(f"/api/v1/resources/queues/{theirs}"), 404) == hidden
    assert refused(scoped.delete(f"/api/v1/resources/queues/{theirs}"), 404) == hidden
    assert refused(scoped.pop(theirs), 404) == hidden
    assert refused(scoped.pop(theirs, "Default"), 404) == hidden
    assert refused(scoped.post("/api/v1/configure", {"queue": theirs}), 404) == hidden
    assert refused(scoped.push_items([{"queue": theirs, "payload": 1}]), 404) == hidden
    assert refused(scoped.get(f"/api/v1/status/queues/{theirs}/messages"), 404) == hidden
    assert scoped.get("/api/v1/pop", namespace=f"of {theirs}").status_code == 204
    assert admin.read(f"/api/v1/resources/queues/{theirs}")["messages"]["total"] == 2


def test_dead_letters_cannot_be_sent_to_others(scoped: Api, both: tuple[str, str]) -> None:
    mine, theirs = both
    body = {"queue": mine, "options": {"deadLetterQueue": theirs}}
    assert theirs in refused(scoped.post("/api/v1/configure", body), 404)


def test_messages_of_others_cannot_be_acknowledged(scoped: Api, admin: Api, both: tuple[str, str]) -> None:
    _, theirs = both
    (message,) = admin.take(theirs, consumerGroup="other")
    lease = f"/api/v1/lease/{message['leaseId']}/extend"
    assert scoped.post(lease, {"seconds": 60}).status_code == 404
    assert not scoped.ack(message, consumerGroup="other")["success"]
    (result,) = scoped.ack_batch([(message, "completed")], "other")
    unknown = scoped.ack({**message, "partitionId": "999999"}, consumerGroup="other")
    assert (result["success"], result["error"]) == (False, unknown["error"])
    assert not scoped.transaction([ack_operation(message, consumerGroup="other")])["success"]
    assert admin.ack(message, consumerGroup="other")["success"]


def test_each_operation_of_a_transaction_needs_a_right(
    as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str
) -> None:
    mine, theirs = both
    pushes = as_(key("pushes", scopes=[f"queue:{us}*:push"]))
    assert pushes.transaction([push_operation(mine, 1)])["success"]
    body = {"operations": [push_operation(mine, 1), push_operation(theirs, 1)]}
    assert theirs in refused(pushes.post("/api/v1/transaction", body), 404)
    (message,) = admin.take(mine, consumerGroup="w")
    ack = ack_operation(message, consumerGroup="w")
    response = pushes.post("/api/v1/transaction", {"operations": [push_operation(mine, 1), ack]})
    assert "queue:consume" in refused(response, 403)
    consumes = as_(key("consumes", scopes=[f"queue:{us}*:consume"]))
    response = consumes.post("/api/v1/transaction", {"operations": [push_operation(mine, 1), ack]})
    assert "queue:push" in refused(response, 403)
    assert consumes.transaction([ack])["success"]
    reader = as_(key("reader", role="read-only"))
    assert "queue:transact" in refused(reader.post("/api/v1/transaction", {"operations": [ack]}), 403)


def test_a_message_of_others_is_404(scoped: Api, admin: Api, both: tuple[str, str]) -> None:
    mine, theirs = both
    for queue, status in ((mine, 200), (theirs, 404)):
        (dead,) = admin.dead_letters(queue)
        path = f"/api/v1/messages/{dead['partitionId']}/{dead['transactionId']}"
        assert scoped.get(path).status_code == status
        assert scoped.get(path.replace("messages", "traces")).status_code == status
        assert scoped.post(f"{path}/retry").status_code == status
        trace = {"transactionId": "t", "partitionId": dead["partitionId"], "data": {}}
        assert scoped.post("/api/v1/traces", trace).status_code == (201 if status == 200 else 404)
        assert scoped.delete(path).status_code == status


def test_dead_letters_of_others_are_unaffected(scoped: Api, admin: Api, both: tuple[str, str]) -> None:
    mine, theirs = both
    group = {"consumerGroup": f"g {mine}"}
    assert responded(scoped.http.post("/api/v1/dlq/retry", params=group), 200)["count"] == 1
    assert responded(scoped.delete("/api/v1/dlq", queue=theirs), 200)["count"] == 0
    assert responded(scoped.http.post("/api/v1/dlq/retry", params={"queue": theirs}), 200)["count"] == 0
    assert responded(scoped.delete("/api/v1/dlq", **group), 200)["count"] == 0
    assert len(admin.dead_letters(theirs)) == 1


def test_a_group_is_moved_and_deleted_on_ones_own_queues_only(
    scoped: Api, admin: Api, both: tuple[str, str]
) -> None:
    mine, theirs = both
    group = f"g {mine}"
    path = f"/api/v1/consumer-groups/{group}"
    body = {"subscriptionTimestamp": "2026-01-01T00:00:00Z"}
    assert responded(scoped.post(f"{path}/subscription", body), 200)["queues"] == 1
    assert scoped.post(f"{path}/queues/{theirs}/seek", {"toEnd": True}).status_code == 404
    assert scoped.delete(f"{path}/queues/{theirs}").status_code == 404
    assert responded(scoped.delete(path), 200)["count"] == 1
    assert [queue["queue"] for queue in admin.read(path)["queues"]] == [theirs]


def define(api: Api, namespace: str, name: str, source: str) -> Any:
    body = {"name": name, "namespace": namespace, "source_queue_names": [source], "window_duration_ms": 1000}
    return api.post("/api/v1/stream/define", body)


def test_streams_of_others_do_not_exist(scoped: Api, admin: Api, both: tuple[str, str], us: str) -> None:
    mine, theirs = both
    name = f"visits-{us}"
    responded(define(scoped, us, name, mine), 201)
    responded(define(admin, "others", name, theirs), 201)
    # The name alone is enough: there is only one stream of that name that they may see.
    assert scoped.read(f"/api/v1/resources/streams/{name}")["namespace"] == us
    assert [stream["namespace"] for stream in scoped.read("/api/v1/resources/streams")["streams"]] == [us]
    for response in (
        scoped.get(f"/api/v1/resources/streams/{name}", namespace="others"),
        scoped.delete(f"/api/v1/resources/streams/{name}", namespace="others"),
        scoped.post("/api/v1/stream/poll", {"streamName": name, "namespace": "others", "consumerGroup": "g"}),
        define(scoped, "others", "new", mine),
    ):
        assert refused(response, 404) == "Stream not found"
    assert "does not exist" in refused(define(scoped, us, "spy", theirs), 400)
    assert "stream:read" not in scoped.read("/api/v1/me")["scopes"]


def test_rows_of_a_stream_need_the_rights_of_their_job(
    scoped: Api, as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str
) -> None:
    mine, theirs = both

    def rows(api: Api, name: str, **more: Any) -> Any:
        body = {"name": name, "namespace": us, "source_queue_names": [mine], "output": "rows", **more}
        return api.post("/api/v1/stream/define", body)

    assert responded(rows(scoped, "totals"), 201)["queue"] == f"{us}.totals"
    without = as_(key("defines", scopes=[f"queue:{us}*:*", f"stream:{us}/*:*"]))
    responded(define(without, us, "windows", mine), 201)
    assert "job:admin" in refused(rows(without, "others"), 403)
    elsewhere = as_(key("elsewhere", scopes=[f"queue:{us}*:*", f"stream:{us}/*:*", "job:other*:*"]))
    assert refused(rows(elsewhere, "others"), 400) == (
        f"name: there is no job {us}.others, or you have no right to it"
    )
    for name in (theirs, "no such queue"):
        error = refused(rows(scoped, "spy", source_queue_names=[name]), 400)
        assert error.startswith(f"source_queue_names: there is no stream, source or queue {name}")
    jobs_only = as_(key("jobs", scopes=[f"queue:{us}*:*", f"job:{us}*:*"]))
    assert "stream:admin" in refused(rows(jobs_only, "others"), 403)
    poll = {"streamName": "totals", "namespace": us, "consumerGroup": "g", "timeout": 0}
    assert f"the queue {us}.totals" in refused(scoped.post("/api/v1/stream/poll", poll), 404)
    stranger = as_(key("stranger", scopes=[f"stream:{us}/*:*", "queue:other*:*"]))
    assert refused(stranger.post("/api/v1/stream/poll", poll), 404) == "Stream not found"
    names = [job["queue"] for job in admin.read("/api/v1/jobs", namespace=us)["jobs"]]
    assert names == [f"{us}.totals"]
    done = [(act["action"], act["subject"]) for act in acts(admin, caller=us)]
    assert ("POST /api/v1/stream/define", f"CreateStream {us}.totals") in done


def test_window_queues_need_rights_on_their_stream(
    as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str
) -> None:
    mine, _ = both
    responded(define(admin, us, "visits", mine), 201)
    queue, group = f"windows:{us}/visits", f"w {us}"
    hidden = f"queue {queue} does not exist"
    assert admin.pop(queue, consumerGroup=group).status_code == 204
    every_queue = as_(key("every queue", scopes=["queues:*"]))
    assert refused(every_queue.pop(queue), 404) == hidden
    assert refused(every_queue.get(f"/api/v1/resources/queues/{quote(queue, safe='')}"), 404) == hidden
    assert refused(every_queue.delete(f"/api/v1/resources/queues/{quote(queue, safe='')}"), 404) == hidden
    seek = f"/api/v1/consumer-groups/{group}/queues/{quote(queue, safe='')}/seek"
    assert refused(every_queue.post(seek, {"toEnd": True}), 404) == hidden
    assert every_queue.get(f"/api/v1/consumer-groups/{group}").status_code == 404
    assert responded(every_queue.delete(f"/api/v1/consumer-groups/{group}"), 200)["count"] == 0
    windows = {"windows": "true", "search": us}
    names = [each["name"] for each in every_queue.read("/api/v1/resources/queues", **windows)["queues"]]
    assert mine in names
    assert queue not in names

    streams = as_(key("their streams", scopes=[f"stream:{us}/*:*", "queue:none:*"]))
    assert streams.pop(queue, consumerGroup=group).status_code == 204
    assert [each["name"] for each in streams.read("/api/v1/resources/queues", **windows)["queues"]] == [queue]
    assert streams.read(f"/api/v1/consumer-groups/{group}")["queues"][0]["queue"] == queue
    assert streams.post(seek, {"toEnd": True}).status_code == 200


def test_leases_of_queues_are_not_those_of_streams(as_: As, key: MakeKey, admin: Api, us: str) -> None:
    queue = f"{us}/orders"
    admin.push(queue, 1)
    (message,) = admin.take(queue, consumerGroup="g")
    body = {"leaseId": message["leaseId"]}
    streams = as_(key("streams", scopes=[f"stream:{us}/*:*"]))
    refused(streams.post("/api/v1/stream/renew-lease", body), 404)
    refused(streams.get(f"/api/v1/stream/window/{message['leaseId']}/messages"), 404)


def run(api: Api, sql: str) -> Any:
    return api.post("/api/v1/sql", {"sql": sql})


def test_each_statement_needs_a_right(
    scoped: Api, as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str, tmp_path: Path
) -> None:
    mine, theirs = both
    job, other = f"{us}_pages", f"others_{us}"
    responded(run(scoped, f"CREATE STREAM {job} AS SELECT n FROM `{mine}`"), 200)
    responded(run(admin, f"CREATE STREAM {other} AS SELECT n FROM `{theirs}`"), 200)
    responded(run(admin, f"CREATE STREAM {other}_schema (n INT) WITH (queue = '{theirs}')"), 200)
    responded(run(admin, f"CREATE STREAM {us}_in (n INT) WITH (queue = '{mine}')"), 200)
    files = f"connector = 'files', path = '{tmp_path}', mode = 'once'"
    responded(run(admin, f"CREATE SOURCE {other}_files (n INT) WITH ({files})"), 200)
    for sql in (
        f"SELECT n FROM {other}_files",
        f"SELECT n FROM {other}_fils",
        f"DESCRIBE {other}_files",
        f"CREATE STREAM {us}_spy AS SELECT n FROM `{theirs}`",
        f"CREATE STREAM not_{us} AS SELECT n FROM `{mine}`",
        f"SELECT n FROM `{theirs}`",
        f"SELECT n FROM {other}",
        f"DESCRIBE {other}",
        f"EXPLAIN SELECT n FROM `{theirs}`",
        f"INSERT INTO {other}_schema VALUES (1)",
        f"DROP STREAM {other}",
        f"PAUSE JOB {other}",
        f"CREATE STREAM {us}_schema (n INT) WITH (queue = '{theirs}')",
    ):
        error = refused(run(scoped, sql), 400)
        assert "there is no" in error, sql
    shown = run(scoped, "SHOW JOBS; SHOW STREAMS; SHOW QUEUES; SHOW SOURCES; SHOW SINKS").json()["results"]
    assert other not in str(shown)
    assert theirs not in str(shown)
    assert job in str(shown)
    assert f"did you mean {other}_files" in refused(run(admin, f"SELECT n FROM {other}_fils"), 400)
    reader = as_(key("sql reader", role="read-only"))
    for sql in (f"DROP STREAM {job}", f"PAUSE JOB {job}", f"CREATE STREAM {us}_x AS SELECT n FROM `{mine}`"):
        assert "job:admin" in refused(run(reader, sql), 403)
    assert "queue:push" in refused(run(reader, f"INSERT INTO {us}_in VALUES (1)"), 403)
    responded(run(reader, f"DESCRIBE {job}; EXPLAIN SELECT n FROM `{mine}`; SHOW JOBS"), 200)
    pusher = as_(key("sql pusher", scopes=[f"queue:{us}*:push"]))
    responded(run(pusher, f"INSERT INTO {us}_in VALUES (1)"), 200)
    assert "queue:read" in refused(run(pusher, "SHOW QUEUES"), 403)


def test_jobs_of_others_do_not_exist(scoped: Api, admin: Api, both: tuple[str, str], us: str) -> None:
    mine, _ = both
    job, reading = f"{us}_rows", f"reads_{us}"
    responded(run(scoped, f"CREATE STREAM {job} AS SELECT n FROM `{mine}`"), 200)
    responded(run(admin, f"CREATE STREAM {reading} AS SELECT n FROM {job}"), 200)
    names = [each["name"] for each in scoped.read("/api/v1/jobs")["jobs"]]
    assert job in names
    assert reading not in names
    for path in ("", "/dead", "/late", "/explain"):
        assert scoped.get(f"/api/v1/jobs/{job}{path}").status_code == 200
        assert refused(scoped.get(f"/api/v1/jobs/{reading}{path}"), 404) == f"job {reading} does not exist"
    assert scoped.get(f"/api/v1/jobs/default.{job}").status_code == 200
    assert scoped.get(f"/api/v1/jobs/default.{reading}").status_code == 404
    for action in ("pause", "resume", "restart"):
        assert scoped.post(f"/api/v1/jobs/{reading}/{action}").status_code == 404
    assert "no access" in refused(scoped.delete(f"/api/v1/jobs/{job}", cascade="true"), 409)
    assert "no access" in refused(run(scoped, f"DROP STREAM {job} CASCADE"), 400)
    admin.read(f"/api/v1/jobs/{reading}")


def test_a_cascade_to_a_stream_of_windows_needs_a_right_on_it(
    as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str
) -> None:
    mine, _ = both
    job, stream = f"{us}_rows", f"{us}/visits"
    responded(run(admin, f"CREATE STREAM {job} AS SELECT n FROM `{mine}`"), 200)
    responded(define(admin, us, "visits", job), 201)
    scopes = ["jobs:*", "queues:*"]
    jobs = as_(key("jobs", scopes=scopes))
    assert "no access" in refused(jobs.delete(f"/api/v1/jobs/{job}", cascade="true"), 409)
    assert "no access" in refused(run(jobs, f"DROP STREAM {job} CASCADE"), 400)
    admin.read("/api/v1/resources/streams/visits", namespace=us)
    allowed = as_(key("jobs and streams", scopes=[*scopes, f"stream:{stream}:admin"]))
    assert responded(allowed.delete(f"/api/v1/jobs/{job}", cascade="true"), 200)["dropped"][-1] == job
    assert admin.get("/api/v1/resources/streams/visits", namespace=us).status_code == 404


def test_errors_do_not_disclose_names_outside_the_scopes(
    scoped: Api, admin: Api, as_: As, key: MakeKey, both: tuple[str, str], us: str
) -> None:
    mine, _ = both
    job, reading, stream, group = f"{us}_read", f"spy_{us}", f"secret_{us}", f"hidden_{us}"
    responded(run(scoped, f"CREATE STREAM {job} AS SELECT n FROM `{mine}`"), 200)
    responded(run(admin, f"CREATE STREAM {reading} AS SELECT n FROM {job}"), 200)
    responded(define(admin, "others", stream, job), 201)
    assert admin.pop(job, consumerGroup=group).status_code == 204
    only_jobs = as_(key("only jobs", scopes=[f"job:{us}*:*", f"queue:{mine}:read"]))
    empty = f"not.{us}.empty"
    admin.configure(empty)

    def checked(response: Any, status: int) -> str:
        error = refused(response, status)
        for name in (reading, stream, group):
            assert name not in error
        return error

    for api, users in ((scoped, f"the consumer group {group} and 2 others"), (only_jobs, "3 others")):
        for response, status in (
            (run(api, f"DROP STREAM {job}"), 400),
            (api.delete(f"/api/v1/jobs/{job}"), 409),
        ):
            assert f"{job} is used by {users};" in refused(response, status)
    checked(only_jobs.delete(f"/api/v1/jobs/{job}"), 409)
    changed = f"CREATE OR REPLACE STREAM {job} AS SELECT n AS m FROM `{mine}`"
    assert "no access" in checked(run(scoped, changed), 400)
    assert reading in refused(run(admin, changed), 400)
    for sql in (
        f"SELECT n FROM `{empty}`",
        f"DESCRIBE `{empty}`",
        f"EXPLAIN SELECT n FROM `{empty}`",
    ):
        assert "there is no" in refused(run(scoped, sql), 400), sql
        assert "is empty" in refused(run(admin, sql), 400), sql
    unlike = f"{uuid4().hex}-{uuid4().hex}"
    admin.configure(unlike)
    pauses = as_(key("pauses", scopes=[f"job:sp_{us}:admin", f"job:{unlike}:admin"]))
    assert reading in refused(run(admin, f"PAUSE JOB sp_{us}"), 400)
    checked(run(pauses, f"PAUSE JOB sp_{us}"), 400)
    checked(run(pauses, f"DROP STREAM sp_{us}"), 400)
    assert "it is a queue" in refused(run(admin, f"DROP STREAM `{unlike}`"), 400)
    assert "it is a queue" not in refused(run(pauses, f"DROP STREAM `{unlike}`"), 400)


def test_lags_hide_names_outside_the_scopes(
    as_: As, key: MakeKey, admin: Api, both: tuple[str, str], us: str
) -> None:
    mine, theirs = both
    system = as_(key("system", scopes=["system:read"]))
    more = as_(key("more", scopes=["system:read", f"queue:{us}*:read"]))

    def queues(api: Api) -> set[str]:
        return {row["queue"] for row in api.read("/api/v1/status/analytics", limit=1000)["groups"]}

    eventually(lambda: {mine, theirs} <= queues(admin))
    assert queues(system) == set()
    assert queues(more) == {mine}
    assert "queenspark_pushed_messages_total" in system.get("/metrics/prometheus").text


def test_metrics_hide_names_outside_the_scopes() -> None:
    metrics = Metrics()
    for namespace in ("us", "them"):
        metrics.delivery_delay.labels(namespace, "visits").observe(1)
        metrics.lag.labels(f"windows:{namespace}/visits", "g").set(1)
    metrics.jobs.update({(namespace, "pages"): {"state": "running"} for namespace in ("us", "them")})
    for scope, found in {
        "system:read": [],
        "stream:us/*:read": ['stream="visits"', 'queue="windows:us/visits"'],
        "job:us.*:read": ['job_name="pages"'],
    }.items():
        caller = Caller.known("x", "key", None, parse_scopes(["system:read", "queue:none:read", scope]))
        text = metrics.text(caller).decode()
        assert "them" not in text
        for label in ('stream="visits"', 'queue="windows:us/visits"', 'job_name="pages"'):
            assert (label in text) is (label in found), (scope, label)
    assert "them" in metrics.text(Caller.known("x", "key", "read-only", None)).decode()


def acts(api: Api, **query: Any) -> list[Json]:
    found: list[Json] = api.read("/api/v1/audit", **query)["acts"]
    return found


def test_administrative_acts_are_in_the_audit_log(as_: As, key: MakeKey, admin: Api, us: str) -> None:
    api = as_(key(f"op-{us}", role="admin"))
    queue = f"{us}.audited"
    api.configure(queue)
    api.push(queue, {"n": 1})
    responded(run(api, f"CREATE STREAM {us}_audited AS SELECT n FROM `{queue}` WITH (retention = '1h')"), 200)
    responded(run(api, f"SHOW JOBS; DESCRIBE {us}_audited"), 200)
    responded(run(api, f"DROP STREAM {us}_audited"), 200)
    responded(define(api, us, "audited", queue), 201)
    api.seek("g", queue, toEnd=True)
    responded(api.post("/api/v1/keys", {"name": "made", "role": "read-only"}), 201)
    responded(api.delete(f"/api/v1/resources/queues/{queue}"), 200)
    refused(api.post("/api/v1/configure", {}), 400)
    api.read("/api/v1/resources/queues")
    found = acts(admin, caller=f"op-{us}")
    assert [(act["action"], act["subject"]) for act in found[::-1]] == [
        ("POST /api/v1/configure", queue),
        ("POST /api/v1/sql", f"CreateStream {us}_audited"),
        ("POST /api/v1/sql", f"Drop {us}_audited"),
        ("POST /api/v1/stream/define", f"{us}/audited"),
        ("POST /api/v1/consumer-groups/:group/queues/:queue/seek", f"g, {queue}"),
        ("POST /api/v1/keys", found[1]["subject"]),
        ("DELETE /api/v1/resources/queues/:queue", queue),
    ]
    assert {(act["kind"], act["address"]) for act in found} == {("key", "127.0.0.1")}
    page = admin.read("/api/v1/audit", caller=f"op-{us}", limit=2, offset=1)
    assert page["total"] == 7
    assert page["acts"] == found[1:3]
    assert acts(admin, caller=f"op-{us}", to="2020-01-01T00:00:00Z") == []
