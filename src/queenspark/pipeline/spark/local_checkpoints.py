"""Faster checkpoints on a local file system.

Spark's default starts a `readlink` process for every file that a batch writes. The manager used here does
not; on other file systems it cannot replace files, so it is only for local ones.
"""

from typing import Any

from pyspark.sql import SparkSession

from .session import is_local

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_LOCAL = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def speed_up_local_checkpoints(spark: SparkSession, checkpoint: str) -> None:
    """Set up a session whose queries have their checkpoints in this folder, if Spark and it are local."""
    if not is_local(spark.conf.get("spark.master") or ""):
        return
    hadoop: Any = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    configuration = spark._jsc.hadoopConfiguration()
    files = hadoop.Path(checkpoint).getFileSystem(configuration)
    if files.getUri().getScheme() != "file":
        return
    spark.conf.set(_MANAGER, _LOCAL)
    # A checksum file is replaced after its file: a process killed in between would leave an unreadable
    # checkpoint.
    hadoop.FileSystem.getLocal(configuration).setWriteChecksum(False)
