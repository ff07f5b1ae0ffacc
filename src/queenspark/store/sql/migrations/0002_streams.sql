-- Streams: definitions, the pipeline's own rows, and the columns of the log that windows need.

-- The end of a window, on messages of window queues only; seek goes by it.
ALTER TABLE queenspark.messages ADD COLUMN window_end timestamptz;
CREATE INDEX messages_window_end ON queenspark.messages (queue_id, window_end) INCLUDE (partition_id, txid, id)
    WHERE window_end IS NOT NULL;

-- A stream: a queue of windows. Its windows are described by its definitions.
CREATE TABLE queenspark.streams (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    namespace text NOT NULL,
    name text NOT NULL,
    queue_id integer NOT NULL UNIQUE REFERENCES queenspark.queues ON DELETE CASCADE,
    partitioned boolean NOT NULL,
    lease_timeout_ms bigint NOT NULL,
    version integer NOT NULL,                           -- the newest
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (namespace, name)
);
CREATE INDEX streams_name ON queenspark.streams (name);

-- Every change of every stream, append-only; seq order is commit order. The definitions as of a seq are the rows
-- with the largest seq up to it of each stream and version; a body of NULL: deleted.
CREATE TABLE queenspark.definitions (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id integer NOT NULL,
    version integer NOT NULL,
    body jsonb,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX definitions_version ON queenspark.definitions (stream_id, version, seq);

-- One row: which pipeline process leads. Every transaction of the window sink names its epoch.
CREATE TABLE queenspark.pipeline (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint NOT NULL DEFAULT 0,
    holder text,
    expires_at timestamptz
);
INSERT INTO queenspark.pipeline DEFAULT VALUES;

-- The progress of each bucket, committed together with its windows. The state is the end of its last batch: run and
-- n (the batch's number in it), txid and id (the position that was read to), tick (safe time there), seq (definitions
-- known then), behind: {"stream:version": [txid, id, tick]} (the same for streams that are still catching up), and
-- next_close, when its next window wants to be sealed.
CREATE TABLE queenspark.progress (
    bucket integer PRIMARY KEY,
    buckets integer NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

CREATE TABLE queenspark.stream_stats (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    bucket integer NOT NULL,
    -- As they are now.
    watermark_us bigint,
    open_windows bigint NOT NULL DEFAULT 0,
    open_txid bigint,                                   -- the earliest record of an open window
    open_id bigint,
    -- Since the beginning.
    records bigint NOT NULL DEFAULT 0,
    windows bigint NOT NULL DEFAULT 0,
    late bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version, bucket)
) WITH (fillfactor = 50);

-- Reports of the pipeline: throughput, latency, backpressure.
CREATE TABLE queenspark.pipeline_stats (
    key text PRIMARY KEY,
    value jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- Records that arrived after their window was sealed. The newest of each stream are kept.
CREATE TABLE queenspark.stream_late (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    key text NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    time_us bigint NOT NULL,
    closed_us bigint NOT NULL,
    dropped boolean NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX stream_late_at ON queenspark.stream_late (stream_id, at);
CREATE INDEX stream_late_dropped ON queenspark.stream_late (stream_id, version, key, txid, id) WHERE dropped;

-- Records without a usable event time. The newest of each stream are kept.
CREATE TABLE queenspark.stream_dead (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    key text NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX stream_dead_at ON queenspark.stream_dead (stream_id, at);

-- Notes for retention: a window that was not yet pushed at the frontier `frontier` has no record before the
-- position (txid, id).
CREATE TABLE queenspark.stream_floors (
    stream_id integer NOT NULL,
    frontier bigint NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, frontier)
);
