-- Every statement that the store sends, by name. Comments say what a statement promises.

-- name: push
-- Append messages. Ids are given in request order; rows go in sorted, so that two brokers cannot deadlock.
-- Nothing is inserted when a queue or partition is gone or a queue's options have changed since they were read.
INSERT INTO queenspark.messages
    (txid, id, partition_id, created_at, queue_id, encrypted, transaction_id, trace_id, payload)
SELECT t.txid, i.id, i.partition_id, t.now, i.queue_id, i.queue_id = ANY (%(encrypted)s::integer[]),
       i.transaction_id, i.trace_id, i.payload
FROM (
    -- The time is taken after the transaction id: safe time rests on that order.
    SELECT x.txid, clock_timestamp() AS now FROM (SELECT queenspark.current_txid() AS txid OFFSET 0) x OFFSET 0
) t, (
    SELECT * FROM unnest(
        string_to_array(%(ids)s, ' ')::bigint[], string_to_array(%(partition_ids)s, ' ')::bigint[],
        string_to_array(%(queue_ids)s, ' ')::integer[], string_to_array(%(transaction_ids)s, E'\x01'),
        string_to_array(%(trace_ids)s, E'\x01', ''), string_to_array(%(payloads)s, E'\x01')
    ) AS u(id, partition_id, queue_id, transaction_id, trace_id, payload)
    ORDER BY partition_id, transaction_id COLLATE "C", id
) i
WHERE (SELECT count(*) FROM queenspark.partitions WHERE id = ANY (%(partitions)s::bigint[])) = cardinality(%(partitions)s::bigint[])
  AND NOT EXISTS (
      SELECT 1 FROM unnest(%(queues)s::integer[], %(revisions)s::integer[]) AS u(id, revision)
      LEFT JOIN queenspark.queues q ON q.id = u.id WHERE q.revision IS DISTINCT FROM u.revision)
ON CONFLICT (partition_id, transaction_id) DO NOTHING

-- name: find_ids
SELECT u.n::integer, m.id
FROM unnest(%(partition_ids)s::bigint[], %(transaction_ids)s::text[]) WITH ORDINALITY u(partition_id, transaction_id, n)
JOIN queenspark.messages m ON m.partition_id = u.partition_id AND m.transaction_id = u.transaction_id

-- name: take_blocks
SELECT nextval('queenspark.message_blocks') FROM generate_series(1, %(count)s)

-- name: ensure_queues
INSERT INTO queenspark.queues (name) SELECT name FROM unnest(%(names)s::text[]) AS u(name) ORDER BY name
ON CONFLICT (name) DO NOTHING

-- name: find_queues
SELECT * FROM queenspark.queues WHERE name = ANY (%(names)s)

-- name: ensure_partitions
INSERT INTO queenspark.partitions (queue_id, name)
SELECT u.queue_id, u.name FROM unnest(%(queue_ids)s::integer[], %(names)s::text[]) AS u(queue_id, name)
JOIN queenspark.queues q ON q.id = u.queue_id
ORDER BY u.queue_id, u.name
ON CONFLICT (queue_id, name) DO NOTHING

-- name: find_partitions
SELECT p.queue_id, p.name, p.id
FROM unnest(%(queue_ids)s::integer[], %(names)s::text[]) AS u(queue_id, name)
JOIN queenspark.partitions p ON p.queue_id = u.queue_id AND p.name = u.name

-- name: partition_names
SELECT p.id, p.name, q.name FROM queenspark.partitions p JOIN queenspark.queues q ON q.id = p.queue_id
WHERE p.id = ANY (%(ids)s)

-- name: configure_queue
INSERT INTO queenspark.queues AS q
    (name, namespace, task, lease_seconds, retry_limit, retry_delay_ms, ttl_seconds, max_size, priority,
     delayed_seconds, window_buffer_seconds, retention_enabled, retention_seconds, completed_retention_seconds,
     encryption_enabled, dead_letters_enabled, dead_letter_queue, max_wait_seconds)
