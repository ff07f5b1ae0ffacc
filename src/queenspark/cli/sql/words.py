"""The words of the dialect, as the prompt colours and completes them."""

import re

STARTS = (
    "SELECT", "CREATE STREAM", "CREATE OR REPLACE STREAM", "CREATE SOURCE", "CREATE SINK", "INSERT INTO",
    "SHOW STREAMS", "SHOW JOBS", "SHOW QUEUES", "SHOW FUNCTIONS", "SHOW SOURCES", "SHOW SINKS", "DESCRIBE",
    "DESCRIBE EXTENDED", "EXPLAIN", "DROP STREAM", "DROP SOURCE", "DROP SINK", "PAUSE JOB", "RESUME JOB",
    "RESTART JOB", "help", "exit",
)  # fmt: skip
SHOWN = ("STREAMS", "JOBS", "QUEUES", "FUNCTIONS", "SOURCES", "SINKS")
CLAUSES = (
    "FROM", "WHERE", "GROUP BY", "WINDOW", "TUMBLING(", "SLIDING(", "HOPPING(", "SESSION(",
    "HAVING", "EMIT CHANGES", "EMIT FINAL", "WITH (", "LIMIT", "AS", "AND", "OR", "NOT", "NULL", "IS NULL",
    "IS NOT NULL", "IN", "BETWEEN", "LIKE", "RLIKE", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST(",
    "TRY_CAST(", "DISTINCT", "TRUE", "FALSE", "INTERVAL", "OVER (", "ROWS WINDOW BUFFER", "PARTITION BY",
    "FILTER (", "EXPLODE(", "VALUES", "SELECT",
)  # fmt: skip
TYPES = (
    "STRING", "BIGINT", "INT", "DOUBLE", "BOOLEAN", "TIMESTAMP", "DATE", "DECIMAL(", "JSON", "FLOAT",
    "TINYINT", "SMALLINT", "ARRAY<",
)  # fmt: skip
OPTIONS = (
    "queue", "queues", "grace", "idle_timeout", "late", "keep", "max_ahead", "emit_empty", "ttl", "on_error",
    "start", "retention", "partition_by", "connector",
)  # fmt: skip

KEYWORDS = frozenset(
    word.upper()
    for phrase in (*STARTS[:-2], *SHOWN, *CLAUSES, *TYPES, "BY", "ROWS", "CASCADE", "IF EXISTS", "ESCAPE")
    for word in re.findall(r"\w+", phrase)
)

_NEED_QUOTES = KEYWORDS - {
    "BUFFER", "CHANGES", "DATE", "EXTENDED", "FILTER", "FINAL", "FUNCTIONS", "JOB", "JOBS", "JSON",
    "PARTITION", "QUEUES", "ROWS", "SESSION", "SINK", "SINKS", "SOURCE", "SOURCES", "STREAM", "STREAMS",
    "STRING", "TIMESTAMP",
}  # fmt: skip
_PLAIN = re.compile(r"[^\W\d]\w*")


def name_text(name: str) -> str:
    """A name as it is typed: with backquotes where it needs them; a dot separates its namespace."""
    return ".".join(part if _is_plain(part) else f"`{part}`" for part in name.split("."))


def _is_plain(name: str) -> bool:
    return bool(_PLAIN.fullmatch(name)) and name.upper() not in _NEED_QUOTES
