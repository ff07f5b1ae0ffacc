-- oldest: 0002
-- What several parts read has one home: dropped records a table of their own.

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
