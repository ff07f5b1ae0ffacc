"""`make bench`: the measurements that run on a machine."""

from typing import Any

import pytest
import typer

import bench.__main__ as bench


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The measurements that were run, on a machine without wrk."""
    ran: list[str] = []

    def run(command: list[str], **_: Any) -> None:
        ran.append(command[2])

    def measure_queue(names: list[str], *_: Any) -> list[Any]:
        ran.extend(names)
        return []

    monkeypatch.setattr("bench.wrk.shutil.which", lambda _: None)
    monkeypatch.setattr("bench.__main__.subprocess.run", run)
    monkeypatch.setattr(bench, "_measure_queue", measure_queue)
    return ran


def test_without_wrk_the_other_measurements_run(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    bench.bench()
    assert ran == ["latency", "bench.client", "bench.windows", "bench.jobs", "bench.files"]
    said = " ".join(capsys.readouterr().err.split())
    assert "apt-get install wrk. Skipped: push-1, push-100, push-1000, pop-ack, streams." in said


def test_without_wrk_a_measurement_that_needs_it_is_an_error(
    ran: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        bench.bench(only=["push-1"])
    assert ended.value.exit_code == bench.CANNOT_MEASURE
    assert ran == []
    assert "apt-get install wrk" in capsys.readouterr().err
