-- Every statement of the store, by name. Comments state the contract of a statement.
--
-- Placeholders are psycopg's: named values, and in braces a piece of SQL composed with psycopg.sql. For a statement
-- without parameter support, for instance COPY, psycopg writes the values into the text.

-- name: push
-- Append messages. Ids are given in request order; rows are inserted sorted, so that two brokers cannot deadlock.
-- Nothing is inserted if a queue or partition is gone or a queue's options have changed since they were read.
INSERT INTO queenspark.messages
    (txid, id, partition_id, created_at, queue_id, encrypted, transaction_id, trace_id, payload, headers)
SELECT t.txid, i.id, i.partition_id, t.now, i.queue_id, i.queue_id = ANY (%(encrypted)s::integer[]),
       i.transaction_id, i.trace_id, i.payload, i.headers
FROM (
    -- The time is taken after the transaction id: safe time relies on that order.
    SELECT x.txid, clock_timestamp() AS now FROM (SELECT current_txid() AS txid OFFSET 0) x OFFSET 0
) t, (
    SELECT * FROM unnest(
        string_to_array(%(ids)s, ' ')::bigint[], string_to_array(%(partition_ids)s, ' ')::bigint[],
        string_to_array(%(queue_ids)s, ' ')::integer[], string_to_array(%(transaction_ids)s, E'\x01'),
        string_to_array(%(trace_ids)s, E'\x01', ''), string_to_array(%(payloads)s, E'\x01'),
        string_to_array(%(headers)s, E'\x01', '')  -- NULL if no message has any
    ) AS u(id, partition_id, queue_id, transaction_id, trace_id, payload, headers)
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
SELECT q.*, EXISTS (
    SELECT 1 FROM queenspark.streams s WHERE s.queue_id = q.id AND s.output = 'rows') AS has_rows
FROM queenspark.queues q WHERE q.name = ANY (%(names)s)

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

-- name: queue_names
SELECT id, name FROM queenspark.queues WHERE id = ANY (%(ids)s)

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
RETURNING *, EXISTS (SELECT 1 FROM queenspark.streams s WHERE s.queue_id = q.id AND s.output = 'rows') AS has_rows

-- name: delete_queue
-- The queue is deleted at once; its messages are removed by the sweeper.
WITH gone AS (DELETE FROM queenspark.queues WHERE name = %(name)s RETURNING id)
INSERT INTO queenspark.deleted_queues (queue_id) SELECT id FROM gone RETURNING queue_id

-- name: list_queues
-- A page of the queues with their counts as of the last round of counting.
SELECT q.*, coalesce(c.partitions, 0) AS partitions, coalesce(c.messages, 0) AS messages,
       coalesce(c.pending, 0) AS pending, coalesce(c.processing, 0) AS processing,
       s.output IS NOT DISTINCT FROM 'rows' AS has_rows, count(*) OVER () AS total
FROM queenspark.queues q LEFT JOIN queenspark.queue_counts c ON c.queue_id = q.id
LEFT JOIN queenspark.streams s ON s.queue_id = q.id
LEFT JOIN (
    -- Only if the order needs it.
    SELECT r.queue_id, CASE %(sort)s WHEN 'pushedPerSecond' THEN sum(r.pushed) WHEN 'poppedPerSecond' THEN sum(r.popped)
               ELSE sum(r.acked) END AS number
    FROM queenspark.queue_rates r
    WHERE r.at > clock_timestamp() - interval '1 minute'
      AND %(sort)s IN ('pushedPerSecond', 'poppedPerSecond', 'ackedPerSecond')
    GROUP BY r.queue_id
) r ON r.queue_id = q.id
LEFT JOIN queenspark.stream_rates w ON w.stream_id = s.id AND %(sort)s = 'pushedPerSecond'
    AND EXISTS (SELECT 1 FROM queenspark.pipeline p WHERE p.expires_at > clock_timestamp())
CROSS JOIN LATERAL (
    SELECT CASE %(sort)s WHEN 'namespace' THEN q.namespace WHEN 'task' THEN q.task END AS text,
           CASE %(sort)s WHEN 'messages' THEN c.messages WHEN 'pending' THEN c.pending
               WHEN 'processing' THEN c.processing WHEN 'partitions' THEN c.partitions WHEN 'priority' THEN q.priority
               WHEN 'createdAt' THEN extract(epoch FROM q.created_at)
               ELSE (coalesce(r.number, 0) + coalesce(w.sealed, 0))::numeric END AS number
) k
WHERE (%(name)s::text IS NULL OR q.name = %(name)s)
  AND (%(namespace)s::text IS NULL OR q.namespace = %(namespace)s)
  AND (%(task)s::text IS NULL OR q.task = %(task)s)
  AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
  AND (%(windows)s OR s.id IS NULL OR (s.output = 'rows' AND s.expires_at IS NULL))
  AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(q.name)) > 0)
ORDER BY CASE WHEN NOT %(descending)s THEN k.number END, CASE WHEN %(descending)s THEN k.number END DESC NULLS LAST,
         CASE WHEN NOT %(descending)s THEN k.text END, CASE WHEN %(descending)s THEN k.text END DESC,
         CASE WHEN %(descending)s AND %(sort)s = 'name' THEN q.name END DESC, q.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: queues_now
-- Messages and partitions of some queues, exact up to a limit. Larger numbers are those of the last round of
-- counting, plus newer messages up to the limit.
SELECT q.id,
       CASE WHEN coalesce(c.messages, 0) <= %(exact)s THEN (
           SELECT count(*) FROM (
               SELECT 1 FROM queenspark.messages m WHERE m.queue_id = q.id LIMIT %(exact)s + 1) m
       ) ELSE c.messages + (
           SELECT count(*) FROM (
               SELECT 1 FROM queenspark.messages m
               WHERE m.queue_id = q.id AND (m.txid, m.id) > (c.upto_txid, c.upto_id)
               ORDER BY m.queue_id, m.txid, m.id LIMIT %(exact)s) m
       ) END AS messages,
       CASE WHEN coalesce(c.partitions, 0) <= %(exact)s THEN (
           SELECT count(*) FROM (
               SELECT 1 FROM queenspark.partitions p WHERE p.queue_id = q.id LIMIT %(exact)s + 1) p
       ) ELSE c.partitions END AS partitions
FROM unnest(%(ids)s::integer[]) AS q(id) LEFT JOIN queenspark.queue_counts c ON c.queue_id = q.id

-- name: queues_of
-- Queues of a namespace or task in the order in which a pop tries them.
SELECT name FROM queenspark.queues
WHERE (%(namespace)s::text IS NULL OR namespace = %(namespace)s) AND (%(task)s::text IS NULL OR task = %(task)s)
ORDER BY priority DESC, name

-- name: list_partitions
SELECT p.id, p.name, p.created_at FROM queenspark.partitions p
WHERE p.queue_id = %(queue_id)s AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(p.name)) > 0)
ORDER BY CASE WHEN %(sort)s = 'createdAt' AND NOT %(descending)s THEN p.created_at END,
         CASE WHEN %(sort)s = 'createdAt' AND %(descending)s THEN p.created_at END DESC,
         CASE WHEN %(sort)s = 'name' AND %(descending)s THEN p.name END DESC, p.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: pop
SELECT * FROM pop(
    %(group_id)s, %(batch)s, %(partitions)s, %(lease_ids)s, %(auto_ack)s, %(holders)s::text[],
    %(partition_id)s, %(lease_ms)s)

-- name: next_check
SELECT above_horizon, wait_ms FROM next_check(%(group_id)s, %(partition_id)s)

-- name: ensure_group
SELECT ensure_group(%(queue_id)s, %(name)s, %(mode)s, %(from)s)

-- name: ack
SELECT outcome, attempts, released, more FROM ack(
    %(partition_ids)s::bigint[], %(groups)s::text[], %(lease_ids)s::uuid[], %(firsts)s::integer[], %(lasts)s::integer[],
    %(transaction_ids)s::text[], %(statuses)s::text[], %(errors)s::text[], %(final)s)

-- name: require_leases
-- Lock the places of all leases of a transaction in one order; return the live ones.
SELECT DISTINCT l.lease_id FROM (
    SELECT p.lease_id, p.lease_expires_at, p.leased FROM queenspark.places p
    WHERE p.lease_id = ANY (%(lease_ids)s) ORDER BY p.partition_id, p.group_id FOR UPDATE
) l WHERE l.lease_expires_at > clock_timestamp() AND cardinality(l.leased) > 0

-- name: extend
SELECT places, expires_at FROM extend(%(lease_id)s, %(seconds)s)

-- name: release
SELECT release(%(lease_id)s)

-- name: list_groups
-- A page of the groups, one row per queue of a group, with their counts as of the last round of counting.
SELECT g.id, g.name, q.name AS queue, q.id AS queue_id, g.mode, g.created_at, coalesce(c.places, 0) AS places,
       coalesce(c.leases, 0) AS leases, c.acked_at, coalesce(c.lag, 0) AS lag, coalesce(c.processing, 0) AS processing,
       coalesce(c.dead_letters, 0) AS dead_letters, c.oldest, count(*) OVER () AS total
FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
LEFT JOIN queenspark.group_counts c ON c.group_id = g.id
LEFT JOIN (
    -- Only if the order needs it.
    SELECT r.group_id, CASE %(sort)s WHEN 'poppedPerSecond' THEN sum(r.popped) ELSE sum(r.acked) END AS number
    FROM queenspark.queue_rates r
    WHERE r.at > clock_timestamp() - interval '1 minute' AND %(sort)s IN ('poppedPerSecond', 'ackedPerSecond')
    GROUP BY r.group_id
) r ON r.group_id = g.id
CROSS JOIN LATERAL (
    SELECT CASE %(sort)s WHEN 'lag' THEN c.lag WHEN 'processing' THEN c.processing WHEN 'partitions' THEN c.places
               WHEN 'createdAt' THEN extract(epoch FROM g.created_at)
               WHEN 'lagSeconds' THEN CASE WHEN c.lag > 0 THEN -extract(epoch FROM c.oldest) END
               ELSE coalesce(r.number, 0)::numeric END AS number,
           CASE %(sort)s WHEN 'queue' THEN q.name END AS text
) k
WHERE (%(name)s::text IS NULL OR g.name = %(name)s) AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
  AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
  AND (%(queue_ids)s::integer[] IS NULL OR g.queue_id = ANY (%(queue_ids)s))
  AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(g.name)) > 0)
  AND (%(min_lag_seconds)s::float8 IS NULL
       OR (c.lag > 0 AND c.oldest <= clock_timestamp() - make_interval(secs => %(min_lag_seconds)s)))
ORDER BY CASE WHEN NOT %(descending)s THEN k.number END, CASE WHEN %(descending)s THEN k.number END DESC NULLS LAST,
         CASE WHEN NOT %(descending)s THEN k.text END, CASE WHEN %(descending)s THEN k.text END DESC,
         CASE WHEN %(descending)s AND %(sort)s = 'name' THEN g.name END DESC, g.name, q.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: groups_now
-- The lag of some groups, reading at most a limit of messages and places of each.
SELECT g.id, n.* FROM unnest(%(ids)s::integer[]) AS g(id) CROSS JOIN LATERAL group_now(g.id, %(exact)s) n

-- name: groups_of
SELECT g.id, g.name, q.name AS queue FROM queenspark.groups g JOIN queenspark.queues q ON q.id = g.queue_id
WHERE g.name = %(name)s AND (%(queue)s::text IS NULL OR q.name = %(queue)s) ORDER BY q.name

-- name: backlog
-- The lag of the slowest group of a queue, or without groups the messages of the queue; both up to a limit. Beyond
-- the limit, the counts of the last round.
SELECT coalesce(max(CASE WHEN n.exact THEN n.lag ELSE greatest(n.lag, c.lag) END), (
    SELECT count(*) FROM (
        SELECT 1 FROM queenspark.messages m WHERE m.queue_id = %(queue_id)s LIMIT %(limit)s) m))
FROM queenspark.groups g CROSS JOIN LATERAL group_now(g.id, %(limit)s) n
LEFT JOIN queenspark.group_counts c ON c.group_id = g.id
WHERE g.queue_id = %(queue_id)s

-- name: count_log
SELECT count_log(%(budget)s, %(every)s)

-- name: counting
SELECT nullif(c.counted_at, '-infinity'), c.seconds, c.complete,
       extract(epoch FROM clock_timestamp() - c.counted_at)::float8
FROM queenspark.counting c

-- name: totals
-- Totals as of the last round of counting. Queues and their messages without window queues of streams and queues of
-- temporary jobs; groups and dead letters of all queues.
SELECT q.*, g.groups, coalesce(d.dead_letters, 0) AS dead_letters
FROM (
    SELECT count(*) AS queues, count(DISTINCT nullif(q.namespace, '')) AS namespaces,
           count(DISTINCT nullif(q.task, '')) AS tasks, coalesce(sum(c.partitions), 0)::bigint AS partitions,
           coalesce(sum(c.messages), 0)::bigint AS messages, coalesce(sum(c.pending), 0)::bigint AS pending,
           coalesce(sum(c.processing), 0)::bigint AS processing
    FROM queenspark.queues q LEFT JOIN queenspark.queue_counts c ON c.queue_id = q.id
    WHERE NOT EXISTS (
        SELECT 1 FROM queenspark.streams s
        WHERE s.queue_id = q.id AND (s.output = 'windows' OR s.expires_at IS NOT NULL))
) q, (SELECT count(DISTINCT name) AS groups FROM queenspark.groups) g, (SELECT sum(dead_letters)::bigint AS dead_letters FROM queenspark.group_counts) d

-- name: scopes
-- A page of the namespaces or of the tasks, with the sums of their queues as of the last round of counting.
SELECT s.name, count(*) AS queues, coalesce(sum(c.partitions), 0)::bigint AS partitions,
       coalesce(sum(c.messages), 0)::bigint AS messages, coalesce(sum(c.pending), 0)::bigint AS pending,
       count(*) OVER () AS total
FROM queenspark.queues q LEFT JOIN queenspark.queue_counts c ON c.queue_id = q.id
CROSS JOIN LATERAL (SELECT CASE %(of)s WHEN 'task' THEN q.task ELSE q.namespace END AS name) s
WHERE s.name <> '' AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
  AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(s.name)) > 0)
GROUP BY s.name
ORDER BY CASE WHEN %(sort)s = 'messages' AND NOT %(descending)s THEN sum(c.messages) END,
         CASE WHEN %(sort)s = 'messages' AND %(descending)s THEN sum(c.messages) END DESC NULLS LAST,
         CASE WHEN %(sort)s = 'name' AND %(descending)s THEN s.name END DESC, s.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: list_places
