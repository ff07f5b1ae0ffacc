"""Actions: each action of the dashboard has its effect, verified through the API."""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from queenspark.ui.words import clock
from tests.streams.sealing import Sealed
from tests.streams.stream_api import StreamApi
from tests.ui.conftest import Dashboard, Viewer
from tests.wire.api import Json
from tests.wire.deadline import eventually
from tests.wire.sql import FAILURE, Sql

MINUTE_US = 60_000_000


@pytest.fixture
def stream(dashboard: Dashboard) -> Iterator[StreamApi]:
    """A stream of the test's own with windows of one key, which its group has not acked."""
    stream = StreamApi(dashboard.api, dashboard.broker.database_url)
    stream.define(partitioned=True)
    ((now,),) = stream.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    begin = int(now) // MINUTE_US * MINUTE_US - 3 * MINUTE_US
    records = stream.push({"n": 1}, {"n": 2})
    stream.seal(
        *(
            Sealed("p", begin + n * MINUTE_US, begin + (n + 1) * MINUTE_US, count=2)
            for n in range(2)
        ),
        stream.over(records, start_us=begin + 2 * MINUTE_US, end_us=begin + 4 * MINUTE_US),
    )  # fmt: skip
    yield stream
    stream.close()


def url_of(stream: StreamApi) -> str:
    return f"/stream?namespace={stream.namespace}&name={stream.name}"


def states(stream: StreamApi, group: str = "g") -> list[str]:
    """The state of each window of a group, the oldest first."""
    timeline = stream.resource("timeline", namespace=stream.namespace, consumerGroup=group)
    return [window["groups"][0]["state"] for window in timeline["windows"]]


def bury(stream: StreamApi) -> Json:
    """Turn a window into a dead letter."""
    window = stream.poll()
    assert stream.api.ack(window, "dlq", consumerGroup="g", error="broken")["dlq"]
    return window


def bury_messages(dashboard: Dashboard, queue: str, numbers: Iterable[int]) -> None:
    """Let messages become dead letters of the group g, one after the other."""
    dashboard.api.push(queue, *numbers)
    taken = dashboard.api.take(queue, consumerGroup="g", batch=100)
    acks = [(message, "dlq") for message in taken]
    assert all(ack["success"] for ack in dashboard.api.ack_batch(acks, "g", error="broken"))


