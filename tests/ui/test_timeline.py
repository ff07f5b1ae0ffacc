"""The timeline of a stream: its lanes, lines and bars, and its note about windows that are not drawn."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.streams.sealing import Sealed
from tests.streams.stream_api import StreamApi
from tests.ui.conftest import Dashboard, Viewer
from tests.wire.deadline import eventually

MINUTE_US = 60_000_000
RECORD = """
const canvas = CanvasRenderingContext2D.prototype;
const {fillText, stroke, clearRect} = canvas;
window.drawn = window.drawing = {texts: [], dashes: []};
canvas.clearRect = function (...a) {
  window.drawn = window.drawing; window.drawing = {texts: [], dashes: []}; return clearRect.apply(this, a);
};
canvas.fillText = function (text, ...a) {
  window.drawing.texts.push(String(text)); return fillText.call(this, text, ...a);
};
canvas.stroke = function (...a) {
  window.drawing.dashes.push(this.getLineDash().join()); return stroke.apply(this, a);
};
"""
"""Keeps the texts and the dashes of the lines of the last whole drawing."""


@pytest.fixture
def stream(dashboard: Dashboard) -> Iterator[StreamApi]:
    """A stream of the test's own."""
    stream = StreamApi(dashboard.api, dashboard.broker.database_url)
    yield stream
    # The other streams of the shop read on from where they are.
    stream.run("DELETE FROM queenspark.progress WHERE bucket = %s", stream.pipeline.bucket)
    stream.close()


def now_us(stream: StreamApi) -> int:
    ((now,),) = stream.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    return int(now)


def open_page(viewer: Viewer, stream: StreamApi) -> Page:
    viewer.page.add_init_script(RECORD)
    return viewer.open(f"/stream?namespace={stream.namespace}&name={stream.name}")


def test_a_selected_window_stays_selected_when_it_is_sealed(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True, window_duration_ms=60_000, window_grace_period_ms=1000)
    (record,) = stream.push({"n": 1})
    txid, id_ = record.position
    state = json.dumps({"txid": txid, "id": id_, "tick": record.created_us, "seq": 1_000_000})
    of = {"stream": stream.id, "version": 1}
    stream.seal(stats=[{**of, "open_windows": 1, "open_txid": txid, "open_id": id_}], state=state)
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: seen == {"open": 1})
    page.locator(".qs-timeline canvas").focus()
    page.keyboard.press("]")
    page.locator(".qs-tip").get_by_text("open").wait_for()
    start = record.created_us // MINUTE_US * MINUTE_US
    sealed = stream.over([record], start_us=start, end_us=start + MINUTE_US)
    stream.seal(sealed, stats=[{**of, "windows": 1}], state=state)
    viewer.wait_for_states(lambda seen: seen == {"waiting": 1})
    page.locator(".qs-tip").get_by_text("sealed, waiting").wait_for()
    page.keyboard.press("Enter")
    page.locator(".qs-drawer").get_by_text("Sealed", exact=True).wait_for()


def test_windows_in_any_order_are_drawn_in_the_lane_of_their_key(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True, ordered=False)
    now = now_us(stream)
    steps = ((now - (n + 1) * MINUTE_US, now - n * MINUTE_US) for n in range(3))
    stream.seal(*(Sealed("ann", start, end, ordered=False) for start, end in steps))
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: seen == {"waiting": 3})
    page.wait_for_function("window.drawn.texts.includes('ann')")
    page.get_by_text("1 key", exact=True).wait_for()


def test_a_group_that_is_deleted_is_no_longer_selected(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True)
    now = now_us(stream)
    stream.seal(Sealed("p", now - 2 * MINUTE_US, now - MINUTE_US))
    stream.poll("stays")
    stream.ack(stream.poll("goes"))
    page = open_page(viewer, stream)
    groups = page.get_by_role("group", name="Group")
    groups.get_by_text("goes").click()
    viewer.wait_for_states(lambda seen: seen == {"acked": 1})
    assert stream.api.delete("/api/v1/consumer-groups/goes").status_code == 200
    viewer.wait_for_states(lambda seen: seen == {"leased": 1})
    groups.locator("button.on").get_by_text("stays").wait_for()


def test_older_windows_that_are_not_drawn_are_mentioned(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True, window_duration_ms=10_000)
    now = now_us(stream)
    step = MINUTE_US // 6
    stream.seal(*(Sealed("p", now - (n + 1) * step, now - n * step) for n in range(310)))
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: 0 < sum(seen.values()) < 100)
    said = page.get_by_text("older windows are not drawn: zoom in")
    assert said.count() == 0
    page.get_by_role("button", name="1 h", exact=True).click()
    said.wait_for()
    page.get_by_role("button", name="15 min").click()
    said.wait_for(state="hidden")


def test_the_lines_of_watermark_and_grace_are_drawn_next_to_now(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True, window_grace_period_ms=3000)
    now = now_us(stream)
    window = Sealed("p", now - 2 * MINUTE_US, now - MINUTE_US)
    stream.seal(window, stats=[{"stream": stream.id, "version": 1, "watermark_us": now, "windows": 1}])
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: seen)
    page.get_by_role("button", name="6 h").click()  # the three lines are within a few pixels

    def has_lines() -> bool:
        drawn = page.evaluate("window.drawn")
        return {"5,3", "2,3"} <= set(drawn["dashes"]) and not {"watermark", "grace"} & set(drawn["texts"])

    eventually(has_lines)


def test_a_seek_to_a_sliding_window_leaves_out_those_that_overlap_it(
    viewer: Viewer, stream: StreamApi
) -> None:
    stream.define(partitioned=True, window_type="sliding", window_duration_ms=60_000, window_slide_ms=10_000)
    step = MINUTE_US // 6
    last = now_us(stream) // step * step
    stream.seal(*(Sealed("p", last - n * step - MINUTE_US, last - n * step) for n in range(7)))
    stream.drain()
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: seen == {"acked": 7})
    page.locator(".qs-timeline canvas").focus()
    for key in ("]", "[", "Enter"):  # the last one but one
        page.keyboard.press(key)
    viewer.click("Seek g to this window")
    viewer.confirm("Seek")
    viewer.wait_for_states(lambda seen: seen == {"skipped": 5, "waiting": 2})
    assert len(stream.drain()) == 2


def test_the_busiest_key_has_the_first_lane(viewer: Viewer, stream: StreamApi) -> None:
    stream.define(partitioned=True)
    now = now_us(stream)
    counts = {"calm": 1, "middling": 2, "zealous": 3}
    stream.seal(
        *(
            Sealed(key, now - (n + 1) * MINUTE_US, now - n * MINUTE_US)
            for key, number in counts.items()
            for n in range(number)
        )
    )
    page = open_page(viewer, stream)
    viewer.wait_for_states(lambda seen: seen)
    page.wait_for_function("window.drawn.texts.includes('calm')")
    texts = page.evaluate("window.drawn.texts")
    assert [text for text in texts if text in counts] == ["zealous", "middling", "calm"]
