-- The log and all tables that refer to it, in the schema `queenspark`.

CREATE SCHEMA IF NOT EXISTS queenspark;

-- One row: facts about the log as a whole.
CREATE TABLE queenspark.system (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- High bits of every position. Incremented when a restored database reuses transaction ids.
    generation integer NOT NULL DEFAULT 0,
    push_maintenance boolean NOT NULL DEFAULT false,
    pop_maintenance boolean NOT NULL DEFAULT false,
    -- The newest migration that a version must know to be allowed to run.
    oldest integer NOT NULL DEFAULT 0
);
INSERT INTO queenspark.system DEFAULT VALUES;

-- The function sets of all versions that have run here: a database schema each. A set's level is the newest migration
-- known to its version; sets below `system.oldest` are dropped.
CREATE TABLE queenspark.function_sets (
    name text PRIMARY KEY,
    level integer NOT NULL,
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE queenspark.queues (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    namespace text NOT NULL DEFAULT '',
    task text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Incremented with every change of the options; a push that relied on an older revision is rejected and retried.
    revision integer NOT NULL DEFAULT 1,
    lease_seconds integer NOT NULL DEFAULT 300,
    retry_limit integer NOT NULL DEFAULT 3,
    retry_delay_ms integer NOT NULL DEFAULT 1000,
    ttl_seconds integer,                                -- NULL: no expiry
    max_size bigint NOT NULL DEFAULT 0,                 -- 0: no limit
    priority integer NOT NULL DEFAULT 0,
    delayed_seconds integer NOT NULL DEFAULT 0,
    window_buffer_seconds integer NOT NULL DEFAULT 0,
    retention_enabled boolean NOT NULL DEFAULT false,
    retention_seconds integer NOT NULL DEFAULT 0,       -- 0: keep
    completed_retention_seconds integer NOT NULL DEFAULT 0,
    encryption_enabled boolean NOT NULL DEFAULT false,
    dead_letters_enabled boolean NOT NULL DEFAULT true, -- false: unlimited retries
    dead_letter_queue text,                             -- dead letters are also pushed here
    max_wait_seconds integer NOT NULL DEFAULT 0         -- 0: no limit
);
CREATE INDEX queues_namespace ON queenspark.queues (namespace);
CREATE INDEX queues_task ON queenspark.queues (task);

CREATE TABLE queenspark.partitions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id integer NOT NULL REFERENCES queenspark.queues ON DELETE CASCADE,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (queue_id, name)
);

-- The log. Append-only; a message's position is (txid, id). No foreign keys: a push takes no lock that another push
-- needs.
CREATE TABLE queenspark.messages (
    txid bigint NOT NULL,
    id bigint NOT NULL,
    partition_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    queue_id integer NOT NULL,
    encrypted boolean NOT NULL DEFAULT false,
    transaction_id text COLLATE "C" NOT NULL,
    trace_id text,
    payload text NOT NULL,
    window_end timestamptz,                             -- windows only; used by seek
    headers text                                        -- a JSON object of strings; NULL: none
) WITH (autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1);
CREATE UNIQUE INDEX messages_partition ON queenspark.messages (partition_id, txid, id);
CREATE UNIQUE INDEX messages_transaction ON queenspark.messages (partition_id, transaction_id);
CREATE INDEX messages_log ON queenspark.messages (queue_id, txid, id) INCLUDE (partition_id);
CREATE INDEX messages_window_end ON queenspark.messages (queue_id, window_end) INCLUDE (partition_id, txid, id)
    WHERE window_end IS NOT NULL;
CREATE INDEX messages_key_windows ON queenspark.messages (partition_id, window_end) WHERE window_end IS NOT NULL;

-- Message ids are allocated to brokers in blocks of 1,000, so that a push knows its ids before it inserts.
CREATE SEQUENCE queenspark.message_blocks;

