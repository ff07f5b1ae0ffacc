-- oldest: 0002
-- Counts of the log, kept in the background, so that no answer has to count it.

CREATE TABLE queenspark.counting (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    counted_at timestamptz NOT NULL DEFAULT '-infinity',
    seconds double precision NOT NULL DEFAULT 0,
    complete boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
INSERT INTO queenspark.counting DEFAULT VALUES;

CREATE TABLE queenspark.queue_counts (
    queue_id integer PRIMARY KEY,
    upto_txid bigint NOT NULL DEFAULT 0,
    upto_id bigint NOT NULL DEFAULT 0,
    messages bigint NOT NULL DEFAULT 0,
    partitions bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0,
    processing bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE queenspark.group_counts (
    group_id integer PRIMARY KEY,
    queue_id integer NOT NULL,
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
