-- oldest: 0002
-- One location for shared data: dropped records get their own table, the pipeline's progress gets columns. And the
-- retention of window queues is part of a stream's definition.

CREATE TABLE queenspark.stream_dropped (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    key text NOT NULL,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    PRIMARY KEY (stream_id, version, key, txid, id)
);
CREATE INDEX stream_dropped_position ON queenspark.stream_dropped (stream_id, txid, id);

-- So far they were in the late log only.
INSERT INTO queenspark.stream_dropped (stream_id, version, key, txid, id)
SELECT DISTINCT l.stream_id, l.version, l.key, l.txid, l.id FROM queenspark.stream_late l
WHERE l.dropped AND EXISTS (
    SELECT 1 FROM queenspark.definitions d
    WHERE d.stream_id = l.stream_id AND d.version = l.version AND d.body #>> '{spec,kind}' = 'session');

-- Generated: a pipeline of an older version writes the state only.
ALTER TABLE queenspark.progress
    ADD COLUMN run text GENERATED ALWAYS AS (state ->> 'run') STORED,
    ADD COLUMN txid bigint GENERATED ALWAYS AS ((state ->> 'txid')::bigint) STORED,
    ADD COLUMN id bigint GENERATED ALWAYS AS ((state ->> 'id')::bigint) STORED,
    ADD COLUMN tick bigint GENERATED ALWAYS AS ((state ->> 'tick')::bigint) STORED,
    ADD COLUMN seq bigint GENERATED ALWAYS AS ((state ->> 'seq')::bigint) STORED,
    ADD COLUMN behind jsonb GENERATED ALWAYS AS (state -> 'behind') STORED,
    ADD COLUMN next_close bigint GENERATED ALWAYS AS ((state ->> 'next_close')::bigint) STORED,
    ADD COLUMN records bigint GENERATED ALWAYS AS ((state ->> 'records')::bigint) STORED,
    ADD COLUMN seconds float8 GENERATED ALWAYS AS ((state ->> 'seconds')::float8) STORED;

ALTER TABLE queenspark.streams ADD COLUMN window_retention_ms bigint;
