"""The embedded PostgreSQL starts, survives crashes, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from queenspark.embedded import AlreadyRunning, EmbeddedPostgres, EmbeddedPostgresError, binaries
from tests.postgres_servers import DEBIAN_15, prepare_data_dir
from tests.processes import gone
from tests.wire.deadline import eventually

OWNER = """
import sys, time
from pathlib import Path
from queenspark.embedded import EmbeddedPostgres
postgres = EmbeddedPostgres(Path(sys.argv[1]))
postgres.start()
print(postgres.pid, flush=True)
time.sleep(600)
"""

IS_ACTIVE = "SELECT 1 FROM pg_stat_activity WHERE pid = {} AND state = 'active'"


@pytest.fixture(params=["packaged", "debian 15"])
def bin_dir(request: pytest.FixtureRequest) -> Path | None:
    if request.param == "packaged":
        return None
    if not (DEBIAN_15 / "postgres").exists():
        pytest.skip("Debian's PostgreSQL 15 is not installed")
    return DEBIAN_15


@pytest.fixture
def made(folder: Path) -> Path:
    """A data folder whose cluster is there already; `initdb` has tests of its own."""
    prepare_data_dir(folder)
    return folder


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def test_a_database_is_made_on_first_use_and_keeps_its_data(folder: Path, bin_dir: Path | None) -> None:
    with EmbeddedPostgres(folder, bin_dir=bin_dir) as postgres, psycopg.connect(postgres.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    with EmbeddedPostgres(folder, bin_dir=bin_dir) as postgres:
        assert ask(postgres.url, "SELECT answer FROM kept") == 42


def test_it_is_durable_and_speaks_utf_8(folder: Path, bin_dir: Path | None) -> None:
    with EmbeddedPostgres(folder, bin_dir=bin_dir) as postgres:
        values = {
            name: ask(postgres.url, f"SHOW {name}")
            for name in (
                "fsync",
                "synchronous_commit",
                "full_page_writes",
                "server_encoding",
                "listen_addresses",
            )
        }
    assert values == {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "server_encoding": "UTF8",
        "listen_addresses": "",
    }


def test_options_override_the_defaults(made: Path) -> None:
    with EmbeddedPostgres(made, options={"max_connections": "17"}) as postgres:
        assert ask(postgres.url, "SHOW max_connections") == "17"


def test_stop_leaves_no_process(made: Path) -> None:
    postgres = EmbeddedPostgres(made)
    postgres.start()
    with psycopg.connect(postgres.url) as connection:
        backend = connection.info.backend_pid
        postmaster = postgres.pid
        postgres.stop()
        assert gone(postmaster)
        eventually(lambda: gone(backend))
    assert not postgres.running
    postgres.stop()


def test_a_second_start_on_the_same_folder_is_refused_in_one_sentence(made: Path) -> None:
    with EmbeddedPostgres(made) as postgres:
        with pytest.raises(AlreadyRunning) as refusal:
            EmbeddedPostgres(made).start()
        assert str(made) in str(refusal.value)
        assert str(os.getpid()) in str(refusal.value)
        assert ask(postgres.url, "SELECT 1") == 1


def test_it_recovers_from_a_killed_postmaster_with_connections_open(
    folder: Path, bin_dir: Path | None
) -> None:
    prepare_data_dir(folder, bin_dir)
    with EmbeddedPostgres(folder, bin_dir=bin_dir) as postgres:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
            postgres.kill()
            assert not postgres.running
            postgres.start()
        assert ask(postgres.url, "SELECT answer FROM kept") == 42


def test_a_query_that_goes_on_without_its_postmaster_does_not_hold_up_the_recovery(made: Path) -> None:
    forever = "DO 'BEGIN LOOP NULL; END LOOP; END'"
    with EmbeddedPostgres(made) as postgres:
        with psycopg.connect(postgres.url, autocommit=True) as connection, ThreadPoolExecutor(1) as threads:
            backend = connection.info.backend_pid
            running = threads.submit(connection.execute, forever)
            eventually(lambda: ask(postgres.url, IS_ACTIVE.format(backend)))
            postgres.kill()
            assert not gone(backend)
            postgres.start(within=30)
            assert isinstance(running.exception(), psycopg.OperationalError)
        assert gone(backend)
        assert ask(postgres.url, "SELECT 1") == 1


def test_the_server_of_a_killed_owner_is_stopped_and_the_data_taken_over(made: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(made)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    orphan = int(owner.stdout.readline())
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert not gone(orphan)
    with EmbeddedPostgres(made) as postgres:
        assert postgres.pid != orphan
        eventually(lambda: gone(orphan))
        assert ask(postgres.url, "SELECT 1") == 1


def test_reused_process_ids_in_stale_files_are_ignored(made: Path) -> None:
    with EmbeddedPostgres(made) as postgres:
        pid_file = postgres.data_dir.pid_file
        lines = pid_file.read_text().splitlines()
        socket_dir = postgres.data_dir.socket_dir
        postgres.kill()
    stranger = subprocess.Popen(["sleep", "600"], user="nobody" if os.geteuid() == 0 else None)
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        (socket_dir / ".s.PGSQL.5432.lock").write_text(f"{stranger.pid}\n")
        with EmbeddedPostgres(made) as postgres:
            assert ask(postgres.url, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()


def test_a_stop_that_is_interrupted_can_be_repeated(made: Path) -> None:
    postgres = EmbeddedPostgres(made)
    postgres.start()
    pid = postgres.pid
    os.kill(pid, signal.SIGSTOP)  # it does not hear that it should end

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt):
            postgres.stop()
    finally:
        signal.signal(signal.SIGALRM, before)
        os.kill(pid, signal.SIGCONT)
    postgres.stop()
    assert gone(pid)


def test_an_interrupted_first_start_is_repeated(folder: Path) -> None:
    (folder / "postgres.new").mkdir()
    (folder / "postgres.new" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(folder) as postgres:
        assert ask(postgres.url, "SELECT 1") == 1


def test_a_path_that_is_too_long_for_a_socket_works(folder: Path) -> None:
    deep = folder / ("deep" * 20) / "a folder with spaces & ümlauts"
    with EmbeddedPostgres(deep) as postgres:
        assert ask(postgres.url, "SELECT 1") == 1
        socket_dir = postgres.data_dir.socket_dir
        assert not socket_dir.is_relative_to(deep)
        assert socket_dir.stat().st_mode & 0o777 == 0o700
    socket_dir.rmdir()


def test_a_bad_option_is_reported_with_the_message_of_postgresql(made: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="shared_buffers"):
        EmbeddedPostgres(made, options={"shared_buffers": "plenty"}).start()
    with EmbeddedPostgres(made) as postgres:
        assert postgres.running


def test_a_data_folder_that_cannot_be_created_is_reported_in_one_sentence(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match=r"cannot be used"):
        EmbeddedPostgres(folder / "file" / "data").start()


def test_without_packaged_binaries_the_fix_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "INSTALLATION", "no-such-installation")
    with pytest.raises(EmbeddedPostgresError, match="QUEENSPARK_DATABASE_URL"):
        EmbeddedPostgres(folder).start()
