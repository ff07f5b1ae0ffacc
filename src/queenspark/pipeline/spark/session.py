"""The Spark session, set up so that nothing has to be installed or configured first.

session = start_session(Settings.from_env())

Spark's log, and whatever Java prints, go to `spark/spark.log` in the data folder.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ...settings import Settings
from ..errors import SparkNotStarted
from .java import find_java_home
from .log4j import write_configuration
from .properties import read_properties
from .spark_home import linked_home

_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_LOOPBACK = "127.0.0.1"
_LAST_LINES = 5
_END_SECONDS = 5.0
# On a single machine Java mostly passes blobs between processes: its optimising compiler and its parallel
# collector cost more of the two or four cores than they save.
_SMALL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"

DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Other readers take Spark's own timestamp type as times without a zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark already runs a worker per core: Polars threads would only compete.
    "spark.executorEnv.POLARS_MAX_THREADS": "1",
    # If the start of Java is interrupted, it cannot report its port: its main thread fails, and the other
    # threads would live on as orphans.
    "spark.submit.callSystemExitOnMainExit": "true",
}


def start_session(
    settings: Settings, *, name: str = "queenspark", properties: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark in this process; `properties` win over the settings and the properties file.

    Raises JavaNotFound, SparkNotStarted, or SettingsError for an invalid properties file.
    """
    if SparkContext._active_spark_context is not None:
        raise SparkNotStarted("A Spark session runs in this process already: use it, or stop it first.")
    folder = settings.data_dir.absolute() / "spark"
    configuration, log_file = write_configuration(folder)
    chosen = session_properties(settings, configuration)
    chosen |= {"spark.app.name": name, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    if settings.spark_properties is not None:
        chosen |= read_properties(settings.spark_properties)
    chosen |= properties or {}
    _prepare_environment(chosen["spark.master"], folder / "home")
    with log_file.open("ab") as log:
        begin = log.tell()
        try:
            return _start(chosen, log)
        except (PySparkException, Py4JError) as error:
            raise SparkNotStarted(
                f"Spark did not start with {chosen['spark.master']}: {_last_lines(log_file, begin, error)}\n"
                f"The full log is {log_file}."
            ) from error


def end_session(spark: SparkSession) -> None:
    """Stop Spark and its Java process, even if that has already died."""
    gateway = SparkContext._gateway
    with suppress(Py4JError, OSError):
        spark.stop()
    _end_java(gateway)


def _end_java(gateway: Any) -> None:
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    # Java exits when its standard input closes; so nothing outlives this process.
    process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def session_properties(settings: Settings, log4j_configuration: Path) -> dict[str, str]:
    """The Spark properties derived from the settings."""
    java = f"-Dlog4j2.configurationFile={log4j_configuration.as_uri()}"
    temporary = tempfile.gettempdir()  # Java ignores TMPDIR
    if is_local(settings.spark_master):
        java += f" {_SMALL_JAVA} {_quoted(f'-Djava.io.tmpdir={temporary}')}"
    properties = DEFAULTS | {
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.extraJavaOptions": java,
        "spark.sql.shuffle.partitions": str(settings.spark_shuffle_partitions),
    }
    if is_local(settings.spark_master):
        properties |= {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK}
        properties["spark.local.dir"] = temporary
    return properties


def _quoted(option: str) -> str:
    """Quote an option for Spark's option list: it may contain spaces."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def is_local(master: str) -> bool:
    """Whether Spark runs within this process's machine and JVM."""
    return master == "local" or master.startswith("local[")


def _prepare_environment(master: str, home: Path) -> None:
    """Set the environment variables that Spark reads and its child processes inherit."""
    os.environ["JAVA_HOME"] = str(find_java_home())
    # Another Spark on this machine may have another version than this PySpark.
    installed = Path(pyspark.__file__).parent
    os.environ["SPARK_HOME"] = str(linked_home(home, installed) if is_local(master) else installed)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local(master):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _start(properties: Mapping[str, str], log: IO[bytes]) -> SparkSession:
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(properties.items()))
    gateway = SparkContext._gateway
    if gateway is None:
        gateway = launch_gateway(conf, popen_kwargs={"stdout": log, "stderr": log})
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except KeyboardInterrupt:
        _end_java(gateway)
        raise


def _last_lines(log_file: Path, begin: int, error: Exception) -> str:
    """The first line of the error, and Java's last output since then, without stack traces."""
    printed = log_file.read_bytes()[begin:].decode(errors="replace").splitlines()
    lines = [line for line in printed if line.strip() and not line.lstrip().startswith("at ")]
    return "\n".join([str(error).strip().partition("\n")[0], *lines[-_LAST_LINES:]])