SELECT g.id AS group_id, t.name AS partition, t.id AS partition_id, cardinality(p.pending) AS pending,
       cardinality(p.leased) AS leased, p.lease_expires_at, p.available_at, p.acked_at,
       CASE WHEN l.is_known THEN p.lease_holder END AS lease_holder, CASE WHEN l.is_known THEN p.leased_at END AS leased_at
FROM queenspark.groups g JOIN queenspark.partitions t ON t.queue_id = g.queue_id
JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = t.id
CROSS JOIN LATERAL (
    -- A pop of a version without the holder column leaves that of an earlier lease.
    SELECT p.leased <> '{}' AND p.lease_expires_at > clock_timestamp() AND p.held_lease_id = p.lease_id AS is_known) l
WHERE g.id = ANY (%(group_ids)s) ORDER BY t.queue_id, t.name LIMIT %(limit)s OFFSET %(offset)s

-- name: list_leases
-- The same, with a live lease; those that end first.
SELECT p.group_id, t.name AS partition, t.id AS partition_id, cardinality(p.pending) AS pending,
       cardinality(p.leased) AS leased, p.lease_expires_at, p.available_at, p.acked_at,
       CASE WHEN p.held_lease_id = p.lease_id THEN p.lease_holder END AS lease_holder,
       CASE WHEN p.held_lease_id = p.lease_id THEN p.leased_at END AS leased_at
FROM queenspark.places p JOIN queenspark.partitions t ON t.id = p.partition_id
WHERE p.group_id = ANY (%(group_ids)s) AND p.available_at IS NOT NULL AND p.lease_id IS NOT NULL
  AND p.leased <> '{}' AND p.lease_expires_at > clock_timestamp()
ORDER BY p.lease_expires_at, t.name LIMIT %(limit)s OFFSET %(offset)s

-- name: delete_groups
DELETE FROM queenspark.groups g USING queenspark.queues q
WHERE q.id = g.queue_id AND g.name = %(name)s AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
  AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
RETURNING g.id

-- name: restart_groups
-- Delete the places of a group but keep its start position.
WITH restarted AS (
    UPDATE queenspark.groups g SET seen_txid = start_txid, seen_id = start_id, skip_until = NULL FROM queenspark.queues q
    WHERE q.id = g.queue_id AND g.name = %(name)s AND (%(queue)s::text IS NULL OR q.name = %(queue)s)
      AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
    RETURNING g.id
), forgotten AS (
    DELETE FROM queenspark.places p USING restarted r WHERE p.group_id = r.id
), dead_again AS (
    UPDATE queenspark.dead_letters d SET returned = false FROM restarted r WHERE d.group_id = r.id AND d.returned
)
SELECT id FROM restarted

-- name: set_subscription
-- The start position in partitions without a place.
UPDATE queenspark.groups g
SET start_txid = a.txid, start_id = a.id, skip_until = NULL,
    seen_txid = CASE WHEN (a.txid, a.id) < (g.seen_txid, g.seen_id) THEN a.txid ELSE g.seen_txid END,
    seen_id = CASE WHEN (a.txid, a.id) < (g.seen_txid, g.seen_id) THEN a.id ELSE g.seen_id END
FROM queenspark.groups x JOIN queenspark.queues q ON q.id = x.queue_id
CROSS JOIN LATERAL position_at(x.queue_id, %(time)s) a
WHERE x.id = g.id AND g.name = %(name)s AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
RETURNING g.id

-- name: seek_to
SELECT seek(%(group_id)s, %(partition_id)s, a.txid, a.id) FROM (
    SELECT (SELECT frontier()) AS txid, 0::bigint AS id WHERE %(to)s = 'end'
    UNION ALL SELECT 0, 0 WHERE %(to)s = 'beginning'
    UNION ALL SELECT p.txid, p.id FROM position_at(%(queue_id)s, %(time)s) p WHERE %(to)s = 'time'
) a

-- name: list_dead_letters
SELECT d.id, d.transaction_id, d.trace_id, d.partition_id, t.name AS partition, q.name AS queue, g.name AS group,
       d.error, d.attempts, d.payload, d.headers, d.encrypted, d.created_at, d.failed_at
FROM chosen_dead_letters(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s) d
JOIN queenspark.groups g ON g.id = d.group_id
JOIN queenspark.partitions t ON t.id = d.partition_id JOIN queenspark.queues q ON q.id = t.queue_id
WHERE (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
ORDER BY d.failed_at DESC, d.id DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: count_dead_letters
-- Number of matching dead letters, up to a limit.
SELECT count(*) FROM (
    SELECT 1 FROM chosen_dead_letters(
        %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s) d
    WHERE %(visible)s::text[] IS NULL OR EXISTS (
        SELECT 1 FROM queenspark.partitions t JOIN queenspark.queues q ON q.id = t.queue_id
        WHERE t.id = d.partition_id AND scoped_name(q.name) LIKE ANY (%(visible)s))
    LIMIT %(most)s) d

-- name: return_dead_letters
SELECT * FROM put_back(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s)

-- name: delete_dead_letters
DELETE FROM queenspark.dead_letters d USING chosen_dead_letters(
    %(queue)s, %(group)s, %(partition)s, %(partition_id)s, %(transaction_id)s, %(from)s, %(to)s) c
WHERE d.group_id = c.group_id AND d.id = c.id AND (%(visible)s::text[] IS NULL OR EXISTS (
    SELECT 1 FROM queenspark.partitions t JOIN queenspark.queues q ON q.id = t.queue_id
    WHERE t.id = d.partition_id AND scoped_name(q.name) LIKE ANY (%(visible)s)))
RETURNING d.id

-- name: browse_messages
-- A page of messages, newest first, each with the number of messages that were checked for the page; one row without
-- a message if none matches. A message's status is the worst over the queue's groups: dead_letter, processing,
-- pending, completed. With a status, only the newest `scanned` messages are checked: pending ones from the first
-- cursor on, and those of the partitions that have waited longest; messages in flight are found by lease, dead ones
-- by dead letter.
WITH places AS (
    -- Partitions of the queue with unacked messages that its groups have discovered.
    SELECT p.* FROM queenspark.groups g CROSS JOIN LATERAL (
        SELECT p.* FROM queenspark.places p WHERE p.group_id = g.id AND p.available_at IS NOT NULL
          -- A live lease ends in the future.
          AND p.available_at > CASE WHEN %(status)s::text = 'processing' THEN now() ELSE '-infinity'::timestamptz END
          AND (%(partition_id)s::bigint IS NULL OR p.partition_id = %(partition_id)s)
        ORDER BY p.available_at LIMIT %(scanned)s) p
    WHERE %(status)s::text IN ('pending', 'processing') AND (%(queue_id)s::integer IS NULL OR g.queue_id = %(queue_id)s)
    LIMIT %(scanned)s
), begin AS (
    -- Everything up to here is acked by all groups.
    SELECT min(b.position) AS position FROM (
        SELECT ARRAY[p.cursor_txid, p.cursor_id] AS position FROM places p
        UNION ALL
        SELECT ARRAY[g.seen_txid, g.seen_id] FROM queenspark.groups g WHERE g.queue_id = %(queue_id)s
    ) b
    WHERE %(status)s::text = 'pending' AND %(queue_id)s::integer IS NOT NULL
      AND (SELECT count(*) FROM places) < %(scanned)s
), found AS (
    (SELECT m.queue_id, m.partition_id, m.txid, m.id, m.transaction_id FROM queenspark.messages m
     WHERE (%(status)s::text IS NULL OR %(status)s IN ('pending', 'completed'))
       AND (m.txid, m.id) > (coalesce((SELECT b.position[1] FROM begin b), 0), coalesce((SELECT b.position[2] FROM begin b), 0))
       AND (%(queue_id)s::integer IS NULL OR m.queue_id = %(queue_id)s)
       AND (%(partition_id)s::bigint IS NULL OR m.partition_id = %(partition_id)s)
       AND (%(transaction_id)s::text IS NULL OR m.transaction_id = %(transaction_id)s)
       AND (%(from)s::timestamptz IS NULL OR m.created_at >= %(from)s)
       AND (%(to)s::timestamptz IS NULL OR m.created_at < %(to)s)
       AND (%(partition)s::text IS NULL OR m.partition_id = ANY (ARRAY(
           SELECT t.id FROM queenspark.partitions t WHERE t.name = %(partition)s)))
       AND (num_nonnulls(%(namespace)s::text, %(task)s::text, %(visible)s::text[]) = 0
            AND num_nonnulls(%(queue_id)s::integer, %(partition_id)s::bigint) > 0 OR m.queue_id = ANY (ARRAY(
           SELECT q.id FROM queenspark.queues q
           WHERE (%(namespace)s::text IS NULL OR q.namespace = %(namespace)s)
             AND (%(task)s::text IS NULL OR q.task = %(task)s)
             AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s)))))
     ORDER BY m.txid DESC, m.id DESC LIMIT %(scanned)s)
    UNION
    SELECT m.queue_id, m.partition_id, m.txid, m.id, m.transaction_id FROM (
        (SELECT m.* FROM places p CROSS JOIN LATERAL (
             SELECT m.* FROM queenspark.messages m
             WHERE m.partition_id = p.partition_id AND m.id = ANY (p.leased)
               AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id) AND (m.txid, m.id) <= (p.end_txid, p.end_id)
             ORDER BY m.txid DESC, m.id DESC LIMIT %(scanned)s) m
         WHERE %(status)s::text = 'processing' AND p.leased <> '{}' AND p.lease_expires_at > clock_timestamp()
         LIMIT %(scanned)s)
        UNION ALL
        (SELECT m.* FROM (SELECT p.* FROM places p ORDER BY p.available_at LIMIT 50) p CROSS JOIN LATERAL (
             SELECT m.* FROM queenspark.messages m
             WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id)
             ORDER BY m.txid DESC, m.id DESC LIMIT 100) m
         WHERE %(status)s::text = 'pending')
        UNION ALL
        (SELECT m.* FROM queenspark.groups g CROSS JOIN LATERAL (
             SELECT d.partition_id, d.transaction_id FROM queenspark.dead_letters d
             WHERE d.group_id = g.id AND (%(partition_id)s::bigint IS NULL OR d.partition_id = %(partition_id)s)
               AND (%(from)s::timestamptz IS NULL OR d.created_at >= %(from)s)
               AND (%(to)s::timestamptz IS NULL OR d.created_at < %(to)s)
             ORDER BY d.id DESC LIMIT %(scanned)s) d
         CROSS JOIN LATERAL (
             SELECT m.* FROM queenspark.messages m
             WHERE m.partition_id = d.partition_id AND m.transaction_id = d.transaction_id LIMIT 1) m
         WHERE %(status)s::text = 'dead_letter' AND (%(queue_id)s::integer IS NULL OR g.queue_id = %(queue_id)s)
         LIMIT %(scanned)s)
    ) m
    WHERE (%(partition_id)s::bigint IS NULL OR m.partition_id = %(partition_id)s)
      AND (%(transaction_id)s::text IS NULL OR m.transaction_id = %(transaction_id)s)
      AND (%(from)s::timestamptz IS NULL OR m.created_at >= %(from)s)
      AND (%(to)s::timestamptz IS NULL OR m.created_at < %(to)s)
), page AS (
    SELECT x.* FROM (
        SELECT m.*,
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
        FROM found m
        WHERE (%(partition)s::text IS NULL OR EXISTS (
                SELECT 1 FROM queenspark.partitions t WHERE t.id = m.partition_id AND t.name = %(partition)s))
          AND (num_nonnulls(%(namespace)s::text, %(task)s::text, %(visible)s::text[]) = 0 OR EXISTS (
                SELECT 1 FROM queenspark.queues q
                WHERE q.id = m.queue_id AND (%(namespace)s::text IS NULL OR q.namespace = %(namespace)s)
                  AND (%(task)s::text IS NULL OR q.task = %(task)s)
                  AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))))
    ) x
    WHERE %(status)s::text IS NULL OR x.status = %(status)s
    ORDER BY x.txid DESC, x.id DESC LIMIT %(limit)s OFFSET %(offset)s
)
SELECT c.checked, m.* FROM (SELECT count(*) AS checked FROM found) c LEFT JOIN (
    SELECT m.id, m.txid, m.transaction_id, m.trace_id, m.partition_id, t.name AS partition, q.name AS queue, q.namespace,
           q.task, m.payload, m.headers, m.encrypted, m.created_at, x.status
    FROM page x CROSS JOIN LATERAL (
        SELECT m.* FROM queenspark.messages m
        WHERE m.partition_id = x.partition_id AND m.txid = x.txid AND m.id = x.id LIMIT 1) m
    CROSS JOIN LATERAL (SELECT t.name, t.queue_id FROM queenspark.partitions t WHERE t.id = m.partition_id LIMIT 1) t
    JOIN queenspark.queues q ON q.id = t.queue_id
) m ON true
ORDER BY m.txid DESC, m.id DESC

-- name: log_page
-- The next final messages of a queue in log order: at most `limit`, of about `bytes` in total, and at least one.
SELECT x.txid, x.id, x.transaction_id, x.trace_id, t.name AS partition, x.payload, x.headers, x.encrypted, x.created_at
FROM (
    SELECT m.*, sum(octet_length(m.payload)) OVER (ORDER BY m.txid, m.id) - octet_length(m.payload) AS bytes_before
    FROM (
        SELECT m.* FROM queenspark.messages m
        WHERE m.queue_id = %(queue_id)s AND (m.txid, m.id) > (%(txid)s, %(id)s) AND m.txid < (SELECT horizon())
        ORDER BY m.txid, m.id LIMIT %(limit)s
    ) m
) x JOIN queenspark.partitions t ON t.id = x.partition_id
WHERE x.bytes_before < %(bytes)s ORDER BY x.txid, x.id

-- name: log_last_final
SELECT m.txid, m.id FROM queenspark.messages m WHERE m.queue_id = %(queue_id)s AND m.txid < (SELECT horizon())
ORDER BY m.txid DESC, m.id DESC LIMIT 1

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
  AND (%(visible)s::text[] IS NULL OR scoped_name(q.name) LIKE ANY (%(visible)s))
ORDER BY r.created_at, r.id LIMIT %(limit)s OFFSET %(offset)s

-- name: trace_names
SELECT n.name, count(*) AS traces, max(r.created_at) AS last_at
FROM queenspark.traces r CROSS JOIN LATERAL unnest(r.names) AS n(name)
WHERE %(visible)s::text[] IS NULL OR EXISTS (
    SELECT 1 FROM queenspark.partitions t JOIN queenspark.queues q ON q.id = t.queue_id
    WHERE t.id = r.partition_id AND scoped_name(q.name) LIKE ANY (%(visible)s))
GROUP BY n.name ORDER BY max(r.created_at) DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: system
SELECT generation, push_maintenance, pop_maintenance FROM queenspark.system

