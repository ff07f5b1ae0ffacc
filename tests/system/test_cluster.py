"""The pipeline on a real cluster: a master and workers, each a process of its own."""

import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from queenspark.pipeline.spark.java import find_java_home
from tests.broker_process import Broker, free_port
from tests.postgres_servers import PostgresServer
from tests.system.load import wait_until
from tests.system.pipeline_process import PipelineProcess
from tests.system.system import System, as_rows, oracle_rows
from tests.system.test_windows import SHAPES
from tests.wire.api import Api

pytestmark = [pytest.mark.long, pytest.mark.timeout(480)]

FAR_AWAY = 4 * 10**15  # microseconds: no window is open then
SPARK = Path(pyspark.__file__).parent
SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # starts sooner
PROPERTIES = f"""\
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.executor.memory 512m
spark.executor.extraJavaOptions {SMALL_JAVA}
"""


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """The URL of a standalone cluster with workers of one core each."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "JAVA_HOME": str(find_java_home()), "SPARK_HOME": str(SPARK), "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": SMALL_JAVA,
    }  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *command: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as file:
            full = [str(SPARK / "bin" / "spark-class"), *command, "--webui-port", "0"]
            processes.append(subprocess.Popen(full, env=environment, stdout=file, stderr=file))
        return log

    deploy = "org.apache.spark.deploy"
    try:
        master = start("master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port))
        assert wait_until(lambda: "New state: ALIVE" in master.read_text(), within=60), master.read_text()
        logs = [
            start(
                name, f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "600m",
                "--work-dir", str(folder / name), url,
            )
            for name in (f"worker-{number}" for number in range(workers))
        ]  # fmt: skip

        def all_registered() -> bool:
            return all("Successfully registered with master" in log.read_text() for log in logs)

        assert wait_until(all_registered, within=60), logs[0].read_text()
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(30)


def test_a_cluster_gives_the_same_windows(
    system_postgres: PostgresServer, tmp_path: Path, full_size: bool
) -> None:
    """Master, driver and two executors, or one at the small size, on loopback."""
    workers = 2 if full_size else 1
    properties = tmp_path / "spark.properties"
    properties.write_text(PROPERTIES)
    with system_postgres.database() as url, cluster(tmp_path, workers) as master:
        broker = Broker(url, tmp_path / "broker.log")
        pipeline = PipelineProcess(
            url, tmp_path / "pipeline", spark_master=master, spark_properties=properties
        )
        pipeline.start()
        try:
            with Api(broker.url) as api:
                pipeline.wait_until_leading()
                compare_all_kinds(System(api, url, pipeline), messages=300 if full_size else 100)
            pipeline.stop()
        finally:
            pipeline.kill()
            broker.stop()
    started = [
        line for line in (tmp_path / "master.log").read_text().splitlines() if "Launching executor" in line
    ]
    assert len(started) >= workers


def compare_all_kinds(system: System, messages: int) -> None:
    """Streams of all kinds over two queues."""
    chance = random.Random(1)
    streams = [
        system.define(kind, sources=["left", "right"], grace_ms=100, **shape)
        for kind, shape in SHAPES.items()
    ]
    for number in range(messages):
        system.api.push(chance.choice(("left", "right")), number, partition=f"k{chance.randrange(5)}")
        time.sleep(0.01)
    for stream in streams:
        expected = system.expected(stream, system.records(stream), FAR_AWAY)
        found = system.wait_for(stream, len(expected), within=240)
        assert as_rows(found) == oracle_rows(expected), system.pipeline.log()
