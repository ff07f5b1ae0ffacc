-- oldest: 0002
-- transaction: none
-- Data for the dashboard: the running processes, the counts of the brokers in the last hour, and an index for the
-- windows of one key between two times.

CREATE TABLE IF NOT EXISTS queenspark.processes (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('broker', 'pipeline')),
    version text NOT NULL,
    address text,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS queenspark.samples (
    at timestamptz NOT NULL,
    broker text NOT NULL,
    pushed bigint NOT NULL,
    popped bigint NOT NULL,
    acked bigint NOT NULL,
    failed bigint NOT NULL,
    delivered bigint NOT NULL,
    sealed_total bigint NOT NULL,
    open_windows bigint NOT NULL,
    lag bigint NOT NULL,
    dead_letters bigint NOT NULL,
    safe_time_lag double precision NOT NULL,
    batch_seconds double precision NOT NULL,
    batch_rows double precision NOT NULL,
    backpressure double precision NOT NULL,
    PRIMARY KEY (at, broker)
);

DROP INDEX CONCURRENTLY IF EXISTS queenspark.messages_key_windows;

CREATE INDEX CONCURRENTLY messages_key_windows ON queenspark.messages (partition_id, window_end)
    WHERE window_end IS NOT NULL;