-- name: set_push_maintenance
UPDATE queenspark.system SET push_maintenance = %(enabled)s

-- name: set_pop_maintenance
UPDATE queenspark.system SET pop_maintenance = %(enabled)s

-- name: stage
-- Stage pushes, only while push maintenance is on (the lock delays its end until this commits). Ids come from the
-- sequence one by one, so that they are in order over all brokers.
INSERT INTO queenspark.staged (id, queue, partition, encrypted, transaction_id, trace_id, payload, headers)
SELECT nextval('queenspark.message_blocks') * 1000, u.queue, u.partition, u.encrypted, u.transaction_id, u.trace_id,
       u.payload, u.headers
FROM (
    SELECT x.* FROM (SELECT 1 FROM queenspark.system WHERE push_maintenance FOR SHARE) on_now, unnest(
        %(queues)s::text[], %(partitions)s::text[], %(encrypted)s::boolean[],
        %(transaction_ids)s::text[], %(trace_ids)s::text[], %(payloads)s::text[], %(headers)s::text[]
    ) WITH ORDINALITY AS x(queue, partition, encrypted, transaction_id, trace_id, payload, headers, n) ORDER BY x.n
) u
RETURNING id

-- name: next_staged
SELECT seq, id, queue, partition, encrypted, transaction_id, trace_id, payload, headers
FROM queenspark.staged ORDER BY id LIMIT %(limit)s

-- name: unstage
DELETE FROM queenspark.staged WHERE seq = ANY (%(seqs)s)

-- name: count_staged
SELECT count(*) FROM queenspark.staged

-- name: lock_system
SELECT push_maintenance FROM queenspark.system FOR UPDATE

-- name: look
INSERT INTO queenspark.looks (at, txid, horizon, horizon_at)
SELECT statement_timestamp(), current_txid(), horizon(), clock_timestamp()
WHERE NOT EXISTS (
    SELECT 1 FROM queenspark.looks WHERE at > statement_timestamp() - make_interval(secs => %(every)s * 0.9))
ON CONFLICT DO NOTHING

-- name: safe_time
-- Every message created before this time is visible and final. A reader that stopped at a position may only claim the
-- time of that position.
SELECT at FROM queenspark.looks
WHERE txid < (SELECT horizon()) AND (%(txid)s::bigint IS NULL OR txid <= %(txid)s)
ORDER BY at DESC LIMIT 1

-- name: heads
-- The last message of each queue.
SELECT q.name, m.txid, m.id FROM queenspark.queues q CROSS JOIN LATERAL (
    SELECT txid, id FROM queenspark.messages WHERE queue_id = q.id ORDER BY txid DESC, id DESC LIMIT 1) m
WHERE q.name = ANY (%(names)s)

-- name: log_queue_ids
SELECT name, id FROM queenspark.queues WHERE name = ANY (%(names)s)

-- name: log_horizon
SELECT horizon()

-- name: log_frontier
SELECT frontier()

-- name: log_position_at
SELECT txid, id FROM position_at(%(queue_id)s, %(time)s)

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

-- name: log_average_bytes
-- The mean size of the next messages of some queues: payload, headers and fixed columns.
SELECT avg(octet_length(m.payload) + coalesce(octet_length(m.headers), 0) + 100)::float8
FROM unnest(%(queue_ids)s::integer[]) AS q(id) CROSS JOIN LATERAL (
    SELECT m.payload, m.headers FROM queenspark.messages m
    WHERE m.queue_id = q.id AND (m.txid, m.id) > (%(txid)s, %(id)s)
    ORDER BY m.txid, m.id LIMIT %(sample)s) m

-- name: log_branch
-- One queue's positions in order, with additional columns. Several branches are merged without sorting.
(SELECT m.txid, m.id{columns} FROM queenspark.messages m
 WHERE m.queue_id = %(queue_id)s AND (m.txid, m.id) > (%(after_txid)s, %(after_id)s)
   AND (m.txid, m.id) <= (%(upto_txid)s, %(upto_id)s)
 ORDER BY m.txid, m.id)

-- name: log_nth
-- The position this many messages after the start of the merged branches.
SELECT b.txid, b.id FROM ({branches}) b ORDER BY b.txid, b.id LIMIT 1 OFFSET %(skip)s

-- name: log_scan
-- The first messages of the merged branches: each column is one value of packed numbers.
SELECT string_agg(int8send(b.txid), ''::bytea), string_agg(int8send(b.id), ''::bytea),
       string_agg(int4send(b.queue_id), ''::bytea), string_agg(int8send(b.partition_id), ''::bytea),
       string_agg(timestamptz_send(b.created_at), ''::bytea)
FROM (SELECT b.* FROM ({branches}) b ORDER BY b.txid, b.id LIMIT %(limit)s) b

-- name: log_partitions
SELECT id, name FROM queenspark.partitions WHERE id = ANY (%(ids)s)

-- name: log_read
-- Messages with additional columns between two positions, for COPY. The range of transaction ids is redundant, but
-- without it the planner overestimates the range.
SELECT m.txid, m.id, m.queue_id, p.name AS partition, m.created_at{columns}
FROM queenspark.messages m JOIN queenspark.partitions p ON p.id = m.partition_id
WHERE m.queue_id = ANY (%(queue_ids)s::integer[]) AND m.txid BETWEEN %(after_txid)s AND %(upto_txid)s
  AND (m.txid, m.id) > (%(after_txid)s, %(after_id)s) AND (m.txid, m.id) <= (%(upto_txid)s, %(upto_id)s)

-- name: horizon_holder
-- The oldest transaction in flight: it holds horizon and safe time back.
SELECT pid, coalesce(application_name, '') AS application, coalesce(state, '') AS state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds
FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
ORDER BY age(backend_xid) DESC LIMIT 1

-- name: thin_looks
-- After an hour one sample per minute is enough.
DELETE FROM queenspark.looks l WHERE l.at IN (
    SELECT x.at FROM (
        SELECT at, row_number() OVER (PARTITION BY date_trunc('minute', at) ORDER BY at) AS n
        FROM queenspark.looks WHERE at < clock_timestamp() - interval '1 hour'
    ) x WHERE x.n > 1 LIMIT %(limit)s)

-- name: forget_looks
-- Samples from before the first message of the log are useless.
DELETE FROM queenspark.looks l
WHERE l.at < clock_timestamp() - interval '1 hour' AND l.txid < (
    SELECT coalesce(min(first.txid), horizon()) FROM queenspark.queues q CROSS JOIN LATERAL (
        SELECT m.txid FROM queenspark.messages m WHERE m.queue_id = q.id ORDER BY m.txid, m.id LIMIT 1) first)

-- name: places_need_vacuum
SELECT n_dead_tup > 1000 + n_live_tup / 5 FROM pg_stat_all_tables WHERE relid = 'queenspark.places'::regclass

-- name: vacuum_places
-- Without truncation it takes no transaction id and no strong lock; it is a no-op while another vacuum runs.
VACUUM (SKIP_LOCKED, TRUNCATE false, INDEX_CLEANUP on) queenspark.places

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
-- Entries expire an hour after the deletion, when no push that began before it can still be in flight.
WITH removals AS (
    DELETE FROM queenspark.removals r WHERE NOT EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = r.queue_id))
DELETE FROM queenspark.deleted_queues d
WHERE d.deleted_at < clock_timestamp() - interval '1 hour'
  AND NOT EXISTS (SELECT 1 FROM queenspark.messages m WHERE m.queue_id = d.queue_id)

-- name: queues_with_retention
SELECT id, name, retention_enabled, retention_seconds, completed_retention_seconds, ttl_seconds
FROM queenspark.queues
WHERE (retention_enabled AND (retention_seconds > 0 OR completed_retention_seconds > 0)) OR ttl_seconds IS NOT NULL

-- name: sweep_old
-- The oldest messages of a queue, up to the first that is younger than the age; those that a stream needs are kept a
-- while longer. The last window of each key is kept: a restarted pipeline continues the key from it. Returns the
-- number of deleted messages, and the positions of those that a stream needed.
WITH candidates AS (
    SELECT m.ctid, m.created_at FROM queenspark.messages m
    WHERE m.queue_id = %(queue_id)s AND (NOT %(windows)s OR EXISTS (
        SELECT 1 FROM queenspark.messages l
        WHERE l.partition_id = m.partition_id AND (l.txid, l.id) > (m.txid, m.id)))
    ORDER BY m.txid, m.id LIMIT %(limit)s
), deleted AS (
    DELETE FROM queenspark.messages m USING candidates c
    WHERE m.ctid = c.ctid AND c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s)
      AND ((m.txid, m.id) < (%(needs_txid)s, %(needs_id)s)
           OR c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s + %(hold_seconds)s))
    RETURNING m.txid, m.id
)
SELECT count(*), array_agg(d.txid) FILTER (WHERE n.needed), array_agg(d.id) FILTER (WHERE n.needed)
FROM deleted d CROSS JOIN LATERAL (SELECT (d.txid, d.id) >= (%(needs_txid)s, %(needs_id)s) AS needed) n

-- name: note_unread
-- Messages removed before jobs had read them.
INSERT INTO queenspark.stream_removed AS s (stream_id, records)
SELECT x.id, count(*) FROM stream_reads() r
JOIN queenspark.streams x ON x.id = r.stream_id AND x.version = r.version AND x.output = 'rows'
JOIN unnest(%(txids)s::bigint[], %(ids)s::bigint[]) AS g(txid, id) ON ARRAY[g.txid, g.id] > r.read
WHERE r.queue_id = %(queue_id)s GROUP BY x.id
ON CONFLICT (stream_id) DO UPDATE SET records = s.records + excluded.records, at = clock_timestamp()

-- name: sweep_completed
-- Messages after a position that every group of the queue has acked and that are old enough, except the last window
-- of a key. Returns the number of deleted messages, the positions of those that a stream needed, and the last
-- position scanned.
WITH candidates AS MATERIALIZED (
    SELECT m.ctid, m.txid, m.id, m.partition_id, m.created_at FROM queenspark.messages m
    WHERE m.queue_id = %(queue_id)s AND (m.txid, m.id) > (%(txid)s, %(id)s)
    ORDER BY m.txid, m.id LIMIT %(limit)s
), deleted AS (
    DELETE FROM queenspark.messages m USING candidates c
    WHERE m.ctid = c.ctid AND c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s)
      AND ((m.txid, m.id) < (%(needs_txid)s, %(needs_id)s)
           OR c.created_at < clock_timestamp() - make_interval(secs => %(seconds)s + %(hold_seconds)s))
      AND EXISTS (SELECT 1 FROM queenspark.groups g WHERE g.queue_id = %(queue_id)s)
      AND (NOT %(windows)s OR EXISTS (
          SELECT 1 FROM queenspark.messages l
          WHERE l.partition_id = m.partition_id AND (l.txid, l.id) > (m.txid, m.id)))
      AND NOT EXISTS (
          SELECT 1 FROM queenspark.groups g
          LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = c.partition_id
          WHERE g.queue_id = %(queue_id)s
            AND (c.id = ANY (p.pending) OR (c.txid, c.id) > (
                coalesce(p.end_txid, g.start_txid), coalesce(p.end_id, g.start_id))))
    RETURNING m.txid, m.id
)
SELECT d.*, c.txid, c.id FROM candidates c CROSS JOIN (
    SELECT count(*), array_agg(d.txid) FILTER (WHERE n.needed), array_agg(d.id) FILTER (WHERE n.needed)
    FROM deleted d CROSS JOIN LATERAL (SELECT (d.txid, d.id) >= (%(needs_txid)s, %(needs_id)s) AS needed) n
) d ORDER BY c.txid DESC, c.id DESC LIMIT 1

-- name: notify
SELECT pg_notify('queenspark', %(message)s)

-- name: ping
SELECT current_setting('server_version')

-- name: share_epoch
-- The leader's epoch; it cannot change before this transaction ends. The leader can still renew its lease.
SELECT epoch FROM queenspark.pipeline FOR KEY SHARE

-- name: progress
-- As written; see progress.py.
SELECT buckets, state FROM queenspark.progress WHERE bucket = %(bucket)s

-- name: versions_as_of
SELECT DISTINCT stream_id, version FROM queenspark.definitions WHERE seq <= %(seq)s

-- name: counted_from
-- Where count windows continue: after the last window of their key, even if retention has removed earlier ones: from
-- its first record if it is complete, and otherwise from the first one shared with the next window. The windows of a
-- key may be in several partitions.
SELECT DISTINCT ON (c.stream, c.version, k.key)
       c.stream, c.version, k.key, coalesce(r.next[1], w.last[1]), coalesce(r.next[2], w.last[2] + 1)
FROM unnest(%(streams)s::integer[], %(versions)s::integer[], %(partitioned)s::boolean[], %(sizes)s::bigint[],
    %(steps)s::bigint[]) AS c(stream, version, partitioned, size, step)
JOIN queenspark.streams s ON s.id = c.stream
JOIN queenspark.partitions p ON p.queue_id = s.queue_id
CROSS JOIN LATERAL (
    SELECT m.payload FROM queenspark.messages m
    WHERE m.partition_id = p.id ORDER BY m.txid DESC, m.id DESC LIMIT 1) m
CROSS JOIN LATERAL (SELECT window_key(m.payload) AS key) k
CROSS JOIN LATERAL (
    SELECT max(ARRAY[x.last_txid, x.last_id]) AS last FROM window_sources(m.payload) x) w
CROSS JOIN LATERAL (
    SELECT min(ARRAY[x.txid, x.id])
               FILTER (WHERE x.n <= CASE WHEN x.count >= c.size THEN c.size ELSE c.size - c.step END) AS next
    FROM (
        SELECT b.txid, b.id, row_number() OVER (ORDER BY b.txid DESC, b.id DESC) AS n, count(*) OVER () AS count
        FROM window_sources(m.payload) x CROSS JOIN LATERAL messages_between(
            x.queue_id, CASE WHEN c.partitioned THEN k.key END, x.first_txid, x.first_id, x.last_txid, x.last_id,
            NULL, NULL, NULL) b
    ) x) r
WHERE window_version(m.payload) = c.version
ORDER BY c.stream, c.version, k.key, w.last DESC

-- name: hold_window_queues
-- Which of these queues exist; they cannot be deleted before this transaction ends.
SELECT id, name FROM queenspark.queues WHERE id = ANY (%(ids)s) ORDER BY id FOR KEY SHARE

-- name: begin_windows
-- The time is taken after the transaction id, as with every push, and returned as text for COPY.
SELECT x.txid, clock_timestamp()::text FROM (SELECT current_txid() AS txid OFFSET 0) x

