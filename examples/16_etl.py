"""ETL with an idempotent load into another database, here SQLite.

A window is redelivered when its ack is lost, and emitted with a higher revision after late messages. Its
id is always the same, so it is the key of the load: a redelivery changes nothing, a newer revision
replaces the row. Prints the table after the first load, and after everything was delivered again.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from queenspark import Queen, Window

LINES = [("10:03", "INFO"), ("10:07", "ERROR"), ("10:09", "ERROR"), ("10:14", "INFO")]

CREATE = "CREATE TABLE errors (window_id TEXT PRIMARY KEY, revision INT, start TEXT, errors INT)"
LOAD = """
    INSERT INTO errors VALUES (?, ?, ?, ?)
    ON CONFLICT (window_id) DO UPDATE SET revision = excluded.revision, errors = excluded.errors
    WHERE excluded.revision > errors.revision
"""

with Queen() as queen, TemporaryDirectory() as folder:
    warehouse = Path(folder) / "warehouse.db"
    with closing(sqlite3.connect(warehouse)) as database, database:
        database.execute(CREATE)

    def load(window: Window) -> None:
        """Transform and load one window; it is acked after the commit."""
        errors = len(window.filter(lambda line: line.data["level"] == "ERROR"))
        row = (window.id, window.revision, f"{window.start:%H:%M}", errors)
        with closing(sqlite3.connect(warehouse)) as database, database:
            database.execute(LOAD, row)

    def show() -> None:
        with closing(sqlite3.connect(warehouse)) as database:
            print(database.execute("SELECT start, errors FROM errors ORDER BY start").fetchall())

    lines = queen.queue("log-lines")
    stream = queen.stream("log-batches", "etl").sources(["log-lines"]).tumbling_time("10m")
    stream = stream.event_time("data.at").grace_period(0).idle_timeout(2)
    stream.delete()
    lines.delete()
    lines.push([{"at": f"2025-11-03T{time}Z", "level": level} for time, level in LINES])
    stream.define()

    etl = queen.consumer("log-batches", "etl")
    etl.process(load, limit=2)
    show()
    stream.seek("etl", "2025-11-03T00:00:00Z")
    etl.process(load, limit=2)
    show()