-- Deleted queues whose messages the sweeper still has to remove.
CREATE TABLE queenspark.deleted_queues (
    queue_id integer PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A consumer group of one queue.
CREATE TABLE queenspark.groups (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue_id integer NOT NULL REFERENCES queenspark.queues ON DELETE CASCADE,
    name text NOT NULL,
    mode text NOT NULL DEFAULT 'all',
    -- The start position in partitions without a place.
    start_txid bigint NOT NULL,
    start_id bigint NOT NULL,
    -- Discovery: every message up to here is reflected in the group's places.
    seen_txid bigint NOT NULL,
    seen_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Window queues only: the time of the last seek, if no other kind of seek followed. Windows that end at or before it
    -- are skipped.
    skip_until timestamptz,
    UNIQUE (queue_id, name)
);
CREATE INDEX groups_name ON queenspark.groups (name);

-- A seek by a version that does not know `skip_until` ends it, too. Only discovery moves the seen position otherwise:
-- forward and to a message, whose id is not 0.
CREATE FUNCTION queenspark.forget_skip() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    NEW.skip_until := NULL;
    RETURN NEW;
END
$$;

CREATE TRIGGER groups_sought BEFORE UPDATE OF start_txid, seen_txid ON queenspark.groups FOR EACH ROW
WHEN (OLD.skip_until = NEW.skip_until AND (
    NEW.seen_id = 0 OR (NEW.seen_txid, NEW.seen_id) < (OLD.seen_txid, OLD.seen_id)
    OR (NEW.start_txid, NEW.start_id) <> (OLD.start_txid, OLD.start_id)))
EXECUTE FUNCTION queenspark.forget_skip();

-- A place: a group's cursor in one partition, with its lease.
--
--   idle     available_at is NULL: nothing to do as far as discovery has seen
--   ready    available_at has passed: the next pop takes it
--   waiting  available_at lies ahead: a retry, a delay, or a lease that will expire
CREATE TABLE queenspark.places (
    group_id integer NOT NULL REFERENCES queenspark.groups ON DELETE CASCADE,
    partition_id bigint NOT NULL REFERENCES queenspark.partitions ON DELETE CASCADE,
    available_at timestamptz,
    -- Everything up to the cursor is acked.
    cursor_txid bigint NOT NULL,
    cursor_id bigint NOT NULL,
    -- Delivered messages beyond the cursor: up to the end, those in `pending` are not acked yet.
    end_txid bigint NOT NULL,
    end_id bigint NOT NULL,
    pending bigint[] NOT NULL DEFAULT '{}',
    -- The lease: its fencing token, its expiry, and the pending messages that it still covers.
    lease_id uuid,
    lease_expires_at timestamptz,
    leased bigint[] NOT NULL DEFAULT '{}',
    retry_at timestamptz,
    -- Dead letters that were returned and await delivery.
    returned integer NOT NULL DEFAULT 0,
    acked_at timestamptz,
    -- The holder and start of the lease `held_lease_id`. A version without these columns leaves those of an earlier
    -- lease.
    lease_holder text,
    leased_at timestamptz,
    held_lease_id uuid,
    -- Whether a seek in this partition followed the group's: its skip_until no longer holds here.
    sought boolean NOT NULL DEFAULT false,
    -- The cursor is not beyond the end, and equals it when nothing is pending.
    CONSTRAINT places_cursor CHECK (
        (cursor_txid, cursor_id) <= (end_txid, end_id)
        AND (cardinality(pending) > 0 OR (cursor_txid, cursor_id) = (end_txid, end_id))),
    CONSTRAINT places_lease_whole CHECK (
        (lease_id IS NULL) = (lease_expires_at IS NULL) AND (lease_id IS NOT NULL OR cardinality(leased) = 0)),
    -- An idle place has nothing to deliver.
    CONSTRAINT places_idle CHECK (
        available_at IS NOT NULL OR (cardinality(pending) = 0 AND cardinality(leased) = 0 AND returned = 0)),
    CONSTRAINT places_returned CHECK (returned >= 0),
    PRIMARY KEY (group_id, partition_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
CREATE INDEX places_available ON queenspark.places (group_id, available_at) WHERE available_at IS NOT NULL;
CREATE INDEX places_lease ON queenspark.places (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX places_partition ON queenspark.places (partition_id);

-- Failed attempts of messages awaiting redelivery.
CREATE TABLE queenspark.attempts (
    group_id integer NOT NULL,
    partition_id bigint NOT NULL,
    id bigint NOT NULL,
    count integer NOT NULL,
    error text,
    PRIMARY KEY (group_id, partition_id, id),
    FOREIGN KEY (group_id, partition_id) REFERENCES queenspark.places ON DELETE CASCADE
);

-- Dead letters keep a copy: retention of the log does not affect them.
CREATE TABLE queenspark.dead_letters (
    id bigint NOT NULL,                                  -- the message's id
    group_id integer NOT NULL REFERENCES queenspark.groups ON DELETE CASCADE,
    partition_id bigint NOT NULL REFERENCES queenspark.partitions ON DELETE CASCADE,
    txid bigint NOT NULL,
    created_at timestamptz NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts integer NOT NULL,
    returned boolean NOT NULL DEFAULT false,             -- put back: dead -> returned -> acked, or dead again
    encrypted boolean NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    trace_id text,
    error text NOT NULL,
    payload text NOT NULL,
    headers text,
    PRIMARY KEY (group_id, id)
);
CREATE INDEX dead_letters_failed ON queenspark.dead_letters (failed_at);
CREATE INDEX dead_letters_message ON queenspark.dead_letters (partition_id, transaction_id);
CREATE INDEX dead_letters_returned ON queenspark.dead_letters (group_id, partition_id, txid, id) WHERE returned;

CREATE TABLE queenspark.traces (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition_id bigint NOT NULL REFERENCES queenspark.partitions ON DELETE CASCADE,
    transaction_id text COLLATE "C" NOT NULL,
    group_name text,
    event_type text NOT NULL,
    names text[] NOT NULL,
    data jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX traces_message ON queenspark.traces (partition_id, transaction_id);
CREATE INDEX traces_names ON queenspark.traces USING gin (names);

-- Clock samples: every message created before `at` has a transaction id below `txid`, and every transaction below
-- `horizon` was finished at `horizon_at`.
CREATE TABLE queenspark.looks (
    at timestamptz PRIMARY KEY,
    txid bigint NOT NULL,
    horizon bigint NOT NULL,
    horizon_at timestamptz NOT NULL
);
CREATE INDEX looks_txid ON queenspark.looks (txid);

-- Pushes accepted while push maintenance is on, in the order of their later append.
CREATE TABLE queenspark.staged (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bigint NOT NULL,
    queue text NOT NULL,
    partition text NOT NULL,
    encrypted boolean NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    trace_id text,
    payload text NOT NULL,
    headers text
);

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
    window_retention_ms bigint,                         -- of its window queue; NULL: no limit
    -- 'windows': its queue has windows, whose messages stay in the source queues; 'rows': its queue has rows of a
    -- job.
    output text NOT NULL DEFAULT 'windows' CHECK (output IN ('windows', 'rows')),
    -- Temporary jobs only: expiry unless its rows are requested.
    expires_at timestamptz,
    UNIQUE (namespace, name)
);
CREATE INDEX streams_name ON queenspark.streams (name);
CREATE INDEX streams_expiry ON queenspark.streams (expires_at) WHERE expires_at IS NOT NULL;

-- Every change of every stream, append-only; seq order is commit order. The definitions as of a seq are, for each
-- stream and version, the rows with the largest seq up to it; without `body` and `computing`: deleted.
CREATE TABLE queenspark.definitions (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    stream_id integer NOT NULL,
    version integer NOT NULL,
    body jsonb,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The body of a version that computes, instead of `body`. Pipelines of versions that cannot compute ignore it,
    -- and take the version for deleted.
    computing jsonb
);
CREATE INDEX definitions_version ON queenspark.definitions (stream_id, version, seq);

-- One row: the leading pipeline process. Every transaction of the window sink names its epoch.
CREATE TABLE queenspark.pipeline (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch bigint NOT NULL DEFAULT 0,
    holder text,
    expires_at timestamptz
);
INSERT INTO queenspark.pipeline DEFAULT VALUES;

-- The progress of each bucket, committed together with its windows. The state is the end of its last batch, as
-- defined in progress.py, and so are the columns that SQL reads: generated, so that rows of every version have them.
CREATE TABLE queenspark.progress (
    bucket integer PRIMARY KEY,
    buckets integer NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run text GENERATED ALWAYS AS (state ->> 'run') STORED,
    txid bigint GENERATED ALWAYS AS ((state ->> 'txid')::bigint) STORED,
    id bigint GENERATED ALWAYS AS ((state ->> 'id')::bigint) STORED,
    tick bigint GENERATED ALWAYS AS ((state ->> 'tick')::bigint) STORED,
    seq bigint GENERATED ALWAYS AS ((state ->> 'seq')::bigint) STORED,   -- definitions known then
    behind jsonb GENERATED ALWAYS AS (state -> 'behind') STORED,              -- {"stream:version": [txid, id, tick]}
    next_close bigint GENERATED ALWAYS AS ((state ->> 'next_close')::bigint) STORED,
    records bigint GENERATED ALWAYS AS ((state ->> 'records')::bigint) STORED,
    seconds float8 GENERATED ALWAYS AS ((state ->> 'seconds')::float8) STORED
) WITH (fillfactor = 50);

CREATE TABLE queenspark.stream_stats (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    bucket integer NOT NULL,
    -- Current values.
    watermark_us bigint,
    open_windows bigint NOT NULL DEFAULT 0,
    open_txid bigint,                                   -- the earliest record of an open window
    open_id bigint,
    -- Totals.
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

-- Rates of each stream over the last minute, per second. Rows are written only when a rate changes.
CREATE TABLE queenspark.stream_rates (
    stream_id integer PRIMARY KEY,
    arriving double precision NOT NULL,                 -- messages in its source queues
    processed double precision NOT NULL,                -- records
    sealed double precision NOT NULL,                   -- windows
    late double precision NOT NULL,                     -- records after their window was sealed
    backpressure double precision NOT NULL,             -- arrived over processed; above 1 it falls behind
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
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

-- Dropped late records between the first and the last record of a session. They are kept as long as the records
-- themselves: readers of the session's records skip these.
CREATE TABLE queenspark.stream_dropped (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    key text NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (stream_id, version, key, txid, id)
);
CREATE INDEX stream_dropped_position ON queenspark.stream_dropped (stream_id, txid, id);

-- Records and windows that could not be read or computed. The newest of each stream are kept.
CREATE TABLE queenspark.stream_dead (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    key text NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason text,
    -- Dead rows only: their window.
    start_us bigint,
    end_us bigint
);
CREATE INDEX stream_dead_at ON queenspark.stream_dead (stream_id, at);

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

-- The job being computed by a worker of the pipeline, while the pipeline searches for one that kills its workers.
CREATE TABLE queenspark.steps (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
);

-- Declarations of SQL statements: schemas over queues, and external sources and sinks.
CREATE TABLE queenspark.relations (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('schema', 'source', 'sink')),
    statement text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The progress of each bucket of a job with its own query, committed together with its rows; like `progress`.
CREATE TABLE queenspark.job_progress (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    bucket integer NOT NULL,
    buckets integer NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    state jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    run text GENERATED ALWAYS AS (state ->> 'run') STORED,
    txid bigint GENERATED ALWAYS AS ((state ->> 'txid')::bigint) STORED,
    id bigint GENERATED ALWAYS AS ((state ->> 'id')::bigint) STORED,
    next_close bigint GENERATED ALWAYS AS ((state ->> 'next_close')::bigint) STORED,
    PRIMARY KEY (stream_id, version, bucket)
) WITH (fillfactor = 50);

-- The pipeline's report on a version of such a job: its read progress, when it finished a finite source, and the position
-- at which it first started, unless `start` is `earliest`.
CREATE TABLE queenspark.job_runs (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    report jsonb NOT NULL DEFAULT '{}',
    finished_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    start json,
    PRIMARY KEY (stream_id, version)
) WITH (fillfactor = 50);

-- The input files of a job version, in order; append-only, because positions are file numbers.
CREATE TABLE queenspark.job_files (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    number bigint NOT NULL,
    path text NOT NULL,
    bytes bigint NOT NULL,
    modified_us bigint NOT NULL,
    PRIMARY KEY (stream_id, version, number),
    UNIQUE (stream_id, version, path)
);

-- Notes for retention: a window not yet pushed at the frontier `frontier` has no record before the position (txid,
-- id).
CREATE TABLE queenspark.stream_floors (
    stream_id integer NOT NULL,
    frontier bigint NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, frontier)
);

-- The last removed position of each queue, and when: its history up to there is incomplete.
CREATE TABLE queenspark.removals (
    queue_id integer PRIMARY KEY,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Number of records removed by retention before a job read them.
CREATE TABLE queenspark.stream_removed (
    stream_id integer PRIMARY KEY,
    records bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Running brokers and pipelines, leading or standby. Each renews its row every few seconds.
CREATE TABLE queenspark.processes (
    name text PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('broker', 'pipeline')),
    version text NOT NULL,
    address text,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- The last hour in steps of five seconds, one row per broker.
CREATE TABLE queenspark.samples (
    at timestamptz NOT NULL,
    broker text NOT NULL,
    -- The activity of this broker in the step.
    pushed bigint NOT NULL,
    popped bigint NOT NULL,
    acked bigint NOT NULL,
    failed bigint NOT NULL,
    delivered bigint NOT NULL,                          -- windows
    -- The state of the whole system, the same for every broker.
    sealed_total bigint NOT NULL,                       -- windows of all streams since their definition
    open_windows bigint NOT NULL,
    lag bigint NOT NULL,
    dead_letters bigint NOT NULL,
    safe_time_lag double precision NOT NULL,
    batch_seconds double precision NOT NULL,            -- the last batch of the streams query
    batch_rows double precision NOT NULL,               -- its input rows per second
    backpressure double precision NOT NULL,
    state_bytes bigint NOT NULL DEFAULT 0,              -- of the streams query
    PRIMARY KEY (at, broker)
);

-- Messages per second over the last minute, one row per broker. Each broker rewrites the rows of its active queues and
-- groups every few seconds; rows older than a minute no longer count. No foreign keys, as for the counts below.
CREATE TABLE queenspark.queue_rates (
    queue_id integer NOT NULL,
    group_id integer NOT NULL,                          -- 0: pushes to the queue
    broker text NOT NULL,
    pushed double precision NOT NULL,
    popped double precision NOT NULL,
    acked double precision NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (queue_id, group_id, broker)
) WITH (fillfactor = 50);

-- One row: the state of the counts of the log, which are maintained in the background (see count_log in
-- functions.sql).
CREATE TABLE queenspark.counting (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    counted_at timestamptz NOT NULL DEFAULT '-infinity',
    seconds double precision NOT NULL DEFAULT 0,        -- duration of the last round
    complete boolean NOT NULL DEFAULT false             -- everything below the horizon is counted
) WITH (fillfactor = 50);
INSERT INTO queenspark.counting DEFAULT VALUES;

-- Messages of each queue up to a position. No foreign keys: counting takes no lock that others need.
CREATE TABLE queenspark.queue_counts (
    queue_id integer PRIMARY KEY,
    upto_txid bigint NOT NULL DEFAULT 0,
    upto_id bigint NOT NULL DEFAULT 0,
    messages bigint NOT NULL DEFAULT 0,
    partitions bigint NOT NULL DEFAULT 0,
    -- Of the slowest group, and of all groups.
    pending bigint NOT NULL DEFAULT 0,
    processing bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Unacked messages of each group: lag = unseen + pending messages of its places + messages ahead of its places.
CREATE TABLE queenspark.group_counts (
    group_id integer PRIMARY KEY,
    queue_id integer NOT NULL,
    -- `unseen` counts the queue's messages after the group's discovery position and up to here.
    seen_txid bigint NOT NULL,
    seen_id bigint NOT NULL,
    upto_txid bigint NOT NULL,
    upto_id bigint NOT NULL,
    unseen bigint NOT NULL DEFAULT 0,
    lag bigint NOT NULL DEFAULT 0,
    processing bigint NOT NULL DEFAULT 0,
    leases bigint NOT NULL DEFAULT 0,
    places bigint NOT NULL DEFAULT 0,
    dead_letters bigint NOT NULL DEFAULT 0,
    oldest timestamptz,
    acked_at timestamptz
) WITH (fillfactor = 50);
CREATE INDEX group_counts_queue ON queenspark.group_counts (queue_id);

-- Messages of a partition between the end of a place and its group's discovery position; negative if the place is
-- further ahead. Only large numbers are stored: small ones are counted each time.
CREATE TABLE queenspark.place_counts (
    group_id integer NOT NULL,
    partition_id bigint NOT NULL,
    seen_txid bigint NOT NULL,
    seen_id bigint NOT NULL,
    end_txid bigint NOT NULL,
    end_id bigint NOT NULL,
    ahead bigint NOT NULL,
    PRIMARY KEY (group_id, partition_id)
) WITH (fillfactor = 50);
CREATE INDEX place_counts_partition ON queenspark.place_counts (partition_id);

-- Messages deleted since the counts were last updated. Written by a trigger, so that deletions by any version are
-- recorded; and only while counting is active, so that it cannot grow forever.
CREATE TABLE queenspark.deleted_messages (
    queue_id integer NOT NULL,
    partition_id bigint NOT NULL,
    txids bigint[] NOT NULL,
    ids bigint[] NOT NULL
);
CREATE INDEX deleted_messages_queue ON queenspark.deleted_messages (queue_id);

CREATE FUNCTION queenspark.note_deleted() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    IF (SELECT c.counted_at > clock_timestamp() - interval '1 hour' FROM queenspark.counting c) THEN
        INSERT INTO queenspark.deleted_messages (queue_id, partition_id, txids, ids)
        SELECT g.queue_id, g.partition_id, array_agg(g.txid), array_agg(g.id) FROM gone g
        WHERE EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = g.queue_id)
        GROUP BY g.queue_id, g.partition_id;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER messages_deleted AFTER DELETE ON queenspark.messages
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION queenspark.note_deleted();

CREATE FUNCTION queenspark.note_removed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    INSERT INTO queenspark.removals AS r (queue_id, txid, id)
    SELECT DISTINCT ON (g.queue_id) g.queue_id, g.txid, g.id FROM gone g
    WHERE EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = g.queue_id)
    ORDER BY g.queue_id, g.txid DESC, g.id DESC
    ON CONFLICT (queue_id) DO UPDATE SET at = clock_timestamp(),
        txid = (greatest(ARRAY[r.txid, r.id], ARRAY[excluded.txid, excluded.id]))[1],
        id = (greatest(ARRAY[r.txid, r.id], ARRAY[excluded.txid, excluded.id]))[2];
    RETURN NULL;
END
$$;

CREATE TRIGGER messages_removed AFTER DELETE ON queenspark.messages
REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION queenspark.note_removed();

CREATE TABLE queenspark.api_keys (
    id text PRIMARY KEY,
    name text NOT NULL,
    -- SHA-256 of the secret, which has 256 random bits: beyond brute force even with a fast hash.
    hash bytea NOT NULL,
    role text CHECK (role IN ('read-only', 'read-write', 'admin')),
    -- NULL: all names.
    scopes text[],
    -- NULL: unlimited.
    requests_per_second float8,
    messages_per_second float8,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL,
    expires_at timestamptz,
    -- Written with a delay of a few seconds.
    last_used_at timestamptz,
    revoked_at timestamptz,
    CHECK (role IS NOT NULL OR scopes IS NOT NULL)
);

CREATE TABLE queenspark.audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    caller text NOT NULL,
    -- 'anonymous', 'key', 'token', or 'database' for direct access to the database.
    kind text NOT NULL,
    address text NOT NULL,
    action text NOT NULL,
    subject text,
    status integer NOT NULL
);
CREATE INDEX audit_at ON queenspark.audit (at);