-- name: push_rows
-- Write a part of a batch and note it, all in one statement: an open transaction holds the horizon back for everyone,
-- so it must not wait for its client. Writes nothing if the epoch or the bucket's progress has changed; rows of
-- deleted queues are dropped. The time is taken after the transaction id.
WITH led AS MATERIALIZED (
    SELECT epoch FROM queenspark.pipeline FOR KEY SHARE
), held AS MATERIALIZED (
    SELECT id, name FROM queenspark.queues WHERE id = ANY (%(queues)s) ORDER BY id FOR KEY SHARE
), noted AS (
    UPDATE {progress} p SET epoch = %(epoch)s, state = %(after)s::jsonb, updated_at = clock_timestamp()
    FROM led l
    WHERE l.epoch = %(epoch)s AND p.buckets = %(buckets)s AND p.state = %(before)s::jsonb AND {key}
    RETURNING p.bucket
), added AS (
    INSERT INTO queenspark.messages
        (txid, id, partition_id, created_at, queue_id, transaction_id, payload, headers)
    SELECT t.txid, i.id, i.partition_id, t.now, i.queue_id, i.transaction_id, i.payload, i.headers
    FROM noted, (
        SELECT x.txid, clock_timestamp() AS now FROM (SELECT current_txid() AS txid OFFSET 0) x OFFSET 0
    ) t, (
        SELECT * FROM unnest(
            string_to_array(%(ids)s, ' ')::bigint[], string_to_array(%(partition_ids)s, ' ')::bigint[],
            string_to_array(%(queue_ids)s, ' ')::integer[], string_to_array(%(transaction_ids)s, E'\x01'),
            string_to_array(%(payloads)s, E'\x01'), string_to_array(%(headers)s, E'\x01', '')
        ) WITH ORDINALITY AS u(id, partition_id, queue_id, transaction_id, payload, headers, n)
        WHERE u.queue_id IN (SELECT h.id FROM held h)
        ORDER BY u.n
    ) i
    RETURNING 1
)
SELECT (SELECT l.epoch FROM led l), EXISTS (SELECT FROM noted), (SELECT count(*) FROM added),
       (SELECT array_agg(h.name) FROM held h)

-- name: copy_windows
COPY queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload, window_end)
FROM STDIN WITH (FORMAT csv)

-- name: copy_rows
COPY queenspark.messages (txid, id, partition_id, created_at, queue_id, transaction_id, payload, headers)
FROM STDIN WITH (FORMAT csv)

-- name: same_rows
-- Rows with an id that the log already has.
SELECT u.n::integer
FROM unnest(%(partition_ids)s::bigint[], %(transaction_ids)s::text[]) WITH ORDINALITY u(partition_id, transaction_id, n)
JOIN queenspark.messages m ON m.partition_id = u.partition_id AND m.transaction_id = u.transaction_id

-- name: rows_since
-- Those of some ids that rows of a queue have after a transaction, in any partition.
SELECT m.transaction_id FROM queenspark.messages m
WHERE m.queue_id = %(queue_id)s AND m.txid > %(after)s AND m.transaction_id = ANY (%(transaction_ids)s::text[])

-- name: same_windows
-- Windows with a transaction id that the log already has.
SELECT u.n::integer, m.payload
FROM unnest(%(partition_ids)s::bigint[], %(transaction_ids)s::text[]) WITH ORDINALITY u(partition_id, transaction_id, n)
JOIN queenspark.messages m ON m.partition_id = u.partition_id AND m.transaction_id = u.transaction_id

-- name: last_revisions
SELECT u.n::integer, max(substring(m.transaction_id FROM length(u.window_id) + 3)::bigint)
FROM unnest(%(partition_ids)s::bigint[], %(window_ids)s::text[]) WITH ORDINALITY u(partition_id, window_id, n)
JOIN queenspark.messages m ON m.partition_id = u.partition_id
    AND m.transaction_id >= (u.window_id || ':r') COLLATE "C" AND m.transaction_id < (u.window_id || ':s') COLLATE "C"
GROUP BY u.n

-- name: add_late
INSERT INTO queenspark.stream_late (stream_id, version, key, txid, id, time_us, closed_us, dropped)
SELECT * FROM unnest(%(stream)s::integer[], %(version)s::integer[], %(key)s::text[], %(txid)s::bigint[],
    %(id)s::bigint[], %(time_us)s::bigint[], %(closed_us)s::bigint[], %(dropped)s::boolean[])

-- name: add_dropped
-- Dropped late records of streams whose windows may span them (kinds: see windows/membership.py).
INSERT INTO queenspark.stream_dropped (stream_id, version, key, txid, id)
SELECT u.stream, u.version, u.key, u.txid, u.id
FROM unnest(%(stream)s::integer[], %(version)s::integer[], %(key)s::text[], %(txid)s::bigint[], %(id)s::bigint[],
    %(dropped)s::boolean[]) AS u(stream, version, key, txid, id, dropped)
WHERE u.dropped AND EXISTS (
    SELECT 1 FROM queenspark.definitions d
    WHERE d.stream_id = u.stream AND d.version = u.version
      AND coalesce(d.body, d.computing) #>> '{spec,kind}' = ANY (%(kinds)s))
ON CONFLICT DO NOTHING

-- name: add_dead
INSERT INTO queenspark.stream_dead (stream_id, version, key, txid, id, reason, start_us, end_us)
SELECT * FROM unnest(%(stream)s::integer[], %(version)s::integer[], %(key)s::text[], %(txid)s::bigint[],
    %(id)s::bigint[], %(reason)s::text[], %(start_us)s::bigint[], %(end_us)s::bigint[])

-- name: add_failures
INSERT INTO queenspark.stream_failures (stream_id, version, bucket, run, batch, txid, id, tick, error)
SELECT u.stream, u.version, %(bucket)s, %(run)s, %(batch)s, u.txid, u.id, u.tick, u.error
FROM unnest(%(stream)s::integer[], %(version)s::integer[], %(txid)s::bigint[], %(id)s::bigint[], %(tick)s::bigint[],
    %(error)s::text[]) AS u(stream, version, txid, id, tick, error)
WHERE EXISTS (SELECT 1 FROM queenspark.streams x WHERE x.id = u.stream)
ON CONFLICT (stream_id, version, bucket) DO UPDATE SET run = excluded.run, batch = excluded.batch,
    txid = excluded.txid, id = excluded.id, tick = excluded.tick, error = excluded.error, at = clock_timestamp()

-- name: failed_in
SELECT stream_id, version, error FROM queenspark.stream_failures
WHERE bucket = %(bucket)s AND run = %(run)s AND batch = %(batch)s

-- name: add_stats
INSERT INTO queenspark.stream_stats AS s
    (stream_id, version, bucket, watermark_us, open_windows, open_txid, open_id, records, windows, late, dropped, dead)
SELECT u.stream, u.version, %(bucket)s, u.watermark_us, u.open_windows, u.open_txid, u.open_id, u.records, u.windows,
       u.late, u.dropped, u.dead
FROM unnest(%(stream)s::integer[], %(version)s::integer[], %(watermark_us)s::bigint[], %(open_windows)s::bigint[],
    %(open_txid)s::bigint[], %(open_id)s::bigint[], %(records)s::bigint[], %(windows)s::bigint[], %(late)s::bigint[],
    %(dropped)s::bigint[], %(dead)s::bigint[])
    AS u(stream, version, watermark_us, open_windows, open_txid, open_id, records, windows, late, dropped, dead)
WHERE EXISTS (SELECT 1 FROM queenspark.streams x WHERE x.id = u.stream)
ON CONFLICT (stream_id, version, bucket) DO UPDATE SET
    watermark_us = excluded.watermark_us, open_windows = excluded.open_windows, open_txid = excluded.open_txid,
    open_id = excluded.open_id, records = s.records + excluded.records, windows = s.windows + excluded.windows,
    late = s.late + excluded.late, dropped = s.dropped + excluded.dropped, dead = s.dead + excluded.dead,
    updated_at = clock_timestamp()

-- name: set_progress
-- Rows of a pipeline with another number of buckets are deleted.
WITH others AS (DELETE FROM queenspark.progress WHERE buckets <> %(buckets)s)
INSERT INTO queenspark.progress (bucket, buckets, epoch, batch, state)
VALUES (%(bucket)s, %(buckets)s, %(epoch)s, %(batch)s, %(state)s::jsonb)
ON CONFLICT (bucket) DO UPDATE SET buckets = excluded.buckets, epoch = excluded.epoch, batch = excluded.batch,
    state = excluded.state, updated_at = clock_timestamp()

-- name: job_progress
-- Of a job with its own query. No other process owns its buckets, so there are no writers while this one holds the row.
SELECT buckets, state FROM queenspark.job_progress
WHERE stream_id = %(stream_id)s AND version = %(version)s AND bucket = %(bucket)s FOR UPDATE

-- name: set_job_progress
WITH others AS (
    DELETE FROM queenspark.job_progress
    WHERE stream_id = %(stream_id)s AND version = %(version)s AND buckets <> %(buckets)s)
INSERT INTO queenspark.job_progress (stream_id, version, bucket, buckets, epoch, batch, state)
VALUES (%(stream_id)s, %(version)s, %(bucket)s, %(buckets)s, %(epoch)s, %(batch)s, %(state)s::jsonb)
ON CONFLICT (stream_id, version, bucket) DO UPDATE SET buckets = excluded.buckets, epoch = excluded.epoch,
    batch = excluded.batch, state = excluded.state, updated_at = clock_timestamp()

-- name: job_news
-- The state before a batch of a job's query.
SELECT (SELECT coalesce(max(d.seq), 0) FROM queenspark.definitions d
        WHERE d.stream_id = %(stream_id)s AND d.version = %(version)s),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       (SELECT min(p.next_close) FROM queenspark.job_progress p
        WHERE p.stream_id = %(stream_id)s AND p.version = %(version)s AND p.run = %(run)s),
       EXISTS (SELECT 1 FROM queenspark.stream_stats a
        WHERE a.stream_id = %(stream_id)s AND a.version = %(version)s AND a.late > 0)

-- name: forget_job_stats
-- A restarted run counts again.
DELETE FROM queenspark.stream_stats
WHERE stream_id = %(stream_id)s AND version = %(version)s AND bucket = %(bucket)s

-- name: set_job_run
INSERT INTO queenspark.job_runs (stream_id, version, report, finished_at)
SELECT %(stream_id)s, %(version)s, %(report)s::jsonb, CASE WHEN %(finished)s THEN clock_timestamp() END
WHERE EXISTS (SELECT 1 FROM queenspark.streams s WHERE s.id = %(stream_id)s)
ON CONFLICT (stream_id, version) DO UPDATE SET report = excluded.report,
    finished_at = coalesce(queenspark.job_runs.finished_at, excluded.finished_at), updated_at = clock_timestamp()
RETURNING finished_at

-- name: job_start
SELECT r.start FROM queenspark.job_runs r
WHERE r.stream_id = %(stream_id)s AND r.version = %(version)s AND r.start IS NOT NULL

-- name: keep_job_start
-- The first one stays.
INSERT INTO queenspark.job_runs (stream_id, version, start)
SELECT %(stream_id)s, %(version)s, %(start)s::json
WHERE EXISTS (SELECT 1 FROM queenspark.streams s WHERE s.id = %(stream_id)s)
ON CONFLICT (stream_id, version) DO UPDATE SET start = coalesce(queenspark.job_runs.start, excluded.start)
RETURNING start

-- name: job_runs
-- The read progress of the newest version of each job, and when it finished.
SELECT s.id, r.report, r.finished_at FROM queenspark.streams s
JOIN queenspark.job_runs r ON r.stream_id = s.id AND r.version = s.version WHERE s.id = ANY (%(ids)s)

-- name: rows_at_end
-- The number of rows pushed by a finished job.
SELECT coalesce(sum(a.windows), 0)::bigint FROM queenspark.job_runs r
JOIN queenspark.streams s ON s.id = r.stream_id AND s.version = r.version
LEFT JOIN queenspark.stream_stats a ON a.stream_id = r.stream_id AND a.version = r.version
WHERE r.stream_id = %(id)s AND r.finished_at IS NOT NULL GROUP BY r.stream_id

-- name: finished_jobs
SELECT r.stream_id, r.version FROM queenspark.job_runs r WHERE r.finished_at IS NOT NULL

-- name: ended_jobs
-- Which of some versions of jobs are gone: dropped, or replaced by the next version. Those that were never here stay.
SELECT u.stream_id, u.version FROM unnest(%(stream_ids)s::integer[], %(versions)s::integer[]) AS u(stream_id, version)
WHERE EXISTS (SELECT 1 FROM queenspark.definitions d WHERE d.stream_id = u.stream_id AND d.version = u.version)
  AND NOT EXISTS (SELECT 1 FROM queenspark.streams s WHERE s.id = u.stream_id AND s.version = u.version)

-- name: job_files
-- The files of a job from a number on.
SELECT f.number, f.path, f.bytes, f.modified_us FROM queenspark.job_files f
WHERE f.stream_id = %(stream_id)s AND f.version = %(version)s AND f.number >= %(from)s ORDER BY f.number

-- name: add_job_files
-- Numbers continue the existing ones; an existing path keeps its number. Nothing is added unless the epoch is the
-- leader's, which cannot change before the end of this statement.
WITH led AS (SELECT p.epoch FROM queenspark.pipeline p WHERE p.epoch = %(epoch)s FOR KEY SHARE), added AS (
    INSERT INTO queenspark.job_files (stream_id, version, number, path, bytes, modified_us)
    SELECT %(stream_id)s, %(version)s, l.next + row_number() OVER (ORDER BY u.n) - 1, u.path, u.bytes, u.modified_us
    FROM led CROSS JOIN unnest(%(paths)s::text[], %(bytes)s::bigint[], %(modified_us)s::bigint[]) WITH ORDINALITY
        AS u(path, bytes, modified_us, n)
    CROSS JOIN (
        SELECT coalesce(max(f.number) + 1, 0) AS next FROM queenspark.job_files f
        WHERE f.stream_id = %(stream_id)s AND f.version = %(version)s) l
    WHERE NOT EXISTS (
        SELECT 1 FROM queenspark.job_files f
        WHERE f.stream_id = %(stream_id)s AND f.version = %(version)s AND f.path = u.path))
SELECT EXISTS (SELECT 1 FROM led)

-- name: latest_seq
SELECT coalesce(max(seq), 0) FROM queenspark.definitions

-- name: definitions_as_of
SELECT DISTINCT ON (d.stream_id, d.version) d.seq, d.stream_id, d.version, coalesce(d.body, d.computing), d.created_at
FROM queenspark.definitions d WHERE %(seq)s::bigint IS NULL OR d.seq <= %(seq)s
ORDER BY d.stream_id, d.version, d.seq DESC

-- name: definition
-- The newest row of a version, whether or not its stream still exists.
SELECT d.seq, d.stream_id, d.version, coalesce(d.body, d.computing), d.created_at FROM queenspark.definitions d
WHERE d.stream_id = %(stream_id)s AND d.version = %(version)s AND coalesce(d.body, d.computing) IS NOT NULL
ORDER BY d.seq DESC LIMIT 1

-- name: stream_definitions
-- The current versions of a stream.
SELECT DISTINCT ON (d.version) d.seq, d.stream_id, d.version, coalesce(d.body, d.computing), d.created_at
FROM queenspark.definitions d WHERE d.stream_id = %(stream_id)s
ORDER BY d.version, d.seq DESC

-- name: lock_definitions
-- Serialise writers of definitions, so that seq order is commit order.
LOCK TABLE queenspark.definitions IN SHARE ROW EXCLUSIVE MODE

-- name: add_definition
INSERT INTO queenspark.definitions (stream_id, version, body, computing)
VALUES (%(stream_id)s, %(version)s, %(body)s::jsonb, %(computing)s::jsonb)
RETURNING seq

-- name: end_definitions
-- Delete a stream: each of its versions gets a last row without a body.
INSERT INTO queenspark.definitions (stream_id, version, body)
SELECT DISTINCT d.stream_id, d.version, NULL::jsonb FROM queenspark.definitions d WHERE d.stream_id = %(stream_id)s

-- name: now_us
-- The time, and the frontier: everything that was read is before it. Not after this very transaction, if it writes:
-- rows that it inserts come after the jobs that it creates.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       least(frontier(), (SELECT generation::bigint << 48 FROM queenspark.system)
                         | pg_current_xact_id_if_assigned()::text::bigint)

-- name: position_at
SELECT a.txid, a.id
FROM position_at(%(queue_id)s, timestamptz 'epoch' + %(time_us)s * interval '1 microsecond') a

-- name: find_stream
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.partitioned, s.lease_timeout_ms, s.version,
       s.created_at, s.updated_at, s.window_retention_ms
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
WHERE s.output = 'windows' AND (%(name)s::text IS NULL OR s.name = %(name)s)
  AND (%(namespace)s::text IS NULL OR s.namespace = %(namespace)s)
ORDER BY s.namespace, s.name

-- name: add_window_queue
-- No row if the queue exists.
INSERT INTO queenspark.queues (name, lease_seconds, retention_enabled, retention_seconds)
VALUES (%(name)s, %(lease_seconds)s, %(retention_enabled)s, %(retention_seconds)s)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: add_stream
INSERT INTO queenspark.streams (namespace, name, queue_id, partitioned, lease_timeout_ms, window_retention_ms, version)
VALUES (%(namespace)s, %(name)s, %(queue_id)s, %(partitioned)s, %(lease_timeout_ms)s, %(window_retention_ms)s, 1)
RETURNING id

-- name: change_stream
UPDATE queenspark.streams SET partitioned = %(partitioned)s, lease_timeout_ms = %(lease_timeout_ms)s,
    window_retention_ms = %(window_retention_ms)s, version = %(version)s, updated_at = clock_timestamp()
WHERE id = %(id)s

-- name: change_window_queue
UPDATE queenspark.queues SET lease_seconds = %(lease_seconds)s, retention_enabled = %(retention_enabled)s,
    retention_seconds = %(retention_seconds)s
WHERE id = %(queue_id)s

-- name: forget_stream
WITH stats AS (DELETE FROM queenspark.stream_stats WHERE stream_id = %(id)s),
     rates AS (DELETE FROM queenspark.stream_rates WHERE stream_id = %(id)s),
     late AS (DELETE FROM queenspark.stream_late WHERE stream_id = %(id)s),
     dropped AS (DELETE FROM queenspark.stream_dropped WHERE stream_id = %(id)s),
     dead AS (DELETE FROM queenspark.stream_dead WHERE stream_id = %(id)s),
     failures AS (DELETE FROM queenspark.stream_failures WHERE stream_id = %(id)s),
     removed AS (DELETE FROM queenspark.stream_removed WHERE stream_id = %(id)s),
     progress AS (DELETE FROM queenspark.job_progress WHERE stream_id = %(id)s),
     runs AS (DELETE FROM queenspark.job_runs WHERE stream_id = %(id)s),
     said AS (DELETE FROM queenspark.pipeline_stats WHERE starts_with(key, 'job-' || %(id)s::text || '-')),
     files AS (DELETE FROM queenspark.job_files WHERE stream_id = %(id)s)
DELETE FROM queenspark.stream_floors WHERE stream_id = %(id)s

-- name: find_job
-- The jobs of a name (or of all names), with the newest definition of each; temporary ones only on request.
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.version, s.created_at, s.updated_at, s.expires_at,
       d.computing AS body
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
CROSS JOIN LATERAL (
    SELECT x.computing FROM queenspark.definitions x
    WHERE x.stream_id = s.id AND x.version = s.version ORDER BY x.seq DESC LIMIT 1) d
WHERE s.output = 'rows' AND (%(temporary)s OR s.expires_at IS NULL)
  AND (%(namespace)s::text IS NULL OR s.namespace = %(namespace)s) AND (%(name)s::text IS NULL OR s.name = %(name)s)
ORDER BY s.namespace, s.name

-- name: list_jobs
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.version, s.created_at, s.updated_at, s.expires_at,
       d.computing AS body, count(*) OVER () AS total
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
CROSS JOIN LATERAL (
    SELECT x.computing FROM queenspark.definitions x
    WHERE x.stream_id = s.id AND x.version = s.version ORDER BY x.seq DESC LIMIT 1) d
CROSS JOIN LATERAL (
    SELECT CASE %(sort)s WHEN 'createdAt' THEN s.created_at WHEN 'updatedAt' THEN s.updated_at END AS time
) k
WHERE s.output = 'rows' AND s.expires_at IS NULL
  AND (%(visible)s::text[] IS NULL OR q.name LIKE ANY (%(visible)s))
  AND (%(namespace)s::text IS NULL OR s.namespace = %(namespace)s)
  AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(q.name)) > 0)