class TestStream:
    """Actions on a stream."""

    def test_a_group_seeks_to_the_end_to_the_beginning_and_to_a_time(
        self, viewer: Viewer, stream: StreamApi
    ) -> None:
        stream.ack(stream.poll())
        page = viewer.open(url_of(stream))
        for target, expected in (
            ("To the end", {"skipped"}),
            ("To the beginning", {"waiting"}),
        ):
            viewer.click("Seek…")
            viewer.confirm(target)
            eventually(lambda expected=expected: set(states(stream)) == expected)  # type: ignore[misc]
        viewer.click("Seek…")
        page.get_by_label("Time, such as").fill("2100-01-01T00:00:00Z")
        viewer.confirm("To this time")
        viewer.sees("continues from 2100-01-01T00:00:00Z")
        assert stream.empty()

    def test_a_window_is_shown_and_sought_to(self, viewer: Viewer, stream: StreamApi) -> None:
        stream.drain()
        assert states(stream) == ["acked"] * 3
        page = viewer.open(url_of(stream))
        viewer.wait_for_states(lambda seen: seen.get("acked") == 3)
        page.locator(".qs-timeline canvas").focus()
        page.keyboard.press("]")
        page.keyboard.press("Enter")
        drawer = page.locator(".qs-drawer")
        drawer.get_by_text('"n": 2').wait_for()
        drawer.get_by_role("button", name="Seek g to this window").click()
        viewer.confirm("Seek")
        eventually(lambda: states(stream) == ["skipped", "skipped", "waiting"])

    def test_one_of_many_groups_is_chosen(self, viewer: Viewer, stream: StreamApi) -> None:
        for number in range(8):
            window = stream.poll(f"g{number}")
        stream.ack(window)
        page = viewer.open(url_of(stream))
        viewer.wait_for_states(lambda seen: seen.get("leased") == 1)
        page.locator(".q-select").click()
        page.get_by_role("option", name="g7").click()
        viewer.wait_for_states(lambda seen: seen.get("acked") == 1)

    def test_a_click_on_a_bar_opens_its_window(self, viewer: Viewer, stream: StreamApi) -> None:
        stream.poll()
        page = viewer.open(url_of(stream))
        viewer.wait_for_states(lambda seen: seen.get("leased") == 1)
        box = page.locator(".qs-timeline canvas").bounding_box()
        assert box is not None
        for x in range(int(box["width"]) - 20, 160, -12):
            page.mouse.click(box["x"] + x, box["y"] + 45)
            if page.locator(".qs-drawer").is_visible():
                break
        page.locator(".qs-drawer").get_by_text("Revision").wait_for()
        page.keyboard.press("Escape")
        page.locator(".qs-drawer").wait_for(state="hidden")

    def test_a_leased_window_shows_by_whom_and_until_when(self, viewer: Viewer, stream: StreamApi) -> None:
        stream.poll(consumerId="the worker")
        page = viewer.open(url_of(stream))
        viewer.wait_for_states(lambda seen: seen.get("leased") == 1)
        (lease,) = [
            window["groups"][0]
            for window in stream.resource("timeline", namespace=stream.namespace)["windows"]
            if window["groups"][0]["state"] == "leased"
        ]
        page.locator(".qs-timeline canvas").focus()
        for key in ("]", "[", "[", "Enter"):
            page.keyboard.press(key)
        drawer = page.locator(".qs-drawer")
        drawer.get_by_text("Leased by").wait_for()
        drawer.get_by_text(f"the worker until {clock(lease['leaseExpiresAt'])}").wait_for()

    def test_a_dead_window_is_retried_in_its_drawer(self, viewer: Viewer, stream: StreamApi) -> None:
        window = bury(stream)
        page = viewer.open(url_of(stream))
        viewer.wait_for_states(lambda seen: seen.get("dead") == 1)
        page.locator(".qs-timeline canvas").focus()
        for key in ("]", "[", "[", "Enter"):
            page.keyboard.press(key)
        drawer = page.locator(".qs-drawer")
        drawer.get_by_text("broken").wait_for()
        drawer.get_by_role("button", name="Retry").click()
        viewer.confirm("Cancel")
        assert states(stream)[0] == "dead"
        drawer.get_by_role("button", name="Retry").click()
        viewer.confirm("Retry")
        eventually(lambda: states(stream)[0] == "retrying")
        assert stream.poll()["id"] == window["id"]

    def test_dead_windows_of_a_group_are_retried_and_deleted(self, viewer: Viewer, stream: StreamApi) -> None:
        bury(stream)
        viewer.open(url_of(stream))
        viewer.click("Retry dead")
        viewer.confirm("Retry")
        eventually(lambda: states(stream)[0] == "retrying")
        bury(stream)
        viewer.click("Delete dead")
        viewer.confirm("Delete")
        query = {"consumerGroup": "g", "queue": f"windows:tests/{stream.name}"}
        eventually(lambda: stream.api.read("/api/v1/dlq", **query)["messages"] == [])

    @pytest.mark.parametrize("kind", ["late", "dead"])
    def test_its_late_and_dead_records_have_pages(self, viewer: Viewer, stream: StreamApi, kind: str) -> None:
        notes: list[Json] = [
            {"stream": stream.id, "version": 1, "key": f"key {number:02}", "txid": 1, "id": number}
            for number in range(60)
        ]
        times = {"time_us": 0, "closed_us": 1_000_000, "dropped": True} if kind == "late" else {}
        for note in notes:
            stream.seal(**{kind: [{**note, **times}]})
        page = viewer.open(url_of(stream))
        page.get_by_role("tab", name=f"{kind.capitalize()} records").click()
        panel = page.get_by_role("tabpanel")
        keys = panel.locator("tbody td:first-child")

        def shows(first: int, last: int) -> bool:
            texts = keys.all_inner_texts()
            return [texts[0], texts[-1]] == [f"key {first:02}", f"key {last:02}"]

        panel.get_by_text("1–25, newest first").wait_for()
        assert shows(59, 35)
        panel.get_by_role("button", name="Older").click()
        eventually(lambda: shows(34, 10))
        panel.get_by_role("button", name="Older").click()
        eventually(lambda: shows(9, 0))
        panel.get_by_text("51–60, newest first").wait_for()
        panel.get_by_role("button", name="Older").click()  # there is nothing more
        panel.get_by_role("button", name="Newer").click()
        eventually(lambda: shows(34, 10))

    def test_it_is_redefined_and_a_wrong_definition_is_explained(
        self, viewer: Viewer, stream: StreamApi
    ) -> None:
        page = viewer.open(url_of(stream))
        viewer.sees("version 1")  # the dialog starts from it
        for value, said in ((-5, "must"), (7000, "Version")):
            viewer.click("Redefine")
            page.locator(".qs-dialog .cm-content").wait_for()
            fields = {"source_queue_names": [stream.queue], "partitioned": True, "window_duration_ms": 60_000}
            definition = json.dumps({**fields, "window_grace_period_ms": value})
            page.locator(".qs-dialog .cm-content").fill(definition)
            viewer.confirm("Redefine")
            page.locator(".q-notification").get_by_text(said).first.wait_for()
        assert stream.resource(namespace="tests")["windowGracePeriodMs"] == 7000

    def test_the_dialog_starts_from_the_whole_current_definition(
        self, viewer: Viewer, stream: StreamApi
    ) -> None:
        stream.define(partitioned=True, ordered=False, late="drop", window_retention_ms=3_600_000)
        before = stream.resource(namespace="tests")
        page = viewer.open(url_of(stream))
        viewer.sees(f"version {before['version']}")
        viewer.click("Redefine")
        page.locator(".qs-dialog .cm-content").get_by_text("ordered").wait_for()
        viewer.confirm("Redefine")
        viewer.sees(f"Version {before['version']} is current.")
        after = stream.resource(namespace="tests")
        names = ("version", "ordered", "late", "windowRetentionMs", "sourceQueues")
        assert [after[name] for name in names] == [before[name] for name in names]

    def test_it_is_deleted(self, viewer: Viewer, stream: StreamApi) -> None:
        page = viewer.open(url_of(stream))
        viewer.click("Delete")
        viewer.confirm("Cancel")
        assert stream.resource(namespace="tests")["name"] == stream.name
        viewer.click("Delete")
        viewer.confirm("Delete")
        page.wait_for_url("**/streams")
        path = f"/api/v1/resources/streams/{stream.name}"
        assert stream.api.get(path, namespace="tests").status_code == 404