VALUES (%(name)s, coalesce(%(namespace)s, ''), coalesce(%(task)s, ''), %(lease_seconds)s, %(retry_limit)s,
     %(retry_delay_ms)s, %(ttl_seconds)s, %(max_size)s, %(priority)s, %(delayed_seconds)s,
     %(window_buffer_seconds)s, %(retention_enabled)s, %(retention_seconds)s, %(completed_retention_seconds)s,
     %(encryption_enabled)s, %(dead_letters_enabled)s, %(dead_letter_queue)s, %(max_wait_seconds)s)
ON CONFLICT (name) DO UPDATE SET
    namespace = coalesce(%(namespace)s, q.namespace), task = coalesce(%(task)s, q.task),
    revision = q.revision + 1, lease_seconds = excluded.lease_seconds, retry_limit = excluded.retry_limit,
    retry_delay_ms = excluded.retry_delay_ms, ttl_seconds = excluded.ttl_seconds, max_size = excluded.max_size,
    priority = excluded.priority, delayed_seconds = excluded.delayed_seconds,
    window_buffer_seconds = excluded.window_buffer_seconds, retention_enabled = excluded.retention_enabled,
    retention_seconds = excluded.retention_seconds,
    completed_retention_seconds = excluded.completed_retention_seconds,
    encryption_enabled = excluded.encryption_enabled, dead_letters_enabled = excluded.dead_letters_enabled,
    dead_letter_queue = excluded.dead_letter_queue, max_wait_seconds = excluded.max_wait_seconds
RETURNING *

-- name: delete_queue
-- The queue is gone at once; its messages are removed by the sweeper.
WITH gone AS (DELETE FROM queenspark.queues WHERE name = %(name)s RETURNING id)
INSERT INTO queenspark.deleted_queues (queue_id) SELECT id FROM gone RETURNING queue_id

-- name: list_queues
SELECT q.*, (SELECT count(*) FROM queenspark.partitions p WHERE p.queue_id = q.id) AS partitions
FROM queenspark.queues q
WHERE (%(namespace)s::text IS NULL OR q.namespace = %(namespace)s)
  AND (%(task)s::text IS NULL OR q.task = %(task)s)
ORDER BY q.name

-- name: queues_of
-- Queues of a namespace or task in the order in which a pop tries them.
SELECT name FROM queenspark.queues
WHERE (%(namespace)s::text IS NULL OR namespace = %(namespace)s) AND (%(task)s::text IS NULL OR task = %(task)s)
ORDER BY priority DESC, name

-- name: list_partitions
SELECT p.id, p.name, p.created_at FROM queenspark.partitions p
WHERE p.queue_id = %(queue_id)s ORDER BY p.name LIMIT %(limit)s OFFSET %(offset)s

-- name: count_queue
SELECT count(*) FROM (
    SELECT 1 FROM queenspark.messages WHERE queue_id = %(queue_id)s LIMIT %(limit)s) counted

-- name: count_messages
SELECT q.id, (SELECT count(*) FROM queenspark.messages m WHERE m.queue_id = q.id)
FROM queenspark.queues q WHERE %(queue_id)s::integer IS NULL OR q.id = %(queue_id)s

-- name: pop
SELECT * FROM queenspark.pop(%(group_id)s, %(batch)s, %(partitions)s, %(lease_id)s, %(auto_ack)s, %(partition_id)s)

-- name: next_look
SELECT above_horizon, wait_ms FROM queenspark.next_look(%(group_id)s, %(partition_id)s)

-- name: ensure_group
SELECT queenspark.ensure_group(%(queue_id)s, %(name)s, %(mode)s, %(from)s)

-- name: ack
SELECT outcome, attempts, released, more FROM queenspark.ack(
    %(partition_id)s, %(group)s, %(lease_id)s, %(transaction_ids)s, %(statuses)s, %(errors)s, %(final)s)