ORDER BY CASE WHEN NOT %(descending)s THEN k.time END, CASE WHEN %(descending)s THEN k.time END DESC,
         CASE WHEN %(descending)s AND %(sort)s = 'name' THEN q.name END DESC, q.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: job_troubles
-- Why jobs have failed: the newest error of each, and the names of missing source queues.
SELECT s.id, f.error, g.gone
FROM queenspark.streams s
LEFT JOIN LATERAL (
    SELECT x.error FROM queenspark.stream_failures x WHERE x.stream_id = s.id ORDER BY x.at DESC, x.bucket LIMIT 1
) f ON true
LEFT JOIN LATERAL (
    SELECT array_agg(source ->> 'queue' ORDER BY source ->> 'queue') AS gone FROM (
        SELECT x.computing FROM queenspark.definitions x
        WHERE x.stream_id = s.id AND x.version = s.version ORDER BY x.seq DESC LIMIT 1
    ) d, jsonb_array_elements(d.computing -> 'sources') source
    WHERE NOT EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = (source ->> 'queue_id')::integer)
) g ON true
WHERE s.id = ANY (%(ids)s) AND (f.error IS NOT NULL OR g.gone IS NOT NULL)

-- name: failed_at
-- The position from which on the output of a failed job version is incomplete.
SELECT (min(ARRAY[f.txid, f.id]))[1], (min(ARRAY[f.txid, f.id]))[2] FROM queenspark.stream_failures f
WHERE f.stream_id = %(stream_id)s AND f.version = %(version)s HAVING count(*) > 0

-- name: forget_failures
-- Of a version, or of all.
DELETE FROM queenspark.stream_failures
WHERE stream_id = %(stream_id)s AND (%(version)s::integer IS NULL OR version = %(version)s)
RETURNING bucket

-- name: queue_taken
-- Why a queue cannot be that of a job: others push to it, or soon will.
SELECT 'queue', q.name FROM queenspark.queues q WHERE q.name = %(name)s
UNION ALL (SELECT 'staged', s.queue FROM queenspark.staged s WHERE s.queue = %(name)s LIMIT 1)
UNION ALL (SELECT 'dead letters', q.name FROM queenspark.queues q WHERE q.dead_letter_queue = %(name)s LIMIT 1)
LIMIT 1

-- name: add_job_queue
-- No row if the queue exists meanwhile.
INSERT INTO queenspark.queues (name, retention_enabled, retention_seconds)
VALUES (%(name)s, %(retention_seconds)s > 0, %(retention_seconds)s)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: add_job
INSERT INTO queenspark.streams (namespace, name, queue_id, partitioned, lease_timeout_ms, version, output, expires_at)
SELECT %(namespace)s, %(name)s, q.id, true, q.lease_seconds * 1000::bigint, 1, 'rows',
       clock_timestamp() + make_interval(secs => %(expires_in)s::float8)
FROM queenspark.queues q WHERE q.id = %(queue_id)s
RETURNING id

-- name: change_job
UPDATE queenspark.streams SET version = %(version)s, updated_at = clock_timestamp() WHERE id = %(id)s

-- name: retain_rows
-- Set the retention from a statement; other options keep their configuration.
UPDATE queenspark.queues SET retention_enabled = %(retention_seconds)s > 0, retention_seconds = %(retention_seconds)s,
    revision = revision + 1
WHERE id = %(queue_id)s

-- name: readers
-- Streams and jobs whose newest version reads a queue.
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.version, s.created_at, s.updated_at, s.expires_at,
       d.computing AS body
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
CROSS JOIN LATERAL (
    SELECT x.body, x.computing FROM queenspark.definitions x
    WHERE x.stream_id = s.id AND x.version = s.version ORDER BY x.seq DESC LIMIT 1) d
WHERE coalesce(d.body, d.computing) -> 'sources' @> jsonb_build_array(jsonb_build_object('queue_id', %(queue_id)s::integer))
ORDER BY s.namespace, s.name

-- name: group_names
SELECT g.name FROM queenspark.groups g WHERE g.queue_id = %(queue_id)s ORDER BY g.name

-- name: expired_jobs
-- Expired temporary jobs, locked against renewal until this transaction ends.
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.version, s.created_at, s.updated_at, s.expires_at,
       NULL AS body
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
WHERE s.expires_at <= clock_timestamp() FOR UPDATE OF s SKIP LOCKED

-- name: renew_job
UPDATE queenspark.streams SET expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = %(id)s AND expires_at IS NOT NULL RETURNING id

-- name: read_rows
-- Final rows of a queue after a position, in log order. A row that begins beyond the byte limit is left to the next
-- call.
SELECT x.txid, x.id, x.payload, x.encrypted, x.transaction_id FROM (
    SELECT m.*, sum(m.size) OVER (ORDER BY m.txid, m.id) - m.size AS before FROM (
        SELECT m.txid, m.id, m.payload, m.encrypted, m.transaction_id, octet_length(m.payload) AS size
        FROM queenspark.messages m
        WHERE m.queue_id = %(queue_id)s AND (m.txid, m.id) > (%(txid)s, %(id)s) AND m.txid < (SELECT horizon())
        ORDER BY m.txid, m.id LIMIT %(limit)s) m
) x WHERE x.before < %(most_bytes)s ORDER BY x.txid, x.id

-- name: newest_payloads
-- The newest messages of a queue, fewer if they are large.
SELECT x.payload, x.encrypted, x.transaction_id FROM (
    SELECT m.*, sum(m.size) OVER (ORDER BY m.txid DESC, m.id DESC) - m.size AS before FROM (
        SELECT m.txid, m.id, m.payload, m.encrypted, m.transaction_id, octet_length(m.payload) AS size
        FROM queenspark.messages m
        WHERE m.queue_id = %(queue_id)s ORDER BY m.txid DESC, m.id DESC LIMIT %(limit)s) m
) x WHERE x.before < %(most_bytes)s ORDER BY x.txid DESC, x.id DESC

-- name: relations
-- Declarations: all, or the one of a name.
SELECT r.name, r.kind, r.statement, r.created_at, r.updated_at FROM queenspark.relations r
WHERE %(name)s::text IS NULL OR r.name = %(name)s ORDER BY r.name

-- name: set_relation
INSERT INTO queenspark.relations (name, kind, statement) VALUES (%(name)s, %(kind)s, %(statement)s)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, statement = excluded.statement, updated_at = clock_timestamp()

-- name: delete_relation
DELETE FROM queenspark.relations WHERE name = %(name)s RETURNING name

-- name: all_queue_names
SELECT q.name FROM queenspark.queues q LEFT JOIN queenspark.streams s ON s.queue_id = q.id
WHERE s.id IS NULL OR (s.output = 'rows' AND s.expires_at IS NULL) ORDER BY q.name

-- name: queue_ids
SELECT name, id FROM queenspark.queues WHERE name = ANY (%(names)s)

-- name: seek_windows
SELECT seek_windows(
    %(group_id)s, timestamptz 'epoch' + %(time_us)s * interval '1 microsecond')

-- name: window_records
SELECT * FROM window_records(
    %(windows)s::integer[], %(queue_ids)s::integer[], %(first_txids)s::bigint[], %(first_ids)s::bigint[],
    %(last_txids)s::bigint[], %(last_ids)s::bigint[], %(partitions)s::text[], %(from_us)s::bigint[],
    %(until_us)s::bigint[])

-- name: window_page
-- The first records of one window, between two positions of each of its sources, in log order.
SELECT m.txid, m.id, s.queue_id, m.partition_id, m.created_us, m.encrypted, m.transaction_id, m.payload,
       m.headers
FROM unnest(
    %(queue_ids)s::integer[], %(first_txids)s::bigint[], %(first_ids)s::bigint[], %(last_txids)s::bigint[],
    %(last_ids)s::bigint[]
) AS s(queue_id, first_txid, first_id, last_txid, last_id)
CROSS JOIN LATERAL messages_between(
    s.queue_id, %(partition)s, s.first_txid, s.first_id, s.last_txid, s.last_id, %(from_us)s, %(until_us)s, %(limit)s) m
ORDER BY m.txid, m.id LIMIT %(limit)s

-- name: dropped_records
-- A pipeline of a version without the table stream_dropped records them in the late log only.
SELECT d.txid, d.id FROM queenspark.stream_dropped d
WHERE d.stream_id = %(stream_id)s AND d.version = %(version)s AND d.key = %(key)s
UNION
SELECT l.txid, l.id FROM queenspark.stream_late l
WHERE l.dropped AND l.stream_id = %(stream_id)s AND l.version = %(version)s AND l.key = %(key)s

