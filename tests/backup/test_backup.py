"""After a restore, groups, streams and jobs continue; nothing in the backup is lost or duplicated."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.backup.cluster import Cluster
from tests.backup.scene import Scene, running
from tests.postgres_servers import DEBIAN_15
from tests.system.load import wait_until

pytestmark = [pytest.mark.long, pytest.mark.crash, pytest.mark.timeout(1200)]


@pytest.fixture(params=["postgres_18", "postgres_15"])
def programs(request: pytest.FixtureRequest) -> Path | None:
    """The `bin` folder of a PostgreSQL version."""
    if request.param == "postgres_18":
        return None
    if not (DEBIAN_15 / "pg_basebackup").exists():
        pytest.skip("Debian's PostgreSQL 15 is not installed")
    return DEBIAN_15


@pytest.fixture
def primary(programs: Path | None) -> Iterator[Cluster]:
    """The server to back up, with WAL archiving."""
    with Cluster(programs) as cluster:
        cluster.make()
        cluster.user.own_directory(cluster.folder / "archive")
        archive = f"cp %p {cluster.folder}/archive/%f"
        cluster.start({"archive_mode": "on", "archive_command": archive, "fsync": "off"})
        yield cluster


def execute(cluster: Cluster, statement: str) -> None:
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute(statement.encode())


@contextmanager
def restored(programs: Path | None) -> Iterator[Cluster]:
    with Cluster(programs) as cluster:
        yield cluster


def test_a_dump_is_restored_and_goes_on(primary: Cluster, programs: Path | None, tmp_path: Path) -> None:
    """The dump is taken while everything is running, and does not include the checkpoint."""
    dump = str(primary.folder / "queenspark.dump")
    with running(primary.url, tmp_path / "before", tmp_path / "checkpoint") as system:
        scene = Scene(system)
        scene.push(system, 30)
        scene.take(system, 10)
        scene.take_windows(system)
        primary.run(
            "pg_dump", "--format=custom", "--schema=queenspark", f"--file={dump}", f"--dbname={primary.url}"
        )
        system.api.push("q", {"n": 1000}, partition="k0")
        after = scene.take(system, 5)
    with restored(programs) as cluster:
        cluster.make()
        # The new server has had few transactions: its transaction ids restart below those in the log.
        cluster.start({"fsync": "off"})
        cluster.run("pg_restore", f"--dbname={cluster.url}", dump)
        with running(cluster.url, tmp_path / "after", tmp_path / "new checkpoint") as system:
            system.pipeline.wait_until_leading()
            scene.push(system, 12)
            wanted = [n for n in scene.pushed if n not in scene.taken or n in after]
            assert sorted(scene.take(system, len(wanted))) == sorted(wanted)
            assert system.api.empty("q", consumerGroup="g")
            found = scene.take_windows(system)
            assert found, "windows of the messages pushed after the restore"
            assert len(scene.windows) == len(set(scene.windows)), "no window was redelivered"
            scene.check(system)


def test_a_base_backup_is_recovered_to_a_point_in_time(
    primary: Cluster, programs: Path | None, tmp_path: Path
) -> None:
    """Pushes and acks after the recovery point are lost; the acked messages are redelivered."""
    with (
        running(primary.url, tmp_path / "before", tmp_path / "checkpoint") as system,
        restored(programs) as cluster,
    ):
        scene = Scene(system)
        scene.push(system, 15)
        scene.take_windows(system)
        cluster.copy(primary, "--wal-method=none")
        scene.push(system, 15)
        scene.take(system, 10)
        windows = scene.take_windows(system)
        execute(primary, "SELECT pg_create_restore_point('here')")
        system.api.push("q", {"n": 1000}, partition="k0")
        after = scene.take(system, 5)
        last_window = system.wait_for(scene.stream, len(scene.windows) + 1)
        assert len(last_window) == len(scene.windows) + 1
        execute(primary, "SELECT pg_switch_wal()")
        primary.stop()
        (cluster.data / "recovery.signal").touch()
        cluster.start(
            {
                "restore_command": f"cp {primary.folder}/archive/%f %p", "recovery_target_name": "here",
                "recovery_target_action": "promote", "archive_mode": "off", "fsync": "off",
            }
        )  # fmt: skip
        assert wait_until(lambda: not is_recovering(cluster), within=60)
        with running(cluster.url, tmp_path / "after", tmp_path / "new checkpoint") as recovered:
            recovered.pipeline.wait_until_leading()
            scene.push(recovered, 12)
            wanted = [n for n in scene.pushed if n not in scene.taken or n in after]
            assert sorted(scene.take(recovered, len(wanted))) == sorted(wanted)
            assert recovered.api.empty("q", consumerGroup="g")
            assert windows
            scene.take_windows(recovered)
            assert len(scene.windows) == len(set(scene.windows)), "no window was redelivered"
            scene.check(recovered)


def is_recovering(cluster: Cluster) -> bool:
    with psycopg.connect(cluster.url) as connection:
        row = connection.execute("SELECT pg_is_in_recovery()").fetchone()
    return bool(row and row[0])


@contextmanager
def replica_of(primary: Cluster) -> Iterator[Cluster]:
    with Cluster(primary.programs) as cluster:
        cluster.copy(primary, "--wal-method=stream", "--write-recovery-conf")
        cluster.start({"archive_mode": "off", "fsync": "off"})
        yield cluster


def received(primary: Cluster, replica: Cluster) -> bool:
    """Return whether the replica has replayed everything."""
    with psycopg.connect(primary.url) as there, psycopg.connect(replica.url) as here:
        sent = there.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        assert sent is not None
        row = here.execute("SELECT pg_last_wal_replay_lsn() >= %s", sent).fetchone()
    return bool(row and row[0])


def test_a_promoted_replica_goes_on_with_the_checkpoint(primary: Cluster, tmp_path: Path) -> None:
    """The replica has everything, like a synchronous one: nothing is lost or redelivered."""
    with replica_of(primary) as replica:
        with running(primary.url, tmp_path / "before", tmp_path / "checkpoint") as system:
            scene = Scene(system)
            scene.push(system, 30)
            scene.take(system, 10)
            scene.take_windows(system)
            scene.push(system, 3)
        assert wait_until(lambda: received(primary, replica), within=30)
        primary.stop("immediate")
        replica.promote()
        with running(replica.url, tmp_path / "after", tmp_path / "checkpoint") as system:
            system.pipeline.wait_until_leading()
            scene.push(system, 9)
            wanted = [n for n in scene.pushed if n not in scene.taken]
            assert sorted(scene.take(system, len(wanted))) == wanted
            assert system.api.empty("q", consumerGroup="g")
            scene.take_windows(system)
            assert len(scene.windows) == len(set(scene.windows))
            scene.check(system)


def test_a_replica_that_lacks_the_end_refuses_the_checkpoint(primary: Cluster, tmp_path: Path) -> None:
    """The checkpoint is ahead of the replica. After deleting it, each window of the log is pushed once."""
    checkpoint = tmp_path / "checkpoint"
    with replica_of(primary) as replica:
        with running(primary.url, tmp_path / "before", checkpoint) as system:
            scene = Scene(system)
            scene.push(system, 15)
            scene.take_windows(system)
            assert wait_until(lambda: received(primary, replica), within=30)
            execute(replica, "ALTER SYSTEM SET primary_conninfo = ''")
            execute(replica, "SELECT pg_reload_conf()")
            assert wait_until(lambda: not is_streaming(primary), within=30)
            for number in range(1, 4):  # batches that the replica does not receive
                system.api.push("q", {"n": 1000 + number}, partition="k0")
                assert len(system.wait_for(scene.stream, len(scene.windows) + number, within=300)) >= number
        primary.stop("immediate")
        replica.promote()
        with running(replica.url, tmp_path / "after", checkpoint) as system:
            scene.push(system, 9)
            assert wait_until(lambda: "delete their checkpoint" in system.pipeline.log(), within=300)
            assert len(system.sealed(scene.stream)) == len(scene.windows), "nothing is pushed until then"
            system.pipeline.kill()
            shutil.rmtree(checkpoint)
            system.pipeline.start()
            scene.take_windows(system)
            assert len(scene.windows) == len(set(scene.windows))
            scene.check(system)


def is_streaming(primary: Cluster) -> bool:
    with psycopg.connect(primary.url) as connection:
        return connection.execute("SELECT 1 FROM pg_stat_replication").fetchone() is not None
