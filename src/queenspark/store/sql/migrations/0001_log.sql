-- The log and everything that reads it. All objects live in the schema `queenspark`.

CREATE SCHEMA IF NOT EXISTS queenspark;

-- One row: facts about the log as a whole.
CREATE TABLE queenspark.system (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- High bits of every position. Rises when a restored database hands out transaction ids again.
    generation integer NOT NULL DEFAULT 0,
    push_maintenance boolean NOT NULL DEFAULT false,
    pop_maintenance boolean NOT NULL DEFAULT false
);
INSERT INTO queenspark.system DEFAULT VALUES;

CREATE TABLE queenspark.queues (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    namespace text NOT NULL DEFAULT '',
    task text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Rises with every change of the options; a push that knows an older revision is refused and tried again.
    revision integer NOT NULL DEFAULT 1,
    lease_seconds integer NOT NULL DEFAULT 300,
    retry_limit integer NOT NULL DEFAULT 3,
    retry_delay_ms integer NOT NULL DEFAULT 1000,
    ttl_seconds integer,                                -- NULL: messages never expire
    max_size bigint NOT NULL DEFAULT 0,                 -- 0: no limit
    priority integer NOT NULL DEFAULT 0,
    delayed_seconds integer NOT NULL DEFAULT 0,
    window_buffer_seconds integer NOT NULL DEFAULT 0,
    retention_enabled boolean NOT NULL DEFAULT false,
    retention_seconds integer NOT NULL DEFAULT 0,       -- 0: keep
    completed_retention_seconds integer NOT NULL DEFAULT 0,
    encryption_enabled boolean NOT NULL DEFAULT false,
    dead_letters_enabled boolean NOT NULL DEFAULT true, -- false: retried forever
    dead_letter_queue text,                             -- dead letters are also pushed here
    max_wait_seconds integer NOT NULL DEFAULT 0         -- 0: a message may wait forever
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

-- The log. Append-only; a message's position is (txid, id). No foreign keys: a push locks nothing that another
-- push needs.
CREATE TABLE queenspark.messages (
    txid bigint NOT NULL,
    id bigint NOT NULL,
    partition_id bigint NOT NULL,
    created_at timestamptz NOT NULL,
    queue_id integer NOT NULL,
    encrypted boolean NOT NULL DEFAULT false,
    transaction_id text COLLATE "C" NOT NULL,
    trace_id text,
    payload text NOT NULL
) WITH (autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1);
CREATE UNIQUE INDEX messages_partition ON queenspark.messages (partition_id, txid, id);
CREATE UNIQUE INDEX messages_transaction ON queenspark.messages (partition_id, transaction_id);
CREATE INDEX messages_log ON queenspark.messages (queue_id, txid, id) INCLUDE (partition_id);

-- Message ids are handed to brokers in blocks of 1,000, so that a push knows its ids before it inserts.
CREATE SEQUENCE queenspark.message_blocks;

-- Queues that were deleted and whose messages the sweeper still has to remove.
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
    -- Where the group begins in a partition that it has no place in yet.
    start_txid bigint NOT NULL,
    start_id bigint NOT NULL,
    -- Discovery: every message up to here is known to the group's places.
    seen_txid bigint NOT NULL,
    seen_id bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (queue_id, name)
);
CREATE INDEX groups_name ON queenspark.groups (name);

-- A group's place in one partition, with its lease.
--
--   idle     available_at is NULL: nothing to do as far as discovery has seen
--   ready    available_at has passed: the next pop takes it
--   waiting  available_at lies ahead: a retry, a delay, or a lease that will expire
CREATE TABLE queenspark.places (
    group_id integer NOT NULL REFERENCES queenspark.groups ON DELETE CASCADE,
    partition_id bigint NOT NULL REFERENCES queenspark.partitions ON DELETE CASCADE,
    available_at timestamptz,
    -- Everything up to the cursor is answered.
    cursor_txid bigint NOT NULL,
    cursor_id bigint NOT NULL,
    -- Delivered messages beyond the cursor: up to the end, those in `pending` are not acked yet.
    end_txid bigint NOT NULL,
    end_id bigint NOT NULL,
    pending bigint[] NOT NULL DEFAULT '{}',
    -- The lease: its fencing token, its end, and which of the pending messages it still has to answer.
    lease_id uuid,
    lease_expires_at timestamptz,
    leased bigint[] NOT NULL DEFAULT '{}',
    retry_at timestamptz,
    -- Dead letters that were returned and await delivery.
    returned integer NOT NULL DEFAULT 0,
    acked_at timestamptz,
    PRIMARY KEY (group_id, partition_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
CREATE INDEX places_available ON queenspark.places (group_id, available_at) WHERE available_at IS NOT NULL;
CREATE INDEX places_lease ON queenspark.places (lease_id) WHERE lease_id IS NOT NULL;
CREATE INDEX places_partition ON queenspark.places (partition_id);

-- Failed attempts of messages that will come again.
CREATE TABLE queenspark.attempts (
    group_id integer NOT NULL,
    partition_id bigint NOT NULL,
    id bigint NOT NULL,
    count integer NOT NULL,
    error text,
    PRIMARY KEY (group_id, partition_id, id),
    FOREIGN KEY (group_id, partition_id) REFERENCES queenspark.places ON DELETE CASCADE
);

-- Dead letters keep a copy: retention of the log does not touch them.
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

-- Looks at the clock: every message created before `at` has a transaction id below `txid`, and every transaction
-- below `horizon` was finished at `horizon_at`.
CREATE TABLE queenspark.looks (
    at timestamptz PRIMARY KEY,
    txid bigint NOT NULL,
    horizon bigint NOT NULL,
    horizon_at timestamptz NOT NULL
);
CREATE INDEX looks_txid ON queenspark.looks (txid);

-- Pushes accepted while push maintenance is on, in the order in which they will enter the log.
CREATE TABLE queenspark.staged (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bigint NOT NULL,
    queue text NOT NULL,
    partition text NOT NULL,
    encrypted boolean NOT NULL,
    transaction_id text COLLATE "C" NOT NULL,
    trace_id text,
    payload text NOT NULL
);