-- name: leased_window
-- The place of a live lease and its window; without a window if already acked.
SELECT g.name AS group, p.partition_id, g.queue_id, p.lease_expires_at, w.transaction_id, w.payload
FROM queenspark.places p JOIN queenspark.groups g ON g.id = p.group_id
JOIN queenspark.streams s ON s.queue_id = g.queue_id AND s.output = 'windows'
LEFT JOIN LATERAL (
    SELECT m.transaction_id, m.payload FROM queenspark.messages m
    WHERE m.partition_id = p.partition_id AND m.id = p.leased[1]
      AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id) AND (m.txid, m.id) <= (p.end_txid, p.end_id)
    UNION ALL
    SELECT d.transaction_id, d.payload FROM queenspark.dead_letters d
    WHERE d.group_id = p.group_id AND d.id = p.leased[1] AND d.returned
    LIMIT 1
) w ON true
WHERE p.lease_id = %(lease_id)s AND p.lease_expires_at > clock_timestamp()

-- name: note_floors
-- In one snapshot: unsealed windows, and the frontier. A window pushed after it has no earlier record.
INSERT INTO queenspark.stream_floors (stream_id, frontier, txid, id)
SELECT r.stream_id, frontier(), (min(r.needs))[1], (min(r.needs))[2] FROM stream_reads() r
JOIN queenspark.streams s ON s.id = r.stream_id AND s.output = 'windows'
WHERE NOT EXISTS (
    SELECT 1 FROM queenspark.stream_floors f
    WHERE f.stream_id = r.stream_id AND f.at > clock_timestamp() - make_interval(secs => %(every)s))
GROUP BY r.stream_id HAVING bool_or(r.queue_id = ANY (%(queue_ids)s))
ON CONFLICT DO NOTHING

-- name: forget_floors
-- Keep the last note before the oldest unacked window, and later ones.
DELETE FROM queenspark.stream_floors f USING (
    SELECT s.id, (
        SELECT max(x.frontier) FROM queenspark.stream_floors x
        WHERE x.stream_id = s.id AND x.frontier <= coalesce(u.position[1], 9223372036854775807)) AS used
    FROM queenspark.streams s
    CROSS JOIN LATERAL (SELECT oldest_unacked(s.queue_id) AS position OFFSET 0) u
    WHERE EXISTS (SELECT 1 FROM queenspark.stream_floors x WHERE x.stream_id = s.id)
) c WHERE f.stream_id = c.id AND f.frontier < c.used

-- name: needed_positions
SELECT n.queue_id, (min(n.needs))[1], (min(n.needs))[2] FROM stream_needs(%(queue_ids)s) n GROUP BY n.queue_id

-- name: trim_late
-- Move the notes of a pipeline of a version without the table stream_dropped.
WITH trimmed AS (
    DELETE FROM queenspark.stream_late l USING (
        SELECT s.id, (SELECT x.at FROM queenspark.stream_late x WHERE x.stream_id = s.id
                      ORDER BY x.at DESC OFFSET %(keep)s LIMIT 1) AS until
        FROM queenspark.streams s
    ) c WHERE l.stream_id = c.id AND l.at <= c.until
    RETURNING l.stream_id, l.version, l.key, l.txid, l.id, l.dropped
)
INSERT INTO queenspark.stream_dropped (stream_id, version, key, txid, id)
SELECT t.stream_id, t.version, t.key, t.txid, t.id FROM trimmed t
WHERE t.dropped AND EXISTS (
    SELECT 1 FROM queenspark.definitions d
    WHERE d.stream_id = t.stream_id AND d.version = t.version
      AND coalesce(d.body, d.computing) #>> '{spec,kind}' = ANY (%(kinds)s))
ON CONFLICT DO NOTHING

-- name: forget_dropped
-- Dropped records are deleted with the records themselves: when they are before all remaining messages of the
-- stream's sources (including former ones), and when the stream is deleted.
DELETE FROM queenspark.stream_dropped d USING (
    SELECT x.stream_id, CASE WHEN s.id IS NOT NULL THEN (
        SELECT min(ARRAY[first.txid, first.id]) FROM (
            SELECT DISTINCT (source ->> 'queue_id')::integer AS queue_id
            FROM queenspark.definitions v, jsonb_array_elements(coalesce(v.body, v.computing) -> 'sources') source
            WHERE v.stream_id = x.stream_id
        ) q CROSS JOIN LATERAL (
            SELECT m.txid, m.id FROM queenspark.messages m WHERE m.queue_id = q.queue_id
            ORDER BY m.txid, m.id LIMIT 1) first
    ) END AS first
    FROM (
        WITH RECURSIVE streams AS (
            (SELECT y.stream_id FROM queenspark.stream_dropped y ORDER BY y.stream_id LIMIT 1)
            UNION ALL
            SELECT (SELECT y.stream_id FROM queenspark.stream_dropped y WHERE y.stream_id > z.stream_id
                    ORDER BY y.stream_id LIMIT 1)
            FROM streams z WHERE z.stream_id IS NOT NULL
        )
        SELECT stream_id FROM streams WHERE stream_id IS NOT NULL
    ) x LEFT JOIN queenspark.streams s ON s.id = x.stream_id
) c
WHERE d.stream_id = c.stream_id AND (c.first IS NULL OR (d.txid, d.id) < (c.first[1], c.first[2]))

-- name: trim_dead
DELETE FROM queenspark.stream_dead l USING (
    SELECT s.id, (SELECT x.at FROM queenspark.stream_dead x WHERE x.stream_id = s.id
                  ORDER BY x.at DESC OFFSET %(keep)s LIMIT 1) AS until
    FROM queenspark.streams s
) c WHERE l.stream_id = c.id AND l.at <= c.until

-- name: stream_state
-- The pipeline's report on each stream, its lag behind the log, and the retention held for it.
SELECT s.id, x.watermark_us, coalesce(t.open_windows, 0)::bigint AS open_windows, coalesce(t.records, 0)::bigint AS records,
       coalesce(t.windows, 0)::bigint AS windows, coalesce(t.late, 0)::bigint AS late,
       coalesce(t.dropped, 0)::bigint AS dropped, coalesce(t.dead, 0)::bigint AS dead, t.updated_at AS sealed_at,
       b.oldest AS unread_since, h.needs_since, h.held_since, coalesce(g.records, 0)::bigint AS removed,
       clock_timestamp() AS now
FROM queenspark.streams s LEFT JOIN queenspark.stream_removed g ON g.stream_id = s.id
LEFT JOIN LATERAL (
    SELECT sum(a.open_windows) AS open_windows, sum(a.records) AS records, sum(a.windows) AS windows,
           sum(a.late) AS late, sum(a.dropped) AS dropped, sum(a.dead) AS dead, max(a.updated_at) AS updated_at
    FROM queenspark.stream_stats a WHERE a.stream_id = s.id
) t ON true
LEFT JOIN LATERAL (
    SELECT min(a.watermark_us) AS watermark_us FROM queenspark.stream_stats a
    WHERE a.stream_id = s.id AND a.version = s.version
) x ON true
LEFT JOIN (
    SELECT r.stream_id, min(f.created_at) AS oldest FROM stream_reads() r CROSS JOIN LATERAL (
        SELECT m.created_at FROM queenspark.messages m
        WHERE m.queue_id = r.queue_id AND (m.txid, m.id) > (r.read[1], r.read[2])
        ORDER BY m.txid, m.id LIMIT 1) f
    GROUP BY r.stream_id
) b ON b.stream_id = s.id
LEFT JOIN (
    SELECT n.stream_id, min(f.created_at) AS needs_since,
           min(f.created_at + make_interval(secs => q.age))
               FILTER (WHERE f.created_at + make_interval(secs => q.age) < clock_timestamp()) AS held_since
    FROM (
        SELECT id, least(ttl_seconds, CASE WHEN retention_enabled THEN nullif(retention_seconds, 0) END,
                         CASE WHEN retention_enabled THEN nullif(completed_retention_seconds, 0) END) AS age
        FROM queenspark.queues
    ) q JOIN stream_needs((
        SELECT array_agg(id) FROM queenspark.queues
        WHERE retention_enabled AND (retention_seconds > 0 OR completed_retention_seconds > 0)
           OR ttl_seconds IS NOT NULL
    )) n ON n.queue_id = q.id
    CROSS JOIN LATERAL (
        SELECT m.created_at FROM queenspark.messages m
        WHERE m.queue_id = n.queue_id AND (m.txid, m.id) >= (n.needs[1], n.needs[2])
        ORDER BY m.txid, m.id LIMIT 1) f
    GROUP BY n.stream_id
) h ON h.stream_id = s.id
WHERE CASE WHEN %(ids)s::integer[] IS NULL THEN s.output = 'windows' ELSE s.id = ANY (%(ids)s) END

-- name: bucket_state
-- The totals of each bucket of the pipeline, and its last batch.
SELECT p.bucket, coalesce(p.records, 0) AS batch_records, coalesce(p.seconds, 0) AS batch_seconds, p.updated_at,
       coalesce(t.open_windows, 0)::bigint AS open_windows, coalesce(t.records, 0)::bigint AS records,
       coalesce(t.windows, 0)::bigint AS windows, coalesce(t.late, 0)::bigint AS late,
       coalesce(t.dropped, 0)::bigint AS dropped, coalesce(t.dead, 0)::bigint AS dead, t.watermark_us
FROM queenspark.progress p
LEFT JOIN (
    SELECT a.bucket, sum(a.open_windows) AS open_windows, sum(a.records) AS records, sum(a.windows) AS windows,
           sum(a.late) AS late, sum(a.dropped) AS dropped, sum(a.dead) AS dead,
           min(a.watermark_us) FILTER (WHERE a.open_windows > 0) AS watermark_us
    FROM queenspark.stream_stats a GROUP BY a.bucket
) t ON t.bucket = p.bucket
ORDER BY p.bucket

-- name: stream_group_totals
SELECT count(DISTINCT g.name) AS groups,
       coalesce(sum(c.leases), 0)::bigint AS leases
FROM queenspark.streams s JOIN queenspark.groups g ON g.queue_id = s.queue_id
LEFT JOIN queenspark.group_counts c ON c.group_id = g.id
WHERE s.output = 'windows'

-- name: list_streams
SELECT s.id, s.namespace, s.name, s.queue_id, q.name AS queue, s.partitioned, s.lease_timeout_ms, s.version,
       s.created_at, s.updated_at, s.window_retention_ms, count(*) OVER () AS total
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
LEFT JOIN (
    -- Only if the order needs it.
    SELECT a.stream_id, CASE %(sort)s WHEN 'openWindows' THEN sum(a.open_windows) WHEN 'sealedWindows' THEN sum(a.windows)
               WHEN 'late' THEN sum(a.late) WHEN 'dropped' THEN sum(a.dropped) WHEN 'dead' THEN sum(a.dead)
               WHEN 'watermark' THEN min(a.watermark_us) FILTER (WHERE a.version = v.version) END AS number
    FROM queenspark.stream_stats a JOIN queenspark.streams v ON v.id = a.stream_id
    WHERE %(sort)s IN ('openWindows', 'sealedWindows', 'late', 'dropped', 'dead', 'watermark') GROUP BY a.stream_id
) t ON t.stream_id = s.id
LEFT JOIN queenspark.stream_rates r ON r.stream_id = s.id AND %(sort)s = 'rate'
LEFT JOIN (
    SELECT r.stream_id, extract(epoch FROM clock_timestamp() - min(f.created_at)) AS seconds
    FROM stream_reads() r CROSS JOIN LATERAL (
        SELECT m.created_at FROM queenspark.messages m
        WHERE m.queue_id = r.queue_id AND (m.txid, m.id) > (r.read[1], r.read[2])
        ORDER BY m.txid, m.id LIMIT 1) f
    WHERE %(sort)s = 'lagSeconds' GROUP BY r.stream_id
) b ON b.stream_id = s.id
CROSS JOIN LATERAL (
    SELECT CASE %(sort)s WHEN 'createdAt' THEN s.created_at WHEN 'updatedAt' THEN s.updated_at END AS time,
           coalesce(t.number, r.processed::numeric, b.seconds, 0) AS number,
           CASE %(sort)s WHEN 'name' THEN s.name ELSE s.namespace END AS text
) k
WHERE s.output = 'windows' AND (%(namespace)s::text IS NULL OR s.namespace = %(namespace)s)
  AND (%(visible)s::text[] IS NULL OR s.namespace || '/' || s.name LIKE ANY (%(visible)s))
  AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(s.name)) > 0)
ORDER BY CASE WHEN NOT %(descending)s THEN k.time END, CASE WHEN %(descending)s THEN k.time END DESC,
         CASE WHEN NOT %(descending)s THEN k.number END, CASE WHEN %(descending)s THEN k.number END DESC,
         CASE WHEN NOT %(descending)s THEN k.text END, CASE WHEN %(descending)s THEN k.text END DESC,
         s.namespace, s.name
LIMIT %(limit)s OFFSET %(offset)s

-- name: stream_consumers
-- The keys of each group: the last acked window, and the number of windows up to it, up to a limit. The windows of a
-- key are in several partitions if they are unordered (formats/window_message.py).
SELECT g.name AS group, k.key, max(w.window_end) AS window_end, sum(c.total)::bigint AS total, max(p.acked_at) AS acked_at
FROM queenspark.groups g JOIN queenspark.partitions t ON t.queue_id = g.queue_id
JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = t.id
CROSS JOIN LATERAL (
    SELECT coalesce(regexp_replace(t.name, %(lane)s::text, ''), t.name) AS key) k
CROSS JOIN LATERAL (
    SELECT max(x.window_end) AS window_end FROM (
        SELECT m.window_end FROM queenspark.messages m
        WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (g.start_txid, g.start_id)
          AND (m.txid, m.id) <= (p.end_txid, p.end_id) AND m.id <> ALL (p.pending)
        ORDER BY m.partition_id DESC, m.txid DESC, m.id DESC LIMIT 100) x
) w
CROSS JOIN LATERAL (
    SELECT count(*) AS total FROM (
        SELECT 1 FROM queenspark.messages m
        WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (g.start_txid, g.start_id)
          AND (m.txid, m.id) <= (p.end_txid, p.end_id) AND m.id <> ALL (p.pending)
        LIMIT %(most)s) x
) c
WHERE g.queue_id = %(queue_id)s AND (%(search)s::text IS NULL OR position(lower(%(search)s) IN lower(k.key)) > 0)
GROUP BY g.name, k.key ORDER BY g.name, k.key LIMIT %(limit)s OFFSET %(offset)s