-- name: require_leases
-- Lock the places of all leases of a transaction in one order; which of them are live?
SELECT DISTINCT l.lease_id FROM (
    SELECT p.lease_id, p.lease_expires_at, p.leased FROM queenspark.places p
    WHERE p.lease_id = ANY (%(lease_ids)s) ORDER BY p.partition_id, p.group_id FOR UPDATE
) l WHERE l.lease_expires_at > clock_timestamp() AND cardinality(l.leased) > 0

-- name: extend
SELECT places, expires_at FROM queenspark.extend(%(lease_id)s, %(seconds)s)

-- name: release
SELECT queenspark.release(%(lease_id)s)

-- name: list_groups
SELECT g.id, g.name, q.name AS queue, q.id AS queue_id, g.mode, g.created_at,
       count(p.partition_id) AS places,
       count(*) FILTER (WHERE cardinality(p.leased) > 0 AND p.lease_expires_at > clock_timestamp()) AS leases,
       max(p.acked_at) AS acked_at
FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
LEFT JOIN queenspark.places p ON p.group_id = g.id
WHERE (%(name)s::text IS NULL OR g.name = %(name)s) AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
GROUP BY g.id, q.id ORDER BY g.name, q.name

-- name: list_places
SELECT t.name AS partition, t.id AS partition_id, cardinality(p.pending) AS pending,
       cardinality(p.leased) AS leased, p.lease_expires_at, p.available_at, p.acked_at
FROM queenspark.places p JOIN queenspark.partitions t ON t.id = p.partition_id
WHERE p.group_id = %(group_id)s ORDER BY t.name LIMIT %(limit)s

-- name: delete_groups
DELETE FROM queenspark.groups g USING queenspark.queues q
WHERE q.id = g.queue_id AND g.name = %(name)s AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
RETURNING g.id

-- name: restart_groups
-- Forget the places of a group but keep where it begins.
WITH restarted AS (
    UPDATE queenspark.groups g SET seen_txid = start_txid, seen_id = start_id FROM queenspark.queues q
    WHERE q.id = g.queue_id AND g.name = %(name)s AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
    RETURNING g.id
), forgotten AS (
    DELETE FROM queenspark.places p USING restarted r WHERE p.group_id = r.id
), dead_again AS (
    UPDATE queenspark.dead_letters d SET returned = false FROM restarted r WHERE d.group_id = r.id AND d.returned
)
SELECT id FROM restarted

-- name: set_subscription
-- Where the group begins in partitions that it has no place in yet.
UPDATE queenspark.groups g
SET start_txid = a.txid, start_id = a.id,
    seen_txid = CASE WHEN (a.txid, a.id) < (g.seen_txid, g.seen_id) THEN a.txid ELSE g.seen_txid END,
    seen_id = CASE WHEN (a.txid, a.id) < (g.seen_txid, g.seen_id) THEN a.id ELSE g.seen_id END
FROM queenspark.groups x CROSS JOIN LATERAL queenspark.position_at(x.queue_id, %(time)s) a
WHERE x.id = g.id AND g.name = %(name)s
RETURNING g.id

-- name: seek_to
SELECT queenspark.seek(%(group_id)s, %(partition_id)s, a.txid, a.id) FROM (
    SELECT (SELECT queenspark.frontier()) AS txid, 0::bigint AS id WHERE %(to)s = 'end'
    UNION ALL SELECT 0, 0 WHERE %(to)s = 'beginning'
    UNION ALL SELECT p.txid, p.id FROM queenspark.position_at(%(queue_id)s, %(time)s) p WHERE %(to)s = 'time'
) a

