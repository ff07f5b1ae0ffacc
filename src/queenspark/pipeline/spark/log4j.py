"""Spark's own log: a file, to keep it off the terminal."""

from pathlib import Path

_CONFIGURATION = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {log}
appender.file.filePattern = {log}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSS}}{{UTC}}Z %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 50 MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 3
"""


def write_configuration(folder: Path) -> tuple[Path, Path]:
    """Write a Log4j configuration to a folder; return its path and that of the log file."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder.absolute() / "spark.log"
    configuration = folder.absolute() / "log4j2.properties"
    configuration.write_text(_CONFIGURATION.format(log=log))
    return configuration, log