-- name: active_windows
-- Windows of a stream not acked by its groups; without a group if the stream has none.
SELECT * FROM (
    (SELECT g.name AS group, w.* FROM queenspark.groups g
     CROSS JOIN LATERAL active_windows(g.id, %(state)s, %(limit)s + %(offset)s) w
     WHERE g.queue_id = %(queue_id)s AND (%(group)s::text IS NULL OR g.name = %(group)s) ORDER BY g.name)
    UNION ALL
    (SELECT NULL, 'waiting', m.created_at, m.payload, 0, NULL, NULL, NULL, NULL, NULL, NULL FROM queenspark.messages m
     WHERE m.queue_id = %(queue_id)s AND %(group)s::text IS NULL AND coalesce(%(state)s::text, 'waiting') = 'waiting'
       AND NOT EXISTS (SELECT 1 FROM queenspark.groups g WHERE g.queue_id = %(queue_id)s)
     ORDER BY m.txid, m.id LIMIT %(limit)s + %(offset)s)
) found LIMIT %(limit)s OFFSET %(offset)s

-- name: list_late
SELECT l.version, l.key, l.txid, l.id, l.time_us, l.closed_us, l.dropped, l.at, m.queue, m.partition,
       m.transaction_id, m.created_at
FROM (
    SELECT * FROM queenspark.stream_late WHERE stream_id = %(id)s
    ORDER BY at DESC, txid DESC, id DESC LIMIT %(limit)s OFFSET %(offset)s
) l LEFT JOIN LATERAL (
    SELECT q.name AS queue, t.name AS partition, x.transaction_id, x.created_at FROM queenspark.messages x
    JOIN queenspark.partitions t ON t.id = x.partition_id JOIN queenspark.queues q ON q.id = x.queue_id
    WHERE x.queue_id = ANY (%(queue_ids)s) AND x.txid = l.txid AND x.id = l.id LIMIT 1
) m ON true
ORDER BY l.at DESC, l.txid DESC, l.id DESC

-- name: list_dead
SELECT l.version, l.key, l.txid, l.id, l.at, l.reason, l.start_us, l.end_us, m.queue, m.partition, m.transaction_id,
       m.created_at
FROM (
    SELECT * FROM queenspark.stream_dead WHERE stream_id = %(id)s
    ORDER BY at DESC, txid DESC, id DESC LIMIT %(limit)s OFFSET %(offset)s
) l LEFT JOIN LATERAL (
    SELECT q.name AS queue, t.name AS partition, x.transaction_id, x.created_at FROM queenspark.messages x
    JOIN queenspark.partitions t ON t.id = x.partition_id JOIN queenspark.queues q ON q.id = x.queue_id
    WHERE x.queue_id = ANY (%(queue_ids)s) AND x.txid = l.txid AND x.id = l.id LIMIT 1
) m ON true
ORDER BY l.at DESC, l.txid DESC, l.id DESC

-- name: stream_rates
-- Empty while no pipeline leads, since they are not updated.
SELECT r.stream_id AS id, r.arriving, r.processed, r.sealed, r.late, r.backpressure FROM queenspark.stream_rates r
WHERE (%(ids)s::integer[] IS NULL OR r.stream_id = ANY (%(ids)s))
  AND EXISTS (SELECT 1 FROM queenspark.pipeline p WHERE p.expires_at > clock_timestamp())

-- name: pipeline_state
SELECT p.holder, p.epoch, coalesce(p.expires_at > clock_timestamp(), false) AS active,
       coalesce((SELECT jsonb_object_agg(x.key, x.value) FROM queenspark.pipeline_stats x), '{}') AS stats
FROM queenspark.pipeline p

-- name: is_led
SELECT coalesce(p.expires_at > clock_timestamp(), false) FROM queenspark.pipeline p

-- name: standing
-- The leader of the pipeline, its position for a version of a stream ("id:version"), and the inputs of its clock.
SELECT clock_timestamp() AS now, h.horizon,
       (SELECT l.at FROM queenspark.looks l WHERE l.txid < h.horizon ORDER BY l.at DESC LIMIT 1) AS safe_time,
       p.holder, p.epoch, p.expires_at AS led_until, coalesce(p.expires_at > clock_timestamp(), false) AS is_led,
       greatest((SELECT max(x.at) FROM queenspark.pipeline_stats x),
                (SELECT max(x.updated_at) FROM queenspark.progress x)) AS heard_at,
       (SELECT x.value FROM queenspark.pipeline_stats x WHERE x.key = %(query)s) AS report,
       r.seq AS known_seq, r.behind ? %(stream)s AS is_behind,
       coalesce(r.behind -> %(stream)s, jsonb_build_array(r.txid, r.id, r.tick)) AS read_point
FROM queenspark.pipeline p CROSS JOIN (SELECT horizon() AS horizon OFFSET 0) h
LEFT JOIN (
    -- The slowest bucket.
    SELECT x.txid, x.id, x.tick, x.seq, x.behind FROM queenspark.progress x ORDER BY x.txid, x.id, x.batch LIMIT 1
) r ON true

-- name: job_standing
-- The same for a job with its own query, with its progress report. `position` is that of its source.
SELECT clock_timestamp() AS now, h.horizon,
       (SELECT l.at FROM queenspark.looks l WHERE l.txid < h.horizon ORDER BY l.at DESC LIMIT 1) AS safe_time,
       p.holder, p.epoch, p.expires_at AS led_until, coalesce(p.expires_at > clock_timestamp(), false) AS is_led,
       greatest((SELECT max(x.at) FROM queenspark.pipeline_stats x), r.updated_at) AS heard_at,
       (SELECT x.value FROM queenspark.pipeline_stats x WHERE x.key = %(query)s) AS report,
       (r.state ->> 'seq')::bigint AS known_seq, false AS is_behind,
       jsonb_build_array(r.txid, r.id, (r.state ->> 'tick')::bigint) AS read_point, r.state -> 'position' AS position,
       (SELECT jsonb_build_object('report', x.report, 'finishedAt', x.finished_at) FROM queenspark.job_runs x
        WHERE x.stream_id = %(stream_id)s AND x.version = %(version)s) AS run
FROM queenspark.pipeline p CROSS JOIN (SELECT horizon() AS horizon OFFSET 0) h
LEFT JOIN (
    SELECT x.txid, x.id, x.state, x.updated_at FROM queenspark.job_progress x
    WHERE x.stream_id = %(stream_id)s AND x.version = %(version)s ORDER BY x.batch LIMIT 1
) r ON true

-- name: version_totals
-- The totals of each version of a stream, and the earliest record of its open windows.
SELECT a.version, sum(a.open_windows)::bigint AS open_windows, sum(a.records)::bigint AS records,
       sum(a.windows)::bigint AS windows, sum(a.dead)::bigint AS dead, min(a.watermark_us) AS watermark_us,
       min(ARRAY[a.open_txid, a.open_id]) FILTER (WHERE a.open_txid IS NOT NULL) AS first_open
FROM queenspark.stream_stats a WHERE a.stream_id = %(stream_id)s GROUP BY a.version ORDER BY a.version

-- name: source_standing
-- For each source after a position: the number of unread messages, up to a limit, the oldest, and how many of them
-- are not below the horizon yet.
SELECT s.queue_id, EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = s.queue_id) AS is_there,
       EXISTS (SELECT 1 FROM queenspark.messages m WHERE m.queue_id = s.queue_id) AS has_messages,
       u.unread, u.unread_since, u.hidden
FROM unnest(%(queue_ids)s::integer[], %(txids)s::bigint[], %(ids)s::bigint[]) AS s(queue_id, txid, id)
CROSS JOIN (SELECT horizon() AS horizon OFFSET 0) h
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE x.txid < h.horizon) AS unread,
           min(x.created_at) FILTER (WHERE x.txid < h.horizon) AS unread_since,
           count(*) FILTER (WHERE x.txid >= h.horizon) AS hidden
    FROM (
        SELECT m.txid, m.created_at FROM queenspark.messages m
        WHERE m.queue_id = s.queue_id AND (m.txid, m.id) > (s.txid, s.id)
        ORDER BY m.txid, m.id LIMIT %(most)s) x
) u

-- name: output_standing
-- When a stream or job emitted its newest window or row, and the reasons that stop it: since when it is paused, and
-- its newest failure.
SELECT (SELECT m.created_at FROM queenspark.messages m WHERE m.queue_id = s.queue_id
        ORDER BY m.txid DESC, m.id DESC LIMIT 1) AS newest_at,
       (SELECT min(d.created_at) FROM queenspark.definitions d
        WHERE d.stream_id = s.id AND d.version = %(version)s AND d.seq > coalesce((
            SELECT max(x.seq) FROM queenspark.definitions x
            WHERE x.stream_id = s.id AND x.version = %(version)s
              AND (x.computing ->> 'paused')::boolean IS NOT TRUE), 0)) AS paused_since,
       f.error, f.at AS failed_at, s.queue_id, q.name AS queue, q.max_size
FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
LEFT JOIN LATERAL (
    SELECT x.error, x.at FROM queenspark.stream_failures x WHERE x.stream_id = s.id ORDER BY x.at DESC, x.bucket LIMIT 1
) f ON true
WHERE s.id = %(stream_id)s

-- name: pipeline_news
-- The state before a batch of the streams query. Every message created before the tick is below the horizon.
SELECT (SELECT coalesce(max(seq), 0) FROM queenspark.definitions),
       h.horizon,
       (SELECT (extract(epoch FROM l.at) * 1000000)::bigint FROM queenspark.looks l
        WHERE l.txid < h.horizon ORDER BY l.at DESC LIMIT 1),
       (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
       (SELECT min(p.next_close) FROM queenspark.progress p WHERE p.run = %(run)s),
       (SELECT jsonb_agg(DISTINCT jsonb_build_array(p.txid, p.id, p.tick))
        FROM queenspark.progress p WHERE p.run <> %(run)s),
       -- The bucket with the oldest state decides.
       (SELECT jsonb_agg(to_jsonb(f.failure)) FROM (
            SELECT DISTINCT ON (x.stream_id, x.version)
                   jsonb_build_array(x.stream_id, x.version, x.run, x.txid, x.id, x.tick) AS failure
            FROM queenspark.stream_failures x ORDER BY x.stream_id, x.version, x.txid, x.id) f)
FROM (SELECT horizon() AS horizon OFFSET 0) h

-- name: earlier_progress
SELECT p.state FROM queenspark.progress p WHERE p.run <> %(run)s ORDER BY p.bucket

-- name: removals
SELECT r.queue_id, r.txid, r.id, r.at FROM queenspark.removals r

-- name: versions_begun
-- The first row of each version.
SELECT DISTINCT ON (d.stream_id, d.version) d.stream_id, d.version, d.seq, d.created_at
FROM queenspark.definitions d ORDER BY d.stream_id, d.version, d.seq

-- name: steps
SELECT 1 FROM queenspark.steps LIMIT 1

-- name: add_step
INSERT INTO queenspark.steps (stream_id, version) VALUES (%(stream_id)s, %(version)s)

-- name: forget_steps
DELETE FROM queenspark.steps

-- name: take_steps
DELETE FROM queenspark.steps RETURNING stream_id, version

-- name: limited_output_queues
SELECT q.id, q.max_size FROM queenspark.streams s JOIN queenspark.queues q ON q.id = s.queue_id
WHERE s.output = 'rows' AND q.max_size > 0

-- name: window_queue_ids
SELECT id, queue_id FROM queenspark.streams

-- name: renew_pipeline
-- Renew leadership. This waits for no push: FOR KEY SHARE allows updates of other columns.
UPDATE queenspark.pipeline SET expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE holder = %(holder)s AND expires_at > clock_timestamp() RETURNING epoch

-- name: lead_pipeline
-- Acquire leadership. A new leader starts a new epoch, which ends the old one; FOR UPDATE waits for pushes in flight.
WITH free AS MATERIALIZED (
    SELECT one FROM queenspark.pipeline
    WHERE holder IS NULL OR holder = %(holder)s OR expires_at <= clock_timestamp() FOR UPDATE
), led AS (
    UPDATE queenspark.pipeline p
    SET epoch = p.epoch + 1, holder = %(holder)s,
        expires_at = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM free WHERE p.one = free.one RETURNING p.epoch
)
SELECT coalesce((SELECT epoch FROM led), p.epoch), EXISTS (SELECT 1 FROM led) FROM queenspark.pipeline p

-- name: end_stuck_pushes
-- A push shares the leader's row until it ends, so that no takeover happens in between. A push of a frozen process
-- that is still in flight after the lease has expired would block every takeover.
SELECT pg_terminate_backend(a.pid) FROM queenspark.pipeline p JOIN pg_stat_activity a ON a.xact_start < p.expires_at
WHERE p.expires_at <= clock_timestamp() AND p.holder <> %(holder)s AND a.datname = current_database()
  AND a.application_name = 'queenspark window sink'

-- name: resign_pipeline
UPDATE queenspark.pipeline SET holder = NULL, expires_at = NULL WHERE holder = %(holder)s RETURNING epoch

-- name: set_pipeline_stats
INSERT INTO queenspark.pipeline_stats (key, value) VALUES (%(key)s, %(value)s::jsonb)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, at = clock_timestamp() RETURNING key

-- name: stream_totals
-- The totals of the newest version of each stream, and of each bucket.
SELECT s.id, s.namespace, s.name, s.version, a.bucket, sum(a.records)::bigint AS records, sum(a.windows)::bigint AS windows,
       sum(a.late)::bigint AS late
FROM queenspark.stream_stats a JOIN queenspark.streams s ON s.id = a.stream_id AND s.version = a.version
GROUP BY GROUPING SETS ((s.id, s.namespace, s.name, s.version), (a.bucket))

-- name: count_arrived
-- Messages of each queue between two positions, up to a limit.
SELECT q.id, count(*) FROM unnest(%(queue_ids)s::integer[]) AS q(id) CROSS JOIN LATERAL (
    SELECT 1 FROM queenspark.messages m
    WHERE m.queue_id = q.id AND (m.txid, m.id) > (%(after_txid)s, %(after_id)s)
      AND (m.txid, m.id) <= (%(upto_txid)s, %(upto_id)s)
    LIMIT %(most)s) m
GROUP BY q.id

-- name: set_stream_rates
INSERT INTO queenspark.stream_rates (stream_id, arriving, processed, sealed, late, backpressure)
SELECT u.* FROM unnest(%(stream)s::integer[], %(arriving)s::float8[], %(processed)s::float8[], %(sealed)s::float8[],
    %(late)s::float8[], %(backpressure)s::float8[]) AS u(stream, arriving, processed, sealed, late, backpressure)
WHERE EXISTS (SELECT 1 FROM queenspark.streams s WHERE s.id = u.stream)
ON CONFLICT (stream_id) DO UPDATE SET arriving = excluded.arriving, processed = excluded.processed,
    sealed = excluded.sealed, late = excluded.late, backpressure = excluded.backpressure, updated_at = clock_timestamp()

-- name: add_api_key
INSERT INTO queenspark.api_keys
    (id, name, hash, role, scopes, requests_per_second, messages_per_second, created_by, expires_at)
VALUES (%(id)s, %(name)s, %(hash)s, %(role)s, %(scopes)s, %(requests_per_second)s, %(messages_per_second)s,
        %(created_by)s, %(expires_at)s)
RETURNING *

-- name: find_api_keys
-- Valid keys: neither revoked nor expired.
SELECT k.*, extract(epoch FROM k.expires_at - clock_timestamp())::float8 AS seconds_left
FROM queenspark.api_keys k
WHERE k.id = ANY (%(ids)s) AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())

