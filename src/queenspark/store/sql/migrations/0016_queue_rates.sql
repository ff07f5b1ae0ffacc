-- oldest: 0002
-- Rates of queues and groups. Versions that do not know the table do not report theirs.

CREATE TABLE queenspark.queue_rates (
    queue_id integer NOT NULL,
    group_id integer NOT NULL,
    broker text NOT NULL,
    pushed double precision NOT NULL,
    popped double precision NOT NULL,
    acked double precision NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (queue_id, group_id, broker)
) WITH (fillfactor = 50);
