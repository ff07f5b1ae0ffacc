"""An embedded PostgreSQL, from the binaries of a Python package.

    with EmbeddedPostgres(Path("queenspark-data")) as postgres:
        psycopg.connect(postgres.url)

The server listens on a Unix socket in a private folder only, and is as durable as any PostgreSQL: `fsync` and
`synchronous_commit` stay on. One process at a time owns a data folder, enforced by a file lock. When an owner
was killed, its server may have survived; the next start stops it cleanly first.
"""

from queenspark.embedded.data_dir import AlreadyRunning
from queenspark.embedded.errors import EmbeddedPostgresError
from queenspark.embedded.server import EmbeddedPostgres

__all__ = ["AlreadyRunning", "EmbeddedPostgres", "EmbeddedPostgresError"]
