"""Changes appear without a reload: a window from open to acked, a broker that goes and comes back."""

import json

from tests.streams.stream_api import StreamApi
from tests.ui.conftest import Dashboard, Viewer

MINUTE_US = 60_000_000


def test_a_window_is_seen_going_from_open_to_acked(viewer: Viewer, dashboard: Dashboard) -> None:
    stream = StreamApi(dashboard.api, dashboard.broker.database_url)
    stream.define(partitioned=True, window_duration_ms=60_000, window_grace_period_ms=1000)
    stream.try_poll()
    (record,) = stream.push({"n": 1})
    txid, id_ = record.position
    state = json.dumps({"txid": txid, "id": id_, "tick": record.created_us, "seq": 1_000_000})
    of = {"stream": stream.id, "version": 1}
    try:
        stream.seal(stats=[{**of, "open_windows": 1, "open_txid": txid, "open_id": id_}], state=state)
        viewer.open(f"/stream?namespace={stream.namespace}&name={stream.name}")
        viewer.wait_for_states(lambda seen: seen == {"open": 1})
        start = record.created_us // MINUTE_US * MINUTE_US
        sealed = stream.over([record], start_us=start, end_us=start + MINUTE_US)
        stream.seal(sealed, stats=[{**of, "windows": 1}], state=state)
        viewer.wait_for_states(lambda seen: seen == {"waiting": 1})
        window = stream.poll()
        viewer.wait_for_states(lambda seen: seen == {"leased": 1})
        stream.ack(window, False, error="not yet")
        viewer.wait_for_states(lambda seen: seen == {"retrying": 1})
        stream.end_waits()
        stream.ack(stream.poll())
        viewer.wait_for_states(lambda seen: seen == {"acked": 1})
    finally:
        # The other streams of the shop read on from where they are.
        stream.run("DELETE FROM queenspark.progress WHERE bucket = %s", stream.pipeline.bucket)
        stream.close()


def test_the_timeline_freezes_zooms_and_follows(viewer: Viewer) -> None:
    page = viewer.open("/stream?namespace=shop&name=shopping")
    viewer.wait_for_states(lambda seen: seen)
    group = page.get_by_role("group", name="Follow the clock")
    box = page.locator(".qs-timeline canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 500, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 800, box["y"] + 60, steps=4)
    page.mouse.up()
    group.locator("button.on").get_by_text("Freeze").wait_for()
    before = sum(viewer.states().values())
    page.get_by_role("button", name="6 h").click()
    viewer.wait_for_states(lambda seen: sum(seen.values()) > before)
    before = sum(viewer.states().values())
    page.get_by_role("button", name="2 min").click()
    viewer.wait_for_states(lambda seen: sum(seen.values()) < before)
    group.get_by_text("Follow", exact=True).click()
    group.locator("button.on").get_by_text("Follow", exact=True).wait_for()
    page.get_by_role("button", name="6 h").click()
    viewer.wait_for_states(lambda seen: sum(seen.values()) >= before)
    of_fraud = viewer.states()
    groups = page.get_by_role("group", name="Group")
    groups.locator("button.on").get_by_text("fraud").wait_for()
    groups.get_by_text("reports").click()
    viewer.wait_for_states(lambda seen: seen.get("acked", 0) > of_fraud.get("acked", 0))  # it is less behind
    page.get_by_label("Search keys").fill("ann")
    page.get_by_text("1 key", exact=True).wait_for()


def test_a_broker_that_goes_and_comes_back_is_shown_without_a_reload(
    viewer: Viewer, dashboard: Dashboard
) -> None:
    page = viewer.open("/queue?name=purchases")
    page.evaluate("window.isTheSamePage = true")
    banner = page.locator(".qs-banner")
    assert not banner.is_visible()
    dashboard.broker.kill()
    try:
        banner.wait_for()
        assert "has not responded for" in banner.inner_text()
        viewer.sees("amount")
        viewer.open("/streams")
        banner.wait_for()
        viewer.open("/queue?name=purchases")
        page.evaluate("window.isTheSamePage = true")
    finally:
        dashboard.broker.start()
    banner.wait_for(state="hidden")
    dashboard.api.push("purchases", {"after": "the return"})
    viewer.sees('{"after":"the return"}')
    assert page.evaluate("window.isTheSamePage")


def test_a_hidden_page_sends_no_requests(viewer: Viewer, dashboard: Dashboard, queue: str) -> None:
    dashboard.api.push(queue, {"number": 1})
    page = viewer.open(f"/queue?name={queue}")
    viewer.sees('{"number":1}')

    def see(is_seen: bool) -> None:
        page.evaluate(
            "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
            " document.dispatchEvent(new Event('visibilitychange')); }",
            not is_seen,
        )

    see(False)
    page.wait_for_timeout(1500)
    dashboard.api.push(queue, {"number": 2})
    page.wait_for_timeout(2500)
    assert page.get_by_text('{"number":2}').count() == 0
    see(True)
    viewer.sees('{"number":2}')
