-- oldest: 0002
-- Jobs: streams that compute, with rows in a queue of their own.

-- The body of a version that computes, in place of `body`. A pipeline of a version that cannot compute does not read it,
-- and takes the version for deleted.
ALTER TABLE queenspark.definitions ADD COLUMN computing jsonb;

ALTER TABLE queenspark.streams
    -- 'windows': its queue has windows, whose messages stay in the source queues; 'rows': its queue has rows of a job.
    ADD COLUMN output text NOT NULL DEFAULT 'windows' CHECK (output IN ('windows', 'rows')),
    -- Of a temporary job: it goes when nobody has asked for its rows until then.
    ADD COLUMN expires_at timestamptz;
CREATE INDEX streams_expiry ON queenspark.streams (expires_at) WHERE expires_at IS NOT NULL;

ALTER TABLE queenspark.stream_dead
    ADD COLUMN reason text,
    -- Of a dead row: the window that it was to come from.
    ADD COLUMN start_us bigint,
    ADD COLUMN end_us bigint;

-- A job that failed in a bucket: the bucket has its state as of the position, and nothing more is read for it.
CREATE TABLE queenspark.stream_failures (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    bucket integer NOT NULL,
    run text NOT NULL,
    batch bigint NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    tick bigint NOT NULL,
    error text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version, bucket)
);

-- Declarations of SQL statements: schemas over queues, and external sources and sinks.
CREATE TABLE queenspark.relations (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('schema', 'source', 'sink')),
    statement text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