class TestQueue:
    """Actions on a queue, its groups and dead letters."""

    def test_a_message_is_pushed_shown_and_deleted(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        dashboard.api.configure(queue)
        page = viewer.open(f"/queue?name={queue}")
        viewer.click("Push a message")
        page.get_by_label("Payload").fill("{not json")
        viewer.confirm("Push")
        viewer.sees("not valid JSON")
        viewer.click("Push a message")
        page.get_by_label("Payload").fill('{"from": "the dashboard"}')
        viewer.confirm("Push")
        viewer.sees('{"from":"the dashboard"}')
        (message,) = dashboard.api.read("/api/v1/messages", queue=queue)["messages"]
        assert message["data"] == {"from": "the dashboard"}
        trace = {name: message[name] for name in ("transactionId", "partitionId")}
        dashboard.api.post("/api/v1/traces", {**trace, "data": {"step": 7}, "traceNames": [f"of {queue}"]})
        viewer.click("Open")
        drawer = page.locator(".qs-drawer")
        drawer.get_by_text('"step": 7').wait_for()
        # Its trace leads to a message of another queue, and back.
        dashboard.api.push(f"{queue}-next", {"also": "traced"})
        (other,) = dashboard.api.read("/api/v1/messages", queue=f"{queue}-next")["messages"]
        trace = {name: other[name] for name in ("transactionId", "partitionId")}
        dashboard.api.post("/api/v1/traces", {**trace, "data": {"step": 8}, "traceNames": [f"of {queue}"]})
        drawer.get_by_role("button", name=f"Follow of {queue}").click()
        drawer.get_by_text("2 events, oldest first").wait_for()
        drawer.get_by_role("button", name="Open message").last.click()
        drawer.get_by_text('"also": "traced"').wait_for()
        drawer.get_by_role("button", name=f"Follow of {queue}").click()
        drawer.get_by_role("button", name="Open message").first.click()
        drawer.get_by_text('"from": "the dashboard"').wait_for()
        viewer.click("Delete message")
        viewer.confirm("Delete")
        eventually(lambda: dashboard.api.read("/api/v1/messages", queue=queue)["messages"] == [])

    def test_a_dead_message_is_retried_in_its_drawer(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        bury_messages(dashboard, queue, [1])
        page = viewer.open(f"/queue?name={queue}")
        viewer.click("Open")
        retry = page.locator(".qs-drawer").get_by_role("button", name="Retry")
        retry.click()
        viewer.confirm("Cancel")
        assert len(dashboard.api.dead_letters(queue)) == 1
        retry.click()
        viewer.confirm("Retry")
        eventually(lambda: dashboard.api.dead_letters(queue) == [])

    def test_pages_of_messages_that_are_not_loaded_cannot_be_turned(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        dashboard.api.push(queue, {"number": 1})
        before = dashboard.log_file.read_text()
        with dashboard.broker.stuck():
            viewer.open(f"/queue?name={queue}")
            viewer.click("Older ›")
            viewer.click("Push a message")  # handled after the click before it
            viewer.confirm("Cancel")
        viewer.sees('{"number":1}')
        assert "AttributeError" not in dashboard.log_file.read_text().removeprefix(before)

    def test_messages_are_chosen_by_state_and_partition(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        api = dashboard.api
        api.push(queue, "one", partition="a")
        api.push(queue, "two", partition="b")
        api.complete(api.take(queue, "a", consumerGroup="g"), "g")
        page = viewer.open(f"/queue?name={queue}")
        rows = page.locator(".qs-table").first.locator("tbody tr td:first-child")
        for state, expected in (
            ("Completed", ['"one"']),
            ("Pending", ['"two"']),
            ("All", ['"two"', '"one"']),
        ):
            viewer.click(state)
            eventually(lambda expected=expected: rows.all_inner_texts() == expected)  # type: ignore[misc]
        page.get_by_label("Partition", exact=True).fill("a")
        eventually(lambda: rows.all_inner_texts() == ['"one"'])
        page.get_by_label("Pushed before").fill("2020-01-01")
        viewer.sees("No message matches.")
        page.get_by_label("Pushed before").fill("2100-01-01")
        eventually(lambda: rows.all_inner_texts() == ['"one"'])

    def test_it_is_deleted(self, viewer: Viewer, dashboard: Dashboard, queue: str) -> None:
        dashboard.api.configure(queue)
        page = viewer.open(f"/queue?name={queue}")
        viewer.click("Delete")
        viewer.confirm("Delete")
        page.wait_for_url("**/queues")
        assert dashboard.api.get(f"/api/v1/resources/queues/{queue}").status_code == 404

    def test_leases_are_found_among_many_partitions_which_have_pages(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        api = dashboard.api
        items = [{"queue": queue, "partition": f"p{number:03}", "payload": 1} for number in range(230)]
        assert api.push_items(items).status_code == 201
        api.take(queue, consumerGroup=f"g-{queue}", autoAck="true")  # discovers all partitions
        assert api.take(queue, "p229", consumerGroup=f"g-{queue}", consumerId="the last worker")
        page = viewer.open(f"/group?name=g-{queue}")
        viewer.sees("the last worker")
        partitions = page.locator(".qs-panel").last.locator("tbody td:first-child")
        eventually(lambda: partitions.all_inner_texts()[:1] == ["p000"])
        page = viewer.open(f"/queue?name={queue}")
        page.get_by_role("tab", name="Partitions").click()
        panel = page.get_by_role("tabpanel")
        panel.get_by_text("1–25, by name").wait_for()
        panel.get_by_role("button", name="Next").click()
        panel.get_by_text("p049").wait_for()
        panel.get_by_text("26–50, by name").wait_for()

    def test_a_group_seeks_and_is_deleted(self, viewer: Viewer, dashboard: Dashboard, queue: str) -> None:
        api = dashboard.api
        group = f"g-{queue}"
        api.push(queue, 1, 2, 3)
        api.drain(queue, 3, consumerGroup=group)
        page = viewer.open(f"/group?name={group}")
        viewer.click("Seek…")
        viewer.confirm("To the beginning")
        eventually(lambda: api.read(f"/api/v1/consumer-groups/{group}")["lag"] == 3)
        viewer.click("Delete")
        viewer.confirm("Delete")
        page.wait_for_url("**/groups")
        assert api.get(f"/api/v1/consumer-groups/{group}").status_code == 404

    def test_a_group_of_a_stream_seeks_to_a_time_by_the_end_of_windows(
        self, viewer: Viewer, stream: StreamApi
    ) -> None:
        group = f"g-{stream.name}"
        stream.drain(group)
        timeline = stream.resource("timeline", namespace=stream.namespace)
        ends = sorted(window["end"] for window in timeline["windows"])
        page = viewer.open(f"/group?name={group}")
        viewer.click("Seek…")
        page.get_by_label("Time, such as").fill(ends[0])
        viewer.confirm("To this time")
        viewer.sees("continues from")
        assert states(stream, group) == ["skipped", "waiting", "waiting"]

    def test_a_group_that_cannot_be_deleted_is_explained(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        dashboard.api.push(queue, 1)
        dashboard.api.drain(queue, 1, consumerGroup=f"g-{queue}")
        page = viewer.open(f"/group?name=g-{queue}")
        viewer.click("Delete")
        page.locator(".qs-dialog").wait_for()
        dashboard.broker.kill()
        try:
            viewer.confirm("Delete")
            page.locator(".q-notification").get_by_role("button", name="Close").click()
            assert "/group?" in page.url
        finally:
            dashboard.broker.start()

    def test_a_selection_of_dead_letters_never_means_all(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        numbers = range(51)
        bury_messages(dashboard, queue, numbers)
        page = viewer.open(f"/dead-letters?queue={queue}")
        page.get_by_role("button", name="Delete all 51").wait_for()
        first = page.locator("tbody tr").first
        first.locator("input").check()
        page.get_by_role("button", name="Delete 1 selected").wait_for()
        viewer.click("Older ›")
        page.get_by_role("button", name="Retry all 51").wait_for()
        assert page.locator("tbody input:checked").count() == 0
        viewer.click("‹ Newer")
        page.locator("tbody tr").nth(49).wait_for()
        chosen = [int(text) for text in page.locator("tbody td:last-child").all_inner_texts()[:2]]
        for number in range(2):
            page.locator("tbody input").nth(number).check()
        page.get_by_role("button", name="Delete 2 selected").wait_for()
        bury_messages(dashboard, queue, range(100, 150))  # they push the selected ones off the page
        viewer.sees("101 dead letters match")
        viewer.click("Delete 2 selected")
        viewer.confirm("Delete")
        viewer.sees("99 dead letters match")
        left = {letter["data"] for letter in dashboard.api.dead_letters(queue, limit=200)}
        assert left == {*numbers, *range(100, 150)} - set(chosen)
        # Other tests expect theirs on the first page.
        assert dashboard.api.http.delete("/api/v1/dlq", params={"queue": queue}).status_code == 200

    def test_all_dead_letters_that_match_are_retried(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        others = f"{queue}-others"
        bury_messages(dashboard, queue, range(3))
        bury_messages(dashboard, others, [7])
        viewer.open(f"/dead-letters?queue={queue}")
        viewer.click("Retry all 3")
        viewer.confirm("Cancel")
        assert len(dashboard.api.dead_letters(queue)) == 3
        viewer.click("Retry all 3")
        viewer.confirm("Retry")
        eventually(lambda: dashboard.api.dead_letters(queue) == [])
        assert len(dashboard.api.dead_letters(others)) == 1
        again = dashboard.api.take(queue, consumerGroup="g", batch=10)
        assert sorted(message["data"] for message in again) == [0, 1, 2]
        assert dashboard.api.http.delete("/api/v1/dlq", params={"queue": others}).status_code == 200

    def test_dead_letters_are_retried_and_deleted_one_by_one_and_by_filter(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        api = dashboard.api
        for number in range(4):
            api.push(queue, number)
            (message,) = api.take(queue, consumerGroup="g")
            api.ack(message, "dlq", consumerGroup="g", error="broken")

        def left() -> list[Any]:
            return sorted(letter["data"] for letter in api.dead_letters(queue))

        page = viewer.open("/dead-letters")
        viewer.click("Delete")
        viewer.sees("Select dead letters")
        assert left() == [0, 1, 2, 3]
        page = viewer.open(f"/dead-letters?queue={queue}")
        viewer.sees("4 dead letters match")
        page.locator("tbody input[type=checkbox]").nth(0).check()
        viewer.click("Retry 1 selected")
        viewer.confirm("Retry")
        eventually(lambda: left() == [0, 1, 2])
        viewer.sees("3 dead letters match")
        page.locator("tbody input[type=checkbox]").nth(0).check()
        viewer.click("Delete 1 selected")
        viewer.confirm("Delete")
        eventually(lambda: left() == [0, 1])
        viewer.sees("2 dead letters match")
        viewer.click("Delete all 2")
        viewer.confirm("Delete")
        eventually(lambda: left() == [])


class TestJobs:
    """Actions on jobs, and the SQL console."""

    @pytest.fixture
    def job(self, dashboard: Dashboard) -> str:
        """A job of the test's own."""
        name = f"job_{uuid4().hex[:8]}"
        Sql(dashboard.api)(f"CREATE STREAM {name} AS SELECT amount FROM purchases")
        return name

    def test_a_job_is_paused_resumed_restarted_and_dropped(
        self, viewer: Viewer, dashboard: Dashboard, job: str
    ) -> None:
        sql = Sql(dashboard.api)
        page = viewer.open(f"/job?name={job}")
        viewer.click("Pause")
        eventually(lambda: sql.job(job)["state"] == "paused")
        viewer.click("Resume")
        eventually(lambda: sql.job(job)["state"] == "running")
        sql.run(FAILURE, 0, 0, 0, "it broke", sql.stream(job)[0])
        viewer.sees("it broke")
        viewer.click("Restart")
        eventually(lambda: sql.job(job)["state"] == "running")
        viewer.click("Drop")
        viewer.confirm("Drop")
        page.wait_for_url("**/jobs")
        assert dashboard.api.get(f"/api/v1/jobs/{job}").status_code == 404

    def test_the_list_of_jobs_acts_too(self, viewer: Viewer, dashboard: Dashboard, job: str) -> None:
        page = viewer.open("/jobs")
        page.get_by_label("Search jobs").fill(job)
        row = page.locator("tbody tr").filter(has_text=job)
        row.get_by_role("button", name="Pause").click()
        eventually(lambda: Sql(dashboard.api).job(job)["state"] == "paused")

    def test_statements_run_are_explained_remembered_and_refused_with_a_message(
        self, viewer: Viewer, dashboard: Dashboard, queue: str
    ) -> None:
        name = queue.replace("-", "_")
        page = viewer.open("/sql")
        editor = page.locator(".cm-content")
        editor.fill(
            f"CREATE STREAM {name} (n BIGINT) WITH (queue = '{name}'); INSERT INTO {name} VALUES (1), (2);"
        )
        viewer.click("Run")
        viewer.sees("✓ insert")
        rows = dashboard.api.read("/api/v1/messages", queue=name)["messages"]
        assert sorted(row["data"]["n"] for row in rows) == [1, 2]
        editor.fill("SELECT amount FROM purchases WHERE amount > 10")
        viewer.click("Explain")
        page.locator(".qs-code").first.wait_for()
        editor.fill("SELECT nothing FROM nowhere")
        viewer.click("Run")
        viewer.sees("Line 1, column")
        editor.fill("SHOW JOBS")
        page.keyboard.press("Control+Enter")
        viewer.sees("big_orders")
        viewer.open("/sql")
        page.get_by_role("button", name="SELECT nothing FROM nowhere").wait_for()

    def test_rows_appear_as_they_are_pushed_until_the_query_is_stopped(
        self, viewer: Viewer, dashboard: Dashboard
    ) -> None:
        sql = Sql(dashboard.api)
        before = set(sql.temporary_queues())
        page = viewer.open("/sql")
        page.locator(".cm-content").fill("SELECT amount AS n, amount * 2 AS doubled FROM purchases")
        viewer.click("Run")
        viewer.sees("Waiting for rows…")
        (rows,) = set(sql.temporary_queues()) - before
        for number in (101, 102):
            sql.emit(rows, json.dumps({"n": number, "doubled": 2 * number}))
            page.get_by_role("cell", name=str(2 * number), exact=True).wait_for()
        cells = page.locator(".qs-table tbody td")
        assert cells.all_inner_texts() == ["102", "204", "101", "202"]
        viewer.sees("2 rows, newest first")
        viewer.click("Stop")
        viewer.sees("Stopped.")
        eventually(lambda: rows not in sql.temporary_queues())

    def test_explain_takes_one_statement_and_runs_none(
        self, viewer: Viewer, dashboard: Dashboard, job: str
    ) -> None:
        page = viewer.open("/sql")
        create = f"CREATE STREAM {job}_again AS SELECT amount FROM purchases"
        page.locator(".cm-content").fill(f"{create}; DROP STREAM {job}")
        viewer.click("Explain")
        viewer.sees("Explain takes one statement")
        assert Sql(dashboard.api).job(job)["state"] == "running"
        page.locator(".cm-content").fill(f"{create};")
        page.wait_for_timeout(300)  # the editor notices a change by itself, a moment later
        viewer.click("Explain")
        page.locator(".qs-code").get_by_text(f"job {job}_again").wait_for()

    def test_names_that_need_it_are_quoted(self, viewer: Viewer, dashboard: Dashboard, queue: str) -> None:
        name = f"a-{queue}"
        quoted = f"`{name}`"
        dashboard.api.configure(name)
        try:
            page = viewer.open("/sql")
            chip = page.get_by_role("button", name=name, exact=True)
            chip.wait_for()
            viewer.open("/sql")  # the first statement is about the first queue
            editor = page.locator(".cm-content")
            eventually(lambda: f"FROM {quoted} EMIT" in editor.inner_text())
            editor.fill("SELECT * FROM")
            page.wait_for_timeout(300)
            chip.click()
            editor.get_by_text(f"SELECT * FROM {quoted}").wait_for()
            for typed in (name[:8], f"`{name[:8]}"):
                editor.fill("SELECT * FROM ")
                page.wait_for_timeout(300)
                page.keyboard.type(typed, delay=60)
                page.locator(".cm-tooltip-autocomplete").get_by_text(name).click()
                eventually(lambda: editor.inner_text().strip() == f"SELECT * FROM {quoted}")
        finally:
            dashboard.api.delete(f"/api/v1/resources/queues/{name}")

    def test_the_editor_completes_names(self, viewer: Viewer) -> None:
        page = viewer.open("/sql")
        page.locator(".cm-content").fill("SELECT * FROM ")
        page.wait_for_timeout(300)
        page.keyboard.type("purch", delay=60)
        page.locator(".cm-tooltip-autocomplete").get_by_text("purchases").wait_for()


def test_the_broker_of_these_tests_is_the_one_that_is_shown(viewer: Viewer, dashboard: Dashboard) -> None:
    viewer.open("/system")
    viewer.sees(f"127.0.0.1:{dashboard.broker.port}")