-- name: group_lag
-- Messages that each group has not answered yet, and when the oldest of them was created. Costs what is unread.
SELECT g.id, g.name, q.name AS queue, q.id AS queue_id, (
        SELECT coalesce(sum(cardinality(p.pending) + (
            SELECT count(*) FROM queenspark.messages m
            WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.end_txid, p.end_id)
              AND (m.txid, m.id) <= (g.seen_txid, g.seen_id))), 0)
        FROM queenspark.places p WHERE p.group_id = g.id AND p.available_at IS NOT NULL
    )::bigint + (
        SELECT count(*) FROM queenspark.messages m
        LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
          AND (p.end_txid IS NULL OR (m.txid, m.id) > (p.end_txid, p.end_id))
    ) AS lag, (
        SELECT coalesce(sum(cardinality(p.leased)), 0) FROM queenspark.places p
        WHERE p.group_id = g.id AND p.available_at IS NOT NULL AND p.lease_expires_at > clock_timestamp()
    )::bigint AS processing, least((
        SELECT min((
            SELECT m.created_at FROM queenspark.messages m
            WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id)
            ORDER BY m.txid, m.id LIMIT 1))
        FROM queenspark.places p WHERE p.group_id = g.id AND p.available_at IS NOT NULL
    ), (
        SELECT m.created_at FROM queenspark.messages m
        LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
          AND (p.end_txid IS NULL OR (m.txid, m.id) > (p.end_txid, p.end_id))
        ORDER BY m.txid, m.id LIMIT 1
    )) AS oldest
FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
WHERE %(queue_id)s::integer IS NULL OR g.queue_id = %(queue_id)s

-- name: dead_letter_counts
SELECT q.name AS queue, g.name AS group, count(*) FROM queenspark.dead_letters d
JOIN queenspark.groups g ON g.id = d.group_id JOIN queenspark.queues q ON q.id = g.queue_id
WHERE NOT d.returned GROUP BY q.name, g.name

-- name: list_dead_letters
SELECT d.id, d.transaction_id, d.trace_id, d.partition_id, t.name AS partition, q.name AS queue, g.name AS group,
       d.error, d.attempts, d.payload, d.encrypted, d.created_at, d.failed_at, count(*) OVER () AS total
FROM queenspark.chosen_dead_letters(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s) d
JOIN queenspark.groups g ON g.id = d.group_id
JOIN queenspark.partitions t ON t.id = d.partition_id JOIN queenspark.queues q ON q.id = t.queue_id
ORDER BY d.failed_at DESC, d.id DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: return_dead_letters
SELECT * FROM queenspark.put_back(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s)

-- name: delete_dead_letters
DELETE FROM queenspark.dead_letters d USING queenspark.chosen_dead_letters(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s) c
WHERE d.group_id = c.group_id AND d.id = c.id
RETURNING d.id

-- name: browse_messages
-- A message's status is the worst over the queue's groups: dead_letter, processing, pending, completed.
SELECT x.* FROM (
    SELECT m.id, m.txid, m.transaction_id, m.trace_id, m.partition_id, t.name AS partition, q.name AS queue,
           q.namespace, q.task, m.payload, m.encrypted, m.created_at,
           CASE
               WHEN EXISTS (SELECT 1 FROM queenspark.dead_letters d
                            WHERE d.partition_id = m.partition_id AND d.transaction_id = m.transaction_id)
                   THEN 'dead_letter'
               WHEN EXISTS (SELECT 1 FROM queenspark.places p
                            WHERE p.partition_id = m.partition_id AND m.id = ANY (p.leased)
                              AND p.lease_expires_at > clock_timestamp())
                   THEN 'processing'
               WHEN NOT EXISTS (SELECT 1 FROM queenspark.groups g WHERE g.queue_id = m.queue_id)
                   OR EXISTS (
                       SELECT 1 FROM queenspark.groups g
                       LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
                       WHERE g.queue_id = m.queue_id
                         AND (m.id = ANY (p.pending) OR (m.txid, m.id) > (
                             coalesce(p.end_txid, g.start_txid), coalesce(p.end_id, g.start_id))))
                   THEN 'pending'
               ELSE 'completed'
           END AS status
    FROM queenspark.messages m
    JOIN queenspark.partitions t ON t.id = m.partition_id JOIN queenspark.queues q ON q.id = t.queue_id
    WHERE (%(queue_id)s::integer IS NULL OR m.queue_id = %(queue_id)s)
      AND (%(partition)s::text IS NULL OR t.name = %(partition)s)
      AND (%(partition_id)s::bigint IS NULL OR m.partition_id = %(partition_id)s)
      AND (%(transaction_id)s::text IS NULL OR m.transaction_id = %(transaction_id)s)
      AND (%(namespace)s::text IS NULL OR q.namespace = %(namespace)s)
      AND (%(task)s::text IS NULL OR q.task = %(task)s)
      AND (%(from)s::timestamptz IS NULL OR m.created_at >= %(from)s)
      AND (%(to)s::timestamptz IS NULL OR m.created_at < %(to)s)
) x
WHERE %(status)s::text IS NULL OR x.status = %(status)s
ORDER BY x.txid DESC, x.id DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: delete_message
DELETE FROM queenspark.messages WHERE partition_id = %(partition_id)s AND transaction_id = %(transaction_id)s
RETURNING id

