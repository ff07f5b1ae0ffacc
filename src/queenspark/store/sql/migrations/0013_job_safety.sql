-- oldest: 0002
-- Removals by retention: how much of a queue's history is incomplete, and the number of removed records that jobs had
-- not read. And the job that kills workers.

CREATE TABLE queenspark.removals (
    queue_id integer PRIMARY KEY,
    txid bigint NOT NULL,
    id bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE queenspark.stream_removed (
    stream_id integer PRIMARY KEY,
    records bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);

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

-- The job that a worker of the pipeline computes, while the pipeline looks for one that kills its workers.
CREATE TABLE queenspark.steps (
    stream_id integer NOT NULL,
    version integer NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
);