-- name: list_api_keys
SELECT k.*, count(*) OVER () AS total FROM queenspark.api_keys k
WHERE %(search)s::text IS NULL OR position(lower(%(search)s) IN lower(k.name)) > 0
ORDER BY CASE WHEN %(sort)s = 'createdAt' AND NOT %(descending)s THEN k.created_at END,
         CASE WHEN %(sort)s = 'createdAt' AND %(descending)s THEN k.created_at END DESC,
         CASE WHEN %(sort)s = 'name' AND %(descending)s THEN k.name END DESC, k.name, k.created_at
LIMIT %(limit)s OFFSET %(offset)s

-- name: revoke_api_key
-- A revoked key stays in the list, for readers of the audit log.
UPDATE queenspark.api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE id = %(id)s RETURNING *

-- name: use_api_keys
UPDATE queenspark.api_keys k SET last_used_at = greatest(k.last_used_at, to_timestamp(u.at))
FROM unnest(%(ids)s::text[], %(times)s::float8[]) AS u(id, at) WHERE k.id = u.id

-- name: add_audit
INSERT INTO queenspark.audit (caller, kind, address, action, subject, status)
VALUES (%(caller)s, %(kind)s, %(address)s, %(action)s, %(subject)s, %(status)s)

-- name: list_audit
-- A page of the audit log, newest first.
SELECT a.*, count(*) OVER () AS total FROM queenspark.audit a
WHERE (%(caller)s::text IS NULL OR a.caller = %(caller)s)
  AND (%(from)s::timestamptz IS NULL OR a.at >= %(from)s) AND (%(to)s::timestamptz IS NULL OR a.at < %(to)s)
ORDER BY a.at DESC, a.id DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: forget_audit
DELETE FROM queenspark.audit WHERE at < clock_timestamp() - make_interval(secs => %(seconds)s)

-- name: queue_of_lease
SELECT q.name FROM queenspark.places p JOIN queenspark.groups g ON g.id = p.group_id
JOIN queenspark.queues q ON q.id = g.queue_id WHERE p.lease_id = %(lease_id)s LIMIT 1

-- name: stream_keys
-- Keys of a stream by their number of newest windows.
SELECT k.key, sum(r.windows)::bigint AS windows, count(*) OVER () AS total
FROM (
    SELECT x.partition_id, count(*) AS windows FROM (
        SELECT m.partition_id FROM queenspark.messages m WHERE m.queue_id = %(queue_id)s
        ORDER BY m.txid DESC, m.id DESC LIMIT %(recent)s) x
    GROUP BY x.partition_id
) r
-- LIMIT: one look-up by index for each, never a scan of all partitions.
CROSS JOIN LATERAL (SELECT p.name FROM queenspark.partitions p WHERE p.id = r.partition_id LIMIT 1) p
CROSS JOIN LATERAL (SELECT coalesce(regexp_replace(p.name, %(lane)s::text, ''), p.name) AS key) k
GROUP BY k.key ORDER BY sum(r.windows) DESC, k.key LIMIT %(limit)s OFFSET %(offset)s

-- name: find_stream_keys
-- Keys of a stream that contain a text, by name: of its first `searched` ones, and of as many from the text on.
SELECT k.key, 0::bigint AS windows, count(*) OVER () AS total FROM (
    SELECT p.name FROM (
        SELECT p.name FROM queenspark.partitions p WHERE p.queue_id = %(queue_id)s
        ORDER BY p.name LIMIT %(searched)s) p
    WHERE position(lower(%(search)s) IN lower(p.name)) > 0
    UNION ALL
    SELECT p.name FROM (
        SELECT p.name FROM queenspark.partitions p WHERE p.queue_id = %(queue_id)s AND p.name >= %(search)s
        ORDER BY p.name LIMIT %(searched)s) p
    WHERE position(lower(%(search)s) IN lower(p.name)) > 0
) p
CROSS JOIN LATERAL (SELECT coalesce(regexp_replace(p.name, %(lane)s::text, ''), p.name) AS key) k
WHERE position(lower(%(search)s) IN lower(k.key)) > 0
GROUP BY k.key ORDER BY k.key LIMIT %(limit)s OFFSET %(offset)s

-- name: key_windows
-- The newest windows of some keys that end between two times. A key is a number and one or more partitions.
SELECT m.partition_id, m.txid, m.id, m.transaction_id, m.created_at, m.window_end, m.payload
FROM (
    SELECT t.key, array_agg(t.id) AS partition_ids
    FROM unnest(%(keys)s::integer[], %(partition_ids)s::bigint[]) AS t(key, id) GROUP BY t.key
) k CROSS JOIN LATERAL (
    SELECT m.* FROM unnest(k.partition_ids) AS t(id) CROSS JOIN LATERAL (
        SELECT m.* FROM queenspark.messages m
        WHERE m.partition_id = t.id AND m.window_end > %(from)s AND m.window_end <= %(to)s
        ORDER BY m.window_end DESC LIMIT %(limit)s
    ) m ORDER BY m.window_end DESC LIMIT %(limit)s
) m ORDER BY k.key, m.window_end, m.txid, m.id

-- name: one_window
SELECT m.partition_id, m.txid, m.id, m.transaction_id, m.created_at, m.window_end, m.payload
FROM queenspark.messages m
WHERE m.partition_id = %(partition_id)s AND m.transaction_id = %(transaction_id)s AND m.queue_id = %(queue_id)s

-- name: timeline_groups
SELECT g.id, g.name, g.start_txid, g.start_id, g.skip_until FROM queenspark.groups g
WHERE g.queue_id = %(queue_id)s AND (%(group)s::text IS NULL OR g.name = %(group)s) ORDER BY g.name LIMIT %(most)s

-- name: timeline_places
SELECT p.group_id, p.partition_id, p.end_txid, p.end_id, p.pending, p.leased, p.lease_expires_at, p.available_at, p.sought,
       CASE WHEN p.held_lease_id = p.lease_id THEN p.lease_holder END AS lease_holder,
       CASE WHEN p.held_lease_id = p.lease_id THEN p.leased_at END AS leased_at, clock_timestamp() AS now
FROM queenspark.places p
WHERE p.group_id = ANY (%(group_ids)s) AND p.partition_id = ANY (%(partition_ids)s)

-- name: timeline_attempts
SELECT a.group_id, a.id, a.count, a.error FROM queenspark.attempts a
WHERE a.group_id = ANY (%(group_ids)s) AND a.partition_id = ANY (%(partition_ids)s)

-- name: timeline_dead
SELECT d.group_id, d.id, d.attempts, d.error, d.failed_at, d.returned FROM queenspark.dead_letters d
WHERE d.group_id = ANY (%(group_ids)s) AND d.id = ANY (%(ids)s)

-- name: stream_versions
-- The newest body of each version of a stream.
SELECT DISTINCT ON (d.version) d.version, coalesce(d.body, d.computing) AS body,
       (SELECT min(x.created_at) FROM queenspark.definitions x
        WHERE x.stream_id = d.stream_id AND x.version = d.version) AS created_at
FROM queenspark.definitions d WHERE d.stream_id = %(stream_id)s ORDER BY d.version DESC, d.seq DESC LIMIT 100

-- name: note_process
INSERT INTO queenspark.processes (name, kind, version, address)
VALUES (%(name)s, %(kind)s, %(version)s, %(address)s)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, address = excluded.address, seen_at = clock_timestamp()
RETURNING name

-- name: list_processes
SELECT p.name, p.kind, p.version, p.address, p.started_at, p.seen_at FROM queenspark.processes p
WHERE p.seen_at > clock_timestamp() - make_interval(secs => %(seconds)s) ORDER BY p.kind, p.started_at, p.name LIMIT 100

-- name: note_sample
-- The activity of a broker since its previous sample, and the current state of the whole system.
INSERT INTO queenspark.samples (
    at, broker, pushed, popped, acked, failed, delivered, sealed_total, open_windows, lag, dead_letters, safe_time_lag,
    batch_seconds, batch_rows, backpressure, state_bytes)
SELECT date_bin(make_interval(secs => %(step)s), clock_timestamp(), 'epoch'), %(broker)s, %(pushed)s, %(popped)s,
       %(acked)s, %(failed)s, %(delivered)s, s.sealed, s.open, g.lag, g.dead,
       coalesce(extract(epoch FROM clock_timestamp() - (
           SELECT l.at FROM queenspark.looks l WHERE l.txid < (SELECT horizon()) ORDER BY l.at DESC LIMIT 1)), 0),
       coalesce((q.value ->> 'batchSeconds')::float8, 0), coalesce((q.value ->> 'processedRowsPerSecond')::float8, 0),
       coalesce((q.value ->> 'backpressure')::float8, 0), coalesce((q.value ->> 'stateBytes')::float8, 0)::bigint
FROM (SELECT coalesce(sum(windows), 0) AS sealed, coalesce(sum(open_windows), 0) AS open FROM queenspark.stream_stats) s,
     (SELECT coalesce(sum(lag), 0) AS lag, coalesce(sum(dead_letters), 0) AS dead FROM queenspark.group_counts) g,
     (SELECT (SELECT x.value FROM queenspark.pipeline_stats x, queenspark.pipeline p
              WHERE x.key = %(query)s AND p.expires_at > clock_timestamp()) AS value) q
ON CONFLICT (at, broker) DO UPDATE SET pushed = samples.pushed + excluded.pushed, popped = samples.popped + excluded.popped,
    acked = samples.acked + excluded.acked, failed = samples.failed + excluded.failed,
    delivered = samples.delivered + excluded.delivered

-- name: forget_samples
WITH gone AS (DELETE FROM queenspark.processes WHERE seen_at < clock_timestamp() - interval '1 hour')
DELETE FROM queenspark.samples WHERE at < clock_timestamp() - interval '1 hour'

-- name: series
-- All brokers summed, without the incomplete current step.
SELECT s.at, sum(s.pushed)::bigint AS pushed, sum(s.popped)::bigint AS popped, sum(s.acked)::bigint AS acked,
       sum(s.failed)::bigint AS failed, sum(s.delivered)::bigint AS delivered, max(s.sealed_total) AS sealed_total,
       max(s.open_windows) AS open_windows, max(s.lag) AS lag, max(s.dead_letters) AS dead_letters,
       max(s.safe_time_lag) AS safe_time_lag, max(s.batch_seconds) AS batch_seconds, max(s.batch_rows) AS batch_rows,
       max(s.backpressure) AS backpressure, max(s.state_bytes) AS state_bytes
FROM queenspark.samples s
WHERE s.at > clock_timestamp() - make_interval(secs => %(seconds)s)
  AND s.at < date_bin(make_interval(secs => %(step)s), clock_timestamp(), 'epoch')
GROUP BY s.at ORDER BY s.at

-- name: note_queue_rates
-- The rates of a broker, of queues and groups that still exist. Rates lost in a crash are reported again, so there is
-- no need to wait for the disk.
INSERT INTO queenspark.queue_rates (broker, queue_id, group_id, pushed, popped, acked)
SELECT %(broker)s, q.id, coalesce(g.id, 0), u.pushed, u.popped, u.acked
FROM unnest(%(queue)s::text[], %(group)s::text[], %(pushed)s::float8[], %(popped)s::float8[], %(acked)s::float8[])
    AS u(queue, "group", pushed, popped, acked)
CROSS JOIN (SELECT set_config('synchronous_commit', 'off', true)) AS setting
JOIN queenspark.queues q ON q.name = u.queue
LEFT JOIN queenspark.groups g ON g.queue_id = q.id AND g.name = u.group
WHERE u.group IS NULL OR g.id IS NOT NULL
ON CONFLICT (queue_id, group_id, broker) DO UPDATE
SET pushed = excluded.pushed, popped = excluded.popped, acked = excluded.acked, at = clock_timestamp()

-- name: forget_queue_rates
-- Without waiting for a broker that reports just now: two brokers waiting for each other would deadlock.
DELETE FROM queenspark.queue_rates r USING (
    SELECT x.queue_id, x.group_id, x.broker FROM queenspark.queue_rates x
    WHERE x.at < clock_timestamp() - interval '1 minute' FOR UPDATE SKIP LOCKED
) old
WHERE r.queue_id = old.queue_id AND r.group_id = old.group_id AND r.broker = old.broker

-- name: queue_rates
-- The rates of some queues. Pushes include the windows or rows of a stream or job, which the pipeline reports.
SELECT q.id, coalesce(r.pushed, 0) + coalesce(w.sealed, 0) AS pushed, coalesce(r.popped, 0) AS popped,
       coalesce(r.acked, 0) AS acked
FROM unnest(%(ids)s::integer[]) AS q(id)
CROSS JOIN LATERAL (
    SELECT sum(x.pushed) AS pushed, sum(x.popped) AS popped, sum(x.acked) AS acked FROM queenspark.queue_rates x
    WHERE x.queue_id = q.id AND x.at > clock_timestamp() - interval '1 minute'
) r
LEFT JOIN queenspark.streams s ON s.queue_id = q.id
LEFT JOIN queenspark.stream_rates w ON w.stream_id = s.id
    AND EXISTS (SELECT 1 FROM queenspark.pipeline p WHERE p.expires_at > clock_timestamp())

-- name: group_rates
SELECT g.id, coalesce(sum(x.popped), 0) AS popped, coalesce(sum(x.acked), 0) AS acked
FROM unnest(%(queue_ids)s::integer[], %(ids)s::integer[]) AS g(queue_id, id)
LEFT JOIN queenspark.queue_rates x ON x.queue_id = g.queue_id AND x.group_id = g.id
    AND x.at > clock_timestamp() - interval '1 minute'
GROUP BY g.id

-- name: postgres_facts
SELECT current_setting('server_version') AS version, current_setting('max_connections')::integer AS max_connections,
       pg_database_size(current_database()) AS database_bytes,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections

-- name: postgres_connections
SELECT coalesce(nullif(application_name, ''), usename, '') AS application, count(*) AS connections,
       count(*) FILTER (WHERE state = 'active') AS active,
       max(extract(epoch FROM clock_timestamp() - xact_start))::float8 AS oldest_transaction_seconds
FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 50

-- name: postgres_tables
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes, greatest(c.reltuples, 0)::bigint AS rows,
       coalesce(s.n_dead_tup, 0) AS dead_rows
FROM pg_class c LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.relnamespace = 'queenspark'::regnamespace AND c.relkind = 'r' ORDER BY 2 DESC, 1 LIMIT 12