-- name: add_trace
INSERT INTO queenspark.traces (partition_id, transaction_id, group_name, event_type, names, data)
SELECT p.id, %(transaction_id)s, %(group)s, %(event_type)s, %(names)s, %(data)s::jsonb
FROM queenspark.partitions p WHERE p.id = %(partition_id)s RETURNING id

-- name: list_traces
SELECT r.id, r.transaction_id, r.partition_id, t.name AS partition, q.name AS queue, r.group_name, r.event_type,
       r.names, r.data, r.created_at, count(*) OVER () AS total
FROM queenspark.traces r JOIN queenspark.partitions t ON t.id = r.partition_id
JOIN queenspark.queues q ON q.id = t.queue_id
WHERE (%(partition_id)s::bigint IS NULL OR (r.partition_id = %(partition_id)s AND r.transaction_id = %(transaction_id)s))
  AND (%(name)s::text IS NULL OR r.names @> ARRAY[%(name)s::text])
ORDER BY r.created_at, r.id LIMIT %(limit)s OFFSET %(offset)s

-- name: trace_names
SELECT n.name, count(*) AS traces, max(r.created_at) AS last_at
FROM queenspark.traces r CROSS JOIN LATERAL unnest(r.names) AS n(name)
GROUP BY n.name ORDER BY max(r.created_at) DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: system
SELECT generation, push_maintenance, pop_maintenance FROM queenspark.system

-- name: set_push_maintenance
UPDATE queenspark.system SET push_maintenance = %(enabled)s

-- name: set_pop_maintenance
UPDATE queenspark.system SET pop_maintenance = %(enabled)s

-- name: stage
-- Keep pushes for later, only while push maintenance is on (the lock holds its end back until this commits).
-- Ids come from the sequence one by one, so that they are in order over all brokers.
INSERT INTO queenspark.staged (id, queue, partition, encrypted, transaction_id, trace_id, payload)
SELECT nextval('queenspark.message_blocks') * 1000, u.queue, u.partition, u.encrypted, u.transaction_id, u.trace_id,
       u.payload
FROM (
    SELECT x.* FROM (SELECT 1 FROM queenspark.system WHERE push_maintenance FOR SHARE) on_now, unnest(
        %(queues)s::text[], %(partitions)s::text[], %(encrypted)s::boolean[],
        %(transaction_ids)s::text[], %(trace_ids)s::text[], %(payloads)s::text[]
    ) WITH ORDINALITY AS x(queue, partition, encrypted, transaction_id, trace_id, payload, n) ORDER BY x.n
) u
RETURNING id

-- name: next_staged
SELECT seq, id, queue, partition, encrypted, transaction_id, trace_id, payload
FROM queenspark.staged ORDER BY id LIMIT %(limit)s

-- name: unstage
DELETE FROM queenspark.staged WHERE seq = ANY (%(seqs)s)

-- name: count_staged
SELECT count(*) FROM queenspark.staged

