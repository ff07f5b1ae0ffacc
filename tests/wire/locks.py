"""Whether a session in the database waits for a lock that the test holds."""

import psycopg


def waiting_for_a_lock(observer: psycopg.Connection) -> bool:
    """Whether a statement is stopped by a lock; the observer's connection is in autocommit mode."""
    query = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return observer.execute(query).fetchone() is not None
