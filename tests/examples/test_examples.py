"""Every example is run as a reader runs it, a few at a time, and prints exactly the expected output."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from tests.broker_process import clean_environment
from tests.system.system import System

FOLDER = Path(__file__).parents[2] / "examples"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
AT_ONCE = 6
SECONDS = 180
MOST_LINES = 70

pytestmark = pytest.mark.timeout(600)

#: The expected output of each example.
PRINTED = {
    "01_quick_start": """
        alice signed in
        bob signed in
        alice bought a book
        a window of 3 messages
    """,
    "02_global_stream": """
        10:00: 1 of 4 failed, in api-logs, app-logs, db-logs
        10:05: 2 of 4 failed, in api-logs, app-logs, db-logs
    """,
    "03_partitioned_chat": """
        room-1: 1 messages, 1 reactions, 1 edits by alice and bob
        room-2: 1 messages, 0 reactions, 0 edits by carol
    """,
    "04_tumbling": """
        10:00:00 to 10:01:00: ['/', '/books']
        10:01:00 to 10:02:00: ['/cart']
        10:03:00 to 10:04:00: ['/']
    """,
    "05_sliding": """
        09:59:30 to 10:00:30: 40 % of 1 samples
        10:00:00 to 10:01:00: 50 % of 2 samples
        10:00:30 to 10:01:30: 40 % of 2 samples
        10:01:00 to 10:02:00: 20 % of 1 samples
    """,
    "06_session": """
        alice: / → /books
        alice: / → /cart → /pay
        bob: /help
    """,
    "07_count": """
        ACME: [10, 12, 11, 15], on average 12.0
        ACME: [11, 15, 18, 20], on average 16.0
    """,
    "08_consumer_groups": """
        archive: anna paid in [50, 30]
        archive: ben paid in [20, 5]
        dashboard: anna has 80
        dashboard: ben has 25
        the same windows: True
    """,
    "09_load_balancing": """
        worker 1 had 2 windows
        worker 2 had 2 windows
        together: ['Bern', 'Oslo', 'Rome', 'Wien']
    """,
    "10_event_time": """
        10:00: 3 requests, 300 ms on average, p95 642 ms, 33% errors
        10:01: 3 requests, 100 ms on average, p95 104 ms, 0% errors
    """,
    "11_stream_join": """
        ann: 2 purchases, 50%, revenue 119.75
        ben: 0 purchases, 0%, revenue 0.00
        cid: 1 purchases, without a click, revenue 12.00
    """,
    "12_order_lifecycle": """
        o-1: complete, tell the customer
        o-2: paid, waits for its shipment
        o-3: not paid, send a reminder
    """,
    "13_sessionization": """
        dora: 09:00 to 09:25, / /books /cart
        dora: 09:55 to 10:20, / /pay
        emil: 09:10 to 09:10, /
    """,
    "14_fraud_alerts": """
        alert: ben paid 13000 in 1 cities
        alert: cleo paid 60 in 3 cities
    """,
    "15_two_stages": """
        10:00: {'NO': 2, 'IT': 1}
        10:01: {'IT': 1}
    """,
    "16_etl": """
        [('10:00', 2), ('10:10', 0)]
        [('10:00', 2), ('10:10', 0)]
    """,
    "17_late_sensor_data": """
        10:00, revision 1: 3 readings, 21.0 °C
        10:00, revision 2: 4 readings, 20.0 °C
        10:01, revision 1: 2 readings, 23.5 °C
        late: the reading of 10:00:20
    """,
    "18_dashboard": """
        {"views": 6, "users": 3, "p95_ms": 737.5, "top": [["/", 3], ["/books", 2]]}
    """,
    "19_chat_translation": """
        chat-1: Hello! (¡Hola!) How are you? (¿Cómo estás?)
        chat-2: Good night (Buenas noches)
    """,
    "20_device_telemetry": """
        pump-1: up to 65 °C and 2.5 bar, 4 readings, ok
        pump-2: up to 88 °C and 5.25 bar, 4 readings, critical
    """,
    "21_seek_and_replay": """
        10:00: 5 pieces
        10:01: 7 pieces
        10:02: 3 pieces
        10:03: 9 pieces
        again from 10:02 on
        10:02: 3 pieces
        10:03: 9 pieces
    """,
    "22_errors": """
        delivered
        attempt 1: ['scan', 'sort', 'send']
        failed (the database is away)
        delivered
        attempt 2: ['scan', 'sort', 'send']
        done
    """,
    "23_dead_letters": """
        invoice 1, attempt 1
        invoice 2, attempt 1
        invoice 2, attempt 2
        invoice 3, attempt 1
        dead letter: invoice 2, ValueError: could not convert string to float: '4,20'
        invoice 2 is booked: 4.20
        dead letters left: 0
    """,
    "24_long_processing": """
        worked through 0.png to 3.png
        deliveries: 1, lost: 0, renewed by itself: True
        4.png to 7.png: renewed and acked by hand
    """,
    "25_pyspark": """
        alice {'amount': 120, 'tax': 24}
        carol {'amount': 300, 'tax': 60}
    """,
    "26_migration": """
        before: 5 messages
        after: 10:00, 2 messages, 21 °C on average
        after: 11:00, 2 messages, 26 °C on average
        after: 12:00, 1 messages, 24 °C on average
    """,
    "27_payload_key": """
        10:00 ann: 2 orders, 21.50 in all
        10:00 ben: 1 orders, 30.00 in all
        10:01 ann: 1 orders, 25.00 in all
    """,
    "28_live_view": """
        ann: 6.0 over 1
        ann: 7.0 over 2
        ann: 8.5 over 2
        ben: 5.0 over 1
        goal 1: red 1, blue 0
        goal 2: red 1, blue 1
        goal 3: red 2, blue 1
        goal 4: red 3, blue 1
    """,
    "29_csv_totals": """
        AT: 3.0 in 1 sales
        IT: 10.0 in 2 sales
        NO: 20.0 in 2 sales
    """,
    "30_watched_folder": """
        attic: 34.0 °C
        oven: 210.0 °C
    """,
    "31_parquet_by_hour": """
        hour=2026-01-31T12 ['12:00: 2', '12:59: 1']
        hour=2026-01-31T13 ['13:00: 3']
    """,
    "32_one_billion_rows": """
        Abha=1.0/18.0/36.4
        Bern=-10.1/9.0/26.5
        Cairo=3.9/22.1/38.2
    """,
}

#: Windows of different keys have no order between them, so these lines may come in any.
ANY_ORDER = {
    "03_partitioned_chat", "06_session", "08_consumer_groups", "11_stream_join",
    "12_order_lifecycle", "13_sessionization", "14_fraud_alerts", "19_chat_translation",
    "20_device_telemetry", "25_pyspark", "27_payload_key", "28_live_view",
}  # fmt: skip

#: Their handlers fail on purpose, without a listener: the client logs a warning.
WARNS = ("23_dead_letters",)
#: Run a second time on the same system, where the first run has left its queues and streams.
REPEATED = ("15_two_stages",)
REPEATED_AT_FULL_SIZE = (
    "01_quick_start", "14_fraud_alerts", "15_two_stages", "17_late_sensor_data", "23_dead_letters",
)  # fmt: skip
#: A Spark of its own, and further queries over files, concurrent with `29_csv_totals`.
LONG = ("25_pyspark", "30_watched_folder", "31_parquet_by_hour", "32_one_billion_rows")


def run(name: str, system: System, folder: Path) -> str:
    """The output of an example."""
    environment = clean_environment(
        url=system.api.url, database_url=system.database_url, data_dir=folder, spark_master="local[1]"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", FILES[name]],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert not done.stderr or (name in WARNS and "Traceback" not in done.stderr), done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(
    running_system: System,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
    full_size: bool,
) -> Iterator[dict[str, Future[list[str]]]]:
    """The examples that are tested, a few at a time, the later ones first: they take longer."""
    repeated = REPEATED_AT_FULL_SIZE if full_size else REPEATED

    def run_all(name: str) -> list[str]:
        folder = tmp_path_factory.mktemp(name)
        return [run(name, running_system, folder) for _ in range(2 if name in repeated else 1)]

    parameters = [vars(item).get("callspec") for item in request.session.items]
    tested = [each.params["example"] for each in parameters if each and "example" in each.params]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {name: pool.submit(run_all, name) for name in reversed(tested)}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(
    "example", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in PRINTED]
)
def test_an_example_prints_its_expected_output(example: str, runs: dict[str, Future[list[str]]]) -> None:
    expected = dedent(PRINTED[example]).strip().splitlines()
    for printed in runs[example].result():
        lines = printed.splitlines()
        assert (sorted(lines) if example in ANY_ORDER else lines) == expected


def test_every_example_is_tested() -> None:
    assert sorted(PRINTED) == list(FILES)


def test_every_example_is_listed() -> None:
    rows = re.findall(r"^\| \[`(.+?)`\]\((.+?)\) \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    programs = [row for row in rows if row[0].endswith(".py")]
    assert programs == [(path.name, path.name) for path in FILES.values()]


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_short_and_has_a_summary(name: str) -> None:
    text = FILES[name].read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert "rints" in (ast.get_docstring(ast.parse(text)) or "")


def test_no_two_examples_use_the_same_queue_or_stream() -> None:
    """They run side by side, and each begins by deleting its own objects."""
    owners: dict[tuple[str, str], str] = {}
    for name, path in FILES.items():
        for call in ast.walk(ast.parse(path.read_text())):
            match call:
                case ast.Call(ast.Attribute(attr="queue" | "stream" as kind), [ast.Constant(str(used)), *_]):
                    assert owners.setdefault((kind, used), name) == name