-- name: lock_system
SELECT push_maintenance FROM queenspark.system FOR UPDATE

-- name: look
INSERT INTO queenspark.looks (at, txid, horizon, horizon_at)
SELECT statement_timestamp(), queenspark.current_txid(), queenspark.horizon(), clock_timestamp()
WHERE NOT EXISTS (
    SELECT 1 FROM queenspark.looks WHERE at > statement_timestamp() - make_interval(secs => %(every)s * 0.9))
ON CONFLICT DO NOTHING

-- name: safe_time
-- Every message created before this time is visible and final. A reader that stopped at a position may claim only
-- the time that belongs to it.
SELECT at FROM queenspark.looks
WHERE txid < (SELECT queenspark.horizon()) AND (%(txid)s::bigint IS NULL OR txid <= %(txid)s)
ORDER BY at DESC LIMIT 1

-- name: heads
-- The last message of each queue.
SELECT q.name, m.txid, m.id FROM queenspark.queues q CROSS JOIN LATERAL (
    SELECT txid, id FROM queenspark.messages WHERE queue_id = q.id ORDER BY txid DESC, id DESC LIMIT 1) m
WHERE q.name = ANY (%(names)s)

-- name: log_queue_ids
SELECT name, id FROM queenspark.queues WHERE name = ANY (%(names)s)

-- name: log_horizon
SELECT queenspark.horizon()

-- name: log_frontier
SELECT queenspark.frontier()

-- name: log_position_at
SELECT txid, id FROM queenspark.position_at(%(queue_id)s, %(time)s)

-- name: log_first
SELECT m.txid, m.id FROM queenspark.messages m WHERE m.queue_id = %(queue_id)s ORDER BY m.txid, m.id LIMIT 1

-- name: log_last
-- The last message of any of these queues after one position and up to another.
SELECT m.txid, m.id FROM unnest(%(queue_ids)s::integer[]) AS q(id) CROSS JOIN LATERAL (
    SELECT m.txid, m.id FROM queenspark.messages m
    WHERE m.queue_id = q.id AND (m.txid, m.id) > (%(after_txid)s, %(after_id)s)
      AND (m.txid, m.id) <= (%(upto_txid)s, %(upto_id)s)
    ORDER BY m.txid DESC, m.id DESC LIMIT 1) m
ORDER BY m.txid DESC, m.id DESC LIMIT 1

-- name: log_branch
-- One queue's positions in order. Several branches are merged without sorting. All values are whole numbers.
(SELECT m.txid, m.id FROM queenspark.messages m
 WHERE m.queue_id = %(queue_id)d AND (m.txid, m.id) > (%(after_txid)d, %(after_id)d)
   AND (m.txid, m.id) <= (%(upto_txid)d, %(upto_id)d)
 ORDER BY m.txid, m.id)

-- name: log_nth
-- The position so many messages after the begin of the merged branches.
SELECT b.txid, b.id FROM (%(branches)s) b ORDER BY b.txid, b.id LIMIT 1 OFFSET %(skip)d

-- name: log_read
-- Messages between two positions, for COPY, which takes no parameters: all values are whole numbers. The range of
-- transaction ids says nothing new, but without it the planner takes the range for much larger than it is.
SELECT m.txid, m.id, m.queue_id, p.name AS partition, m.created_at%(columns)s
FROM queenspark.messages m JOIN queenspark.partitions p ON p.id = m.partition_id
WHERE m.queue_id IN (%(queue_ids)s) AND m.txid BETWEEN %(after_txid)d AND %(upto_txid)d
  AND (m.txid, m.id) > (%(after_txid)d, %(after_id)d) AND (m.txid, m.id) <= (%(upto_txid)d, %(upto_id)d)

-- name: horizon_holder
-- The oldest transaction in flight: it holds horizon and safe time back.
SELECT pid, coalesce(application_name, '') AS application, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
ORDER BY age(backend_xid) DESC LIMIT 1

-- name: thin_looks
-- After an hour a look a minute is enough.
DELETE FROM queenspark.looks l WHERE l.at IN (
    SELECT x.at FROM (
        SELECT at, row_number() OVER (PARTITION BY date_trunc('minute', at) ORDER BY at) AS n
        FROM queenspark.looks WHERE at < clock_timestamp() - interval '1 hour'
    ) x WHERE x.n > 1 LIMIT %(limit)s)

-- name: forget_looks
-- Looks from before the first message of the log are of no use to anybody.
DELETE FROM queenspark.looks l
WHERE l.at < clock_timestamp() - interval '1 hour' AND l.txid < (
    SELECT coalesce(min(first.txid), queenspark.horizon()) FROM queenspark.queues q CROSS JOIN LATERAL (
        SELECT m.txid FROM queenspark.messages m WHERE m.queue_id = q.id ORDER BY m.txid, m.id LIMIT 1) first)

-- name: sweep_deleted
-- Messages of deleted queues, a batch at a time.
WITH doomed AS (
    SELECT m.ctid FROM queenspark.messages m
    WHERE m.queue_id = (
        SELECT d.queue_id FROM queenspark.deleted_queues d
        WHERE EXISTS (SELECT 1 FROM queenspark.messages x WHERE x.queue_id = d.queue_id) LIMIT 1)
    ORDER BY m.queue_id, m.txid, m.id LIMIT %(limit)s
)
DELETE FROM queenspark.messages m USING doomed d WHERE m.ctid = d.ctid

-- name: forget_deleted
-- A queue is forgotten an hour after its deletion, when no push that began before it can still be under way.
DELETE FROM queenspark.deleted_queues d
WHERE d.deleted_at < clock_timestamp() - interval '1 hour'
  AND NOT EXISTS (SELECT 1 FROM queenspark.messages m WHERE m.queue_id = d.queue_id)

-- name: queues_with_retention
SELECT id, name, retention_enabled, retention_seconds, completed_retention_seconds, ttl_seconds
FROM queenspark.queues
WHERE (retention_enabled AND (retention_seconds > 0 OR completed_retention_seconds > 0)) OR ttl_seconds IS NOT NULL

-- name: sweep_old
-- The oldest messages of a queue, up to the first that is younger than the age.
WITH candidates AS (
    SELECT m.ctid, m.created_at FROM queenspark.messages m
    WHERE m.queue_id = %(queue_id)s ORDER BY m.txid, m.id LIMIT %(limit)s
)
DELETE FROM queenspark.messages m USING candidates c
WHERE m.ctid = c.ctid AND c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s)

-- name: sweep_completed
-- Messages after a position that every group of the queue has answered and that are old enough. Returns how many
-- were deleted and the last position that was looked at.
WITH candidates AS MATERIALIZED (
    SELECT m.ctid, m.txid, m.id, m.partition_id, m.created_at FROM queenspark.messages m
    WHERE m.queue_id = %(queue_id)s AND (m.txid, m.id) > (%(txid)s, %(id)s)
    ORDER BY m.txid, m.id LIMIT %(limit)s
), deleted AS (
    DELETE FROM queenspark.messages m USING candidates c
    WHERE m.ctid = c.ctid AND c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s)
      AND EXISTS (SELECT 1 FROM queenspark.groups g WHERE g.queue_id = %(queue_id)s)
      AND NOT EXISTS (
          SELECT 1 FROM queenspark.groups g
          LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = c.partition_id
          WHERE g.queue_id = %(queue_id)s
            AND (c.id = ANY (p.pending) OR (c.txid, c.id) > (
                coalesce(p.end_txid, g.start_txid), coalesce(p.end_id, g.start_id))))
    RETURNING 1
)
SELECT (SELECT count(*) FROM deleted), c.txid, c.id FROM candidates c ORDER BY c.txid DESC, c.id DESC LIMIT 1

-- name: notify
SELECT pg_notify('queenspark', %(message)s)

-- name: ping
SELECT current_setting('server_version')
