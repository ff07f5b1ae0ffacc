-- Server-side functions. Each version has its own set, in a database schema found through the search_path of its
-- connections (see functions.py); so functions are called without a schema, all other objects with one.
--
-- Lock order, the same everywhere, to prevent deadlocks:
--   1. groups (discover, seek)   2. places, by (partition_id, group_id)   3. messages' unique keys, sorted
-- pop takes places with SKIP LOCKED and never waits for one. It may hold places that it did not get (see there).
--
-- Each statement of a VOLATILE plpgsql function has its own snapshot (READ COMMITTED): a read after a row lock
-- includes everything committed before the lock was granted. The handover between discover and pop or ack relies on
-- that.

-- Every message below the horizon is final: nothing that commits later sorts below it.
CREATE FUNCTION horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (SELECT generation::bigint << 48 FROM queenspark.system)
           | pg_snapshot_xmin(pg_current_snapshot())::text::bigint
$$;

-- Every message committed before now is below the frontier; every transaction that begins later is above.
CREATE FUNCTION frontier() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (SELECT generation::bigint << 48 FROM queenspark.system)
           | pg_snapshot_xmax(pg_current_snapshot())::text::bigint
$$;

-- The transaction id of this transaction as the first half of a position.
CREATE FUNCTION current_txid() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (SELECT generation::bigint << 48 FROM queenspark.system) | pg_current_xact_id()::text::bigint
$$;

-- Start a new generation if the next transaction id is not above the largest one in the log: after a restore from a
-- dump or a point-in-time recovery, new messages would otherwise sort among old ones. To be called in its own
-- transaction: an older transaction id would be below pushes that are correctly ordered.
CREATE FUNCTION check_generation() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF NOT log_is_ahead() THEN
        RETURN false;
    END IF;
    -- No push may be in flight while positions jump.
    LOCK TABLE queenspark.messages IN SHARE ROW EXCLUSIVE MODE;
    UPDATE queenspark.system SET generation = generation + 1 WHERE log_is_ahead();
    RETURN FOUND;
END
$$;

CREATE FUNCTION log_is_ahead() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(current_txid() <= max(last.txid), false) FROM (
        SELECT (SELECT m.txid FROM queenspark.messages m WHERE m.queue_id = q.id
                ORDER BY m.txid DESC, m.id DESC LIMIT 1) AS txid
        FROM queenspark.queues q
        UNION ALL SELECT max(g.seen_txid) FROM queenspark.groups g
        UNION ALL SELECT max(l.txid) FROM queenspark.looks l
    ) last
$$;

-- The name of a queue that is matched with a caller's scopes. A window queue is accessible with its stream; no scope
-- covers the queues of sinks and temporary jobs.
CREATE FUNCTION scoped_name(p_queue text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN NOT starts_with(p_queue, 'windows:') THEN 'queue:' || p_queue
        WHEN NOT starts_with(p_queue, 'windows:%s') THEN
            'stream:' || replace(replace(split_part(substr(p_queue, 9), '/', 1), '%2F', '/'), '%25', '%')
            || substr(p_queue, 8 + position('/' IN substr(p_queue, 9)))
        END
$$;

-- The position just before the first message of a queue that was created at or after a time.
CREATE FUNCTION position_at(p_queue_id integer, p_time timestamptz, OUT txid bigint, OUT id bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_from bigint := 0;
    v_horizon bigint := horizon();
BEGIN
    SELECT l.horizon INTO v_from FROM queenspark.looks l
    WHERE l.at <= p_time AND l.horizon_at <= p_time ORDER BY l.at DESC LIMIT 1;
    SELECT m.txid, m.id - 1 INTO txid, id FROM queenspark.messages m
    WHERE m.queue_id = p_queue_id AND m.txid >= coalesce(v_from, 0) AND m.created_at >= p_time
    ORDER BY m.txid, m.id LIMIT 1;
    IF txid IS NULL OR txid > v_horizon THEN
        txid := v_horizon;
        id := 0;
    END IF;
END
$$;

-- Return the group of a queue; the first contact creates it. Mode: 'all', 'new', or a start time in p_from.
CREATE FUNCTION ensure_group(p_queue_id integer, p_name text, p_mode text, p_from timestamptz)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_group_id integer;
    v_txid bigint := 0;
    v_id bigint := 0;
BEGIN
    SELECT g.id INTO v_group_id FROM queenspark.groups g WHERE g.queue_id = p_queue_id AND g.name = p_name;
    IF FOUND THEN
        RETURN v_group_id;
    END IF;
    IF p_from IS NOT NULL THEN
        SELECT a.txid, a.id INTO v_txid, v_id FROM position_at(p_queue_id, p_from) a;
    ELSIF p_mode = 'new' THEN
        v_txid := frontier();
    END IF;
    INSERT INTO queenspark.groups AS g (queue_id, name, mode, start_txid, start_id, seen_txid, seen_id)
    VALUES (p_queue_id, p_name, p_mode, v_txid, v_id, v_txid, v_id)
    ON CONFLICT (queue_id, name) DO UPDATE SET name = g.name
    RETURNING g.id INTO v_group_id;
    RETURN v_group_id;
END
$$;

-- Tail the log from the group's discovery position and mark the places with new messages. Returns the number of
-- messages seen. Its cost depends on the pushes since then, not on the number of partitions. Waits for the group,
-- then for places in order, so a transaction that may hold a place must not call it; with p_peek it changes nothing
-- and returns NULL if there is something to discover.
CREATE FUNCTION discover(p_group_id integer, p_peek boolean DEFAULT false)
RETURNS integer
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    g queenspark.groups%ROWTYPE;
    v_count integer;
    v_txid bigint;
    v_id bigint;
    v_partitions bigint[];
    v_now timestamptz;
BEGIN
    SELECT * INTO g FROM queenspark.groups WHERE id = p_group_id;
    IF NOT EXISTS (
        SELECT 1 FROM queenspark.messages m
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
          AND m.txid < (SELECT horizon())
    ) THEN
        RETURN 0;
    END IF;
    IF p_peek THEN
        RETURN NULL;
    END IF;
    SELECT * INTO g FROM queenspark.groups WHERE id = p_group_id FOR NO KEY UPDATE;
    SELECT count(*), (array_agg(t.txid ORDER BY t.txid DESC, t.id DESC))[1],
           (array_agg(t.id ORDER BY t.txid DESC, t.id DESC))[1], array_agg(t.partition_id ORDER BY t.txid, t.id)
    INTO v_count, v_txid, v_id, v_partitions
    FROM (
        SELECT m.txid, m.id, m.partition_id FROM queenspark.messages m
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
          AND m.txid < (SELECT horizon())
        ORDER BY m.txid, m.id LIMIT 10000
    ) t;
    IF v_count = 0 THEN
        -- Another session has just seen them: their places are already marked.
        RETURN 1;
    END IF;
    v_now := clock_timestamp();
    INSERT INTO queenspark.places AS p
        (group_id, partition_id, available_at, cursor_txid, cursor_id, end_txid, end_id)
    SELECT p_group_id, u.id,
           -- The place with the oldest message comes first.
           v_now - make_interval(secs => (v_count - u.first) / 1e6), g.start_txid, g.start_id, g.start_txid, g.start_id
    FROM (
        SELECT x.id, min(x.n) AS first FROM unnest(v_partitions) WITH ORDINALITY AS x(id, n) GROUP BY x.id
    ) u
    WHERE EXISTS (SELECT 1 FROM queenspark.partitions t WHERE t.id = u.id)
    ORDER BY u.id
    ON CONFLICT (group_id, partition_id) DO UPDATE SET available_at = excluded.available_at
    WHERE p.available_at IS NULL;
    UPDATE queenspark.groups SET seen_txid = v_txid, seen_id = v_id WHERE id = p_group_id;
    RETURN v_count;
END
$$;

-- Move messages to the dead letters of a group, and to the queue's dead letter queue if it has one.
CREATE FUNCTION bury(p_group_id integer, p_partition_id bigint, p_txids bigint[], p_ids bigint[], p_errors text[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_queue text;
    v_queue_id integer;
    v_partition text;
    v_target_id bigint;
BEGIN
    -- Pushed messages must be on disk before they are readable, even from within a pop.
    PERFORM set_config('synchronous_commit', 'on', true);
    INSERT INTO queenspark.dead_letters AS d
        (id, group_id, partition_id, txid, created_at, attempts, encrypted, transaction_id, trace_id, error, payload,
         headers)
    SELECT m.id, p_group_id, m.partition_id, m.txid, m.created_at, coalesce(a.count, 0), m.encrypted,
           m.transaction_id, m.trace_id, u.error, m.payload, m.headers
    FROM unnest(p_txids, p_ids, p_errors) AS u(txid, id, error)
    CROSS JOIN LATERAL (
        SELECT m.* FROM queenspark.messages m
        WHERE m.partition_id = p_partition_id AND m.txid = u.txid AND m.id = u.id LIMIT 1
    ) m
    LEFT JOIN LATERAL (
        SELECT a.count FROM queenspark.attempts a
        WHERE a.group_id = p_group_id AND a.partition_id = p_partition_id AND a.id = u.id LIMIT 1
    ) a ON true
    ORDER BY m.id
    ON CONFLICT (group_id, id) DO UPDATE
    SET failed_at = excluded.failed_at, attempts = d.attempts + excluded.attempts, error = excluded.error, returned = false;
    DELETE FROM queenspark.attempts a
    WHERE a.group_id = p_group_id AND a.partition_id = p_partition_id AND (a.id IN (SELECT unnest(p_ids))) IS TRUE;

    SELECT q.dead_letter_queue, t.name INTO v_queue, v_partition
    FROM queenspark.partitions t JOIN queenspark.queues q ON q.id = t.queue_id WHERE t.id = p_partition_id;
    IF v_queue IS NOT NULL THEN
        INSERT INTO queenspark.queues (name) VALUES (v_queue) ON CONFLICT (name) DO NOTHING;
        SELECT id INTO v_queue_id FROM queenspark.queues WHERE name = v_queue;
        INSERT INTO queenspark.partitions (queue_id, name) VALUES (v_queue_id, v_partition)
        ON CONFLICT (queue_id, name) DO NOTHING;
        SELECT id INTO v_target_id FROM queenspark.partitions WHERE queue_id = v_queue_id AND name = v_partition;
        INSERT INTO queenspark.messages
            (txid, id, partition_id, created_at, queue_id, encrypted, transaction_id, trace_id, payload, headers)
        SELECT t.txid, d.new_id, v_target_id, clock_timestamp(), v_queue_id,
               d.encrypted, d.transaction_id, d.trace_id, d.payload, d.headers
        FROM (SELECT current_txid() AS txid OFFSET 0) t, (
            -- Ids in log order, rows in lock order.
            SELECT * FROM (
                SELECT x.*, nextval('queenspark.message_blocks') * 1000 AS new_id FROM (
                    SELECT * FROM queenspark.dead_letters
                    WHERE group_id = p_group_id AND id = ANY (p_ids) AND partition_id = p_partition_id
                    ORDER BY txid, id
                ) x OFFSET 0
            ) y ORDER BY transaction_id
        ) d
        ON CONFLICT (partition_id, transaction_id) DO NOTHING;
    END IF;
END
$$;

-- Skip the messages of a place that must no longer be delivered: expired ones (ttl) are dropped, ones that waited too
-- long (maxWaitTimeSeconds) become dead letters, unless the caller may not bury now. Returns the new cursor, whether
-- there may be more of them, because it processes a few thousand at a time, and whether there are dead letters.
CREATE FUNCTION step_over(
    p_group_id integer, p_partition_id bigint, p_ttl integer, p_max_wait integer, p_may_bury boolean,
    INOUT cursor_txid bigint, INOUT cursor_id bigint, OUT more boolean, OUT dead boolean
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    v_expired timestamptz := clock_timestamp() - make_interval(secs => p_ttl);
    v_waited timestamptz := clock_timestamp() - make_interval(secs => nullif(p_max_wait, 0));
    v_cut timestamptz := greatest(v_expired, v_waited);
    r record;
    v_dead_txids bigint[] := '{}';
    v_dead_ids bigint[] := '{}';
    v_steps integer := 0;
BEGIN
    more := false;
    FOR r IN
        SELECT m.txid, m.id, m.created_at FROM queenspark.messages m
        WHERE m.partition_id = p_partition_id AND (m.txid, m.id) > (cursor_txid, cursor_id)
          AND m.txid < (SELECT horizon())
        ORDER BY m.txid, m.id
    LOOP
        EXIT WHEN r.created_at >= v_cut;
        IF r.created_at < v_waited AND NOT coalesce(r.created_at < v_expired, false) THEN
            v_dead_txids := v_dead_txids || r.txid;
            v_dead_ids := v_dead_ids || r.id;
        END IF;
        cursor_txid := r.txid;
        cursor_id := r.id;
        v_steps := v_steps + 1;
        IF v_steps >= 5000 THEN
            more := true;
            EXIT;
        END IF;
    END LOOP;
    dead := cardinality(v_dead_ids) > 0;
    IF dead AND p_may_bury THEN
        PERFORM bury(p_group_id, p_partition_id, v_dead_txids, v_dead_ids, array_fill(
            'waited longer than maxWaitTimeSeconds'::text, ARRAY[cardinality(v_dead_ids)]));
    END IF;
END
$$;

-- Deliver up to p_batch messages from up to p_partitions ready places of a group (or from one given partition) under
-- one lease. With several lease ids, each lease gets one message of a separate place. With p_auto_ack the messages
-- are acked at once. Places taken together deliver no more than about p_bytes. A lease lasts for p_lease_ms or the
-- queue's lease time; p_holders names the consumer of each lease.
--
-- A last row without a message means that there is more to discover: pop again in a new transaction. This one holds
-- places, perhaps some that it did not get: PostgreSQL keeps the lock of a row that turns out to have changed before
-- it was locked. The same row follows dead letters for a queue: other groups add the same messages to it, perhaps those
-- of other places first, so a transaction that adds those of one place does nothing else.
CREATE FUNCTION pop(
    p_group_id integer, p_batch integer, p_partitions integer, p_lease_ids uuid[], p_auto_ack boolean,
    p_holders text[] DEFAULT NULL, p_partition_id bigint DEFAULT NULL, p_lease_ms bigint DEFAULT NULL, p_bytes bigint DEFAULT 16777216
) RETURNS TABLE (
    lease uuid, message_id bigint, from_partition_id bigint, from_partition text, created_us bigint, is_encrypted boolean,
    retries integer, expired boolean, transaction text, trace text, body text, header_map text
)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    q record;
    v_found queenspark.places[];
    pl queenspark.places;  -- the first of them
    v_fresh boolean;  -- whether it delivers messages for the first time
    v_now timestamptz := clock_timestamp();
    v_expires timestamptz;
    v_leases integer := cardinality(p_lease_ids);
    v_plain boolean;
    v_most integer;  -- places to take in the next round
    v_limit integer;
    v_pending bigint[];
    v_taken integer := 0;
    v_places integer := 0;
    v_count integer;
    v_discovered boolean := p_partition_id IS NOT NULL;
    v_stop_txid bigint := 9223372036854775807;
    v_stop_id bigint := 0;
    v_wait timestamptz;
    v_txid bigint;
    v_id bigint;
    v_over boolean;
    v_dead boolean;
    v_alone boolean;  -- whether nothing was locked before the place
    v_steps integer := 0;
BEGIN
    SELECT x.lease_seconds, x.ttl_seconds, x.max_wait_seconds, x.window_buffer_seconds, x.delayed_seconds,
           x.dead_letter_queue, g.skip_until INTO q
    FROM queenspark.groups g JOIN queenspark.queues x ON x.id = g.queue_id WHERE g.id = p_group_id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group is gone' USING ERRCODE = 'QS001';
    END IF;
    v_plain := q.ttl_seconds IS NULL AND q.max_wait_seconds = 0 AND q.window_buffer_seconds = 0 AND q.delayed_seconds = 0;
    v_most := CASE WHEN v_plain THEN v_leases ELSE 1 END;
    v_expires := v_now + make_interval(secs => coalesce(p_lease_ms / 1000.0, q.lease_seconds));
    IF NOT p_auto_ack THEN
        -- A lease lost in a crash is an expired lease: nothing is lost, so there is no need to wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    IF p_partition_id IS NOT NULL THEN
        INSERT INTO queenspark.places
            (group_id, partition_id, available_at, cursor_txid, cursor_id, end_txid, end_id)
        SELECT g.id, p_partition_id, v_now, g.start_txid, g.start_id, g.start_txid, g.start_id
        FROM queenspark.groups g
        WHERE g.id = p_group_id AND NOT EXISTS (
            SELECT 1 FROM queenspark.places x WHERE x.group_id = g.id AND x.partition_id = p_partition_id)
        FOR SHARE OF g
        ON CONFLICT DO NOTHING;
    END IF;

    WHILE v_taken < p_batch * v_leases AND v_places < p_partitions * v_leases LOOP
        -- A transaction without an id has locked no row.
        v_alone := pg_current_xact_id_if_assigned() IS NULL;
        IF p_partition_id IS NOT NULL THEN
            SELECT * INTO pl FROM queenspark.places p
            WHERE p.group_id = p_group_id AND p.partition_id = p_partition_id
              AND (p.available_at IS NULL OR p.available_at <= v_now) FOR UPDATE SKIP LOCKED;
        ELSIF v_most = 1 THEN
            SELECT * INTO pl FROM queenspark.places p
            WHERE p.group_id = p_group_id AND p.available_at <= v_now
            ORDER BY p.available_at LIMIT 1 FOR UPDATE SKIP LOCKED;
        ELSE
            SELECT array_agg(r.place) INTO v_found FROM (
                SELECT p AS place FROM queenspark.places p
                WHERE p.group_id = p_group_id AND p.available_at <= v_now
                ORDER BY p.available_at LIMIT v_most FOR UPDATE SKIP LOCKED
            ) r;
            pl := v_found[1];
        END IF;
        IF pl.group_id IS NULL THEN
            EXIT WHEN v_discovered OR (v_taken > 0 AND v_leases = 1);
            v_discovered := true;
            v_count := discover(p_group_id, p_peek => pg_current_xact_id_if_assigned() IS NOT NULL);
            IF v_count IS NULL THEN
                RETURN NEXT;
            END IF;
            EXIT WHEN coalesce(v_count, 0) = 0;
            v_now := clock_timestamp();
            CONTINUE;
        END IF;
        IF v_most = 1 THEN
            v_found := ARRAY[pl];
        END IF;
        v_fresh := pl.returned = 0 AND pl.pending = '{}';
        v_wait := NULL;

        IF v_fresh AND NOT v_plain THEN
            IF q.ttl_seconds IS NOT NULL OR q.max_wait_seconds > 0 THEN
                SELECT s.cursor_txid, s.cursor_id, s.more, s.dead AND q.dead_letter_queue IS NOT NULL
                INTO v_txid, v_id, v_over, v_dead
                FROM step_over(p_group_id, pl.partition_id, q.ttl_seconds, q.max_wait_seconds,
                               v_alone OR q.dead_letter_queue IS NULL, pl.cursor_txid, pl.cursor_id) s;
                IF v_dead AND NOT v_alone THEN
                    RETURN NEXT;
                    EXIT;
                END IF;
                IF (v_txid, v_id) <> (pl.cursor_txid, pl.cursor_id) THEN
                    UPDATE queenspark.places p
                    SET available_at = CASE WHEN v_over THEN v_now ELSE p.available_at END,
                        cursor_txid = v_txid, cursor_id = v_id, end_txid = v_txid, end_id = v_id
                    WHERE p.group_id = p_group_id AND p.partition_id = pl.partition_id;
                    IF v_dead THEN
                        RETURN NEXT;
                        EXIT;
                    END IF;
                    v_steps := v_steps + v_over::integer;
                    EXIT WHEN v_steps >= 10;
                    CONTINUE;
                END IF;
            END IF;
            v_stop_txid := 9223372036854775807;
            v_stop_id := 0;
            IF q.window_buffer_seconds > 0 THEN
                SELECT m.created_at + make_interval(secs => q.window_buffer_seconds) INTO v_wait
                FROM queenspark.messages m WHERE m.partition_id = pl.partition_id
                ORDER BY m.txid DESC, m.id DESC LIMIT 1;
                IF v_wait > v_now THEN
                    v_stop_txid := 0;
                END IF;
            END IF;
            IF q.delayed_seconds > 0 AND v_stop_txid > 0 THEN
                SELECT m.txid, m.id, m.created_at + make_interval(secs => q.delayed_seconds) INTO v_txid, v_id, v_wait
                FROM queenspark.messages m
                WHERE m.partition_id = pl.partition_id AND (m.txid, m.id) > (pl.cursor_txid, pl.cursor_id)
                  AND m.created_at > v_now - make_interval(secs => q.delayed_seconds)
                ORDER BY m.txid, m.id LIMIT 1;
                v_stop_txid := coalesce(v_txid, v_stop_txid);
                v_stop_id := coalesce(v_id, v_stop_id);
            END IF;
        END IF;

        v_limit := CASE WHEN v_leases > 1 THEN p_batch ELSE p_batch - v_taken END;
        v_pending := pl.pending;
        IF cardinality(v_found) > 1 THEN
            v_pending := ARRAY(SELECT x.id FROM unnest(v_found) AS r CROSS JOIN LATERAL unnest(r.pending) AS x(id));
        END IF;
        RETURN QUERY
        WITH batch AS MATERIALIZED (
            SELECT c.* FROM (
                -- Streamed row by row, place by place, so that no place is read once the batch is full.
                SELECT least(v_taken + row_number() OVER w, v_leases) AS n, r.partition_id, t.name,
                       r.leased <> '{}' AND r.lease_expires_at <= v_now AS expired, m.*,
                       sum(octet_length(m.payload) + coalesce(octet_length(m.headers), 0)) OVER w AS bytes
                FROM unnest(v_found) AS r
                JOIN queenspark.partitions t ON t.id = r.partition_id
                CROSS JOIN LATERAL (
                    -- Returned dead letters come first, by themselves.
                    (SELECT d.txid, d.id, d.created_at, d.encrypted, d.attempts, d.transaction_id, d.trace_id, d.payload,
                            d.headers
                     FROM queenspark.dead_letters d
                     WHERE r.returned > 0 AND d.group_id = r.group_id AND d.partition_id = r.partition_id AND d.returned
                     ORDER BY d.txid, d.id LIMIT v_limit)
                    UNION ALL
                    -- Then unacked messages that were delivered before, else those behind the cursor.
                    (SELECT m.txid, m.id, m.created_at, m.encrypted, CASE WHEN r.pending = '{}' THEN 0 ELSE coalesce((
                            SELECT a.count FROM queenspark.attempts a
                            WHERE a.group_id = r.group_id AND a.partition_id = r.partition_id AND a.id = m.id), 0) END,
                            m.transaction_id, m.trace_id, m.payload, m.headers
                     FROM queenspark.messages m
                     WHERE r.returned = 0 AND m.partition_id = r.partition_id
                       AND (m.txid, m.id) > (r.cursor_txid, r.cursor_id) AND m.txid < (SELECT horizon())
                       AND m.txid <= CASE WHEN r.pending = '{}' THEN 9223372036854775807 ELSE r.end_txid END
                       AND (m.txid, m.id) < (v_stop_txid, v_stop_id)
                       AND (r.pending = '{}' OR m.id IN (SELECT unnest(v_pending)))
                       AND (q.skip_until IS NULL OR r.sought OR r.pending <> '{}' OR m.window_end > q.skip_until)
                     ORDER BY m.txid, m.id LIMIT v_limit)
                ) m
                WINDOW w AS (ROWS UNBOUNDED PRECEDING)
            ) c
            -- The first one is always delivered: no message has headers of p_bytes.
            WHERE c.bytes - octet_length(c.payload) < p_bytes
            LIMIT CASE WHEN v_leases > 1 THEN NULL ELSE v_limit END
        ), leased AS (
            UPDATE queenspark.places p
            SET lease_id = p_lease_ids[b.n], lease_expires_at = v_expires, held_lease_id = p_lease_ids[b.n],
                lease_holder = p_holders[b.n], leased_at = v_now, retry_at = NULL,
                available_at = CASE
                    WHEN NOT (p_auto_ack AND v_fresh) THEN v_expires
                    WHEN cardinality(b.ids) = v_limit OR b.bytes >= p_bytes THEN clock_timestamp()
                    WHEN v_wait > v_now THEN v_wait END,
                cursor_txid = CASE WHEN p_auto_ack AND v_fresh THEN b.last[1] ELSE p.cursor_txid END,
                cursor_id = CASE WHEN p_auto_ack AND v_fresh THEN b.last[2] ELSE p.cursor_id END,
                end_txid = CASE WHEN p.returned = 0 AND p.pending = '{}' THEN b.last[1] ELSE p.end_txid END,
                end_id = CASE WHEN p.returned = 0 AND p.pending = '{}' THEN b.last[2] ELSE p.end_id END,
                pending = CASE
                    WHEN p.returned > 0 OR p.pending <> '{}' THEN p.pending
                    WHEN p_auto_ack THEN '{}' ELSE b.ids END,
                leased = CASE WHEN p_auto_ack AND v_fresh THEN '{}' ELSE b.ids END,
                acked_at = CASE WHEN p_auto_ack AND v_fresh THEN v_now ELSE p.acked_at END
            FROM (
                SELECT x.partition_id, x.n, array_agg(x.id) AS ids, max(ARRAY[x.txid, x.id]) AS last,
                       max(x.bytes) AS bytes
                FROM batch x GROUP BY x.partition_id, x.n
            ) b
            WHERE p.group_id = p_group_id AND p.partition_id = b.partition_id
        )
        SELECT p_lease_ids[b.n], b.id, b.partition_id, b.name, (extract(epoch FROM b.created_at) * 1000000)::bigint, b.encrypted,
               b.attempts, b.expired, b.transaction_id::text, b.trace_id, b.payload, b.headers
        FROM batch b ORDER BY b.txid, b.id;
        GET DIAGNOSTICS v_count = ROW_COUNT;

        v_most := 1;
        IF v_count > 0 THEN
            v_taken := v_taken + v_count;
            v_places := v_places + CASE WHEN v_leases > 1 THEN v_count ELSE cardinality(v_found) END;
            -- As many places as will probably fill the batch; one by one if some of them may turn out to be empty.
            IF v_plain AND v_leases = 1 AND NOT p_auto_ack AND v_count >= cardinality(v_found) THEN
                v_most := greatest(
                    1, least(p_partitions - v_places, (p_batch - v_taken) * cardinality(v_found) / v_count));
            END IF;
            IF p_auto_ack AND NOT v_fresh THEN
                SELECT * INTO pl FROM queenspark.places p
                WHERE p.group_id = p_group_id AND p.partition_id = pl.partition_id;
                PERFORM settle(pl, pl.leased, '{}', NULL);
            END IF;
            EXIT WHEN p_partition_id IS NOT NULL;
        ELSIF v_fresh THEN
            v_txid := pl.cursor_txid;
            v_id := pl.cursor_id;
            v_over := false;
            IF q.skip_until IS NOT NULL AND NOT pl.sought THEN
                -- Skip the windows excluded by the group's seek, a few thousand at a time.
                SELECT coalesce((max(ARRAY[x.txid, x.id]) FILTER (WHERE x.skipped))[1], v_txid),
                       coalesce((max(ARRAY[x.txid, x.id]) FILTER (WHERE x.skipped))[2], v_id),
                       count(*) FILTER (WHERE x.skipped) = 5000
                INTO v_txid, v_id, v_over
                FROM (
                    SELECT a.txid, a.id, bool_and(a.window_end <= q.skip_until) OVER (ORDER BY a.txid, a.id) AS skipped
                    FROM (
                        SELECT m.txid, m.id, m.window_end FROM queenspark.messages m
                        WHERE m.partition_id = pl.partition_id AND (m.txid, m.id) > (pl.cursor_txid, pl.cursor_id)
                          AND m.txid < (SELECT horizon())
                        ORDER BY m.txid, m.id LIMIT 5000
                    ) a
                ) x;
            END IF;
            UPDATE queenspark.places p
            SET available_at = CASE WHEN v_over THEN v_now WHEN v_wait > v_now THEN v_wait END, leased = '{}', lease_id = NULL,
                lease_expires_at = NULL, retry_at = NULL, cursor_txid = v_txid, cursor_id = v_id, end_txid = v_txid, end_id = v_id
            WHERE p.group_id = p_group_id AND p.partition_id = pl.partition_id;
            EXIT WHEN p_partition_id IS NOT NULL;
        ELSE
            -- Deleted meanwhile; check the next one.
            UPDATE queenspark.places p
            SET returned = 0, pending = CASE WHEN p.returned > 0 THEN p.pending ELSE '{}' END,
                cursor_txid = CASE WHEN p.returned > 0 THEN p.cursor_txid ELSE p.end_txid END,
                cursor_id = CASE WHEN p.returned > 0 THEN p.cursor_id ELSE p.end_id END
            WHERE p.group_id = p_group_id AND p.partition_id = pl.partition_id;
        END IF;
    END LOOP;
END
$$;

-- When a parked poll (of a group, optionally of one partition) should check again: soon if messages wait above the
-- horizon, else when the next place becomes available.
CREATE FUNCTION next_check(
    p_group_id integer, p_partition_id bigint DEFAULT NULL, OUT above_horizon boolean, OUT wait_ms bigint
) LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
BEGIN
    IF p_partition_id IS NULL THEN
        SELECT EXISTS (
            SELECT 1 FROM queenspark.messages m
            WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
        ) INTO above_horizon FROM queenspark.groups g WHERE g.id = p_group_id;
    ELSE
        SELECT EXISTS (
            SELECT 1 FROM queenspark.messages m
            WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.end_txid, p.end_id)
              AND m.txid >= (SELECT horizon())
        ) INTO above_horizon
        FROM queenspark.places p WHERE p.group_id = p_group_id AND p.partition_id = p_partition_id;
    END IF;
    SELECT greatest(0, ceil(extract(epoch FROM p.available_at - clock_timestamp()) * 1000)) INTO wait_ms
    FROM queenspark.places p
    WHERE p.group_id = p_group_id AND p.available_at IS NOT NULL
      AND (p_partition_id IS NULL OR p.partition_id = p_partition_id)
    ORDER BY p.available_at LIMIT 1;
END
$$;

-- Record the outcome of the messages of a lease: completed ones are not redelivered, failed ones wait for p_retry_at.
-- `released`: the lease covers nothing more, or was opened by a failure. `more`: the place will deliver again before
-- the lease would have expired.
CREATE FUNCTION settle(
    pl queenspark.places, p_done bigint[], p_failed bigint[], p_retry_at timestamptz, OUT released boolean, OUT more boolean
) LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_count integer;
BEGIN
    IF pl.returned > 0 THEN
        DELETE FROM queenspark.dead_letters d
        WHERE d.group_id = pl.group_id AND d.returned AND d.id = ANY (p_done) AND d.id NOT IN (SELECT unnest(pl.pending));
        GET DIAGNOSTICS v_count = ROW_COUNT;
        pl.returned := pl.returned - v_count;
    END IF;
    -- IS TRUE keeps IN from becoming a join, or a scan of the array for each row: it uses a hash table.
    DELETE FROM queenspark.attempts a
    WHERE a.group_id = pl.group_id AND a.partition_id = pl.partition_id AND (a.id IN (SELECT unnest(p_done))) IS TRUE;
    pl.leased := CASE WHEN pl.leased = p_done THEN '{}' ELSE ARRAY(
        SELECT x.id FROM unnest(pl.leased) AS x(id) WHERE x.id NOT IN (SELECT unnest(p_done || p_failed))) END;
    pl.pending := CASE WHEN pl.pending = p_done THEN '{}' ELSE ARRAY(
        SELECT x.id FROM unnest(pl.pending) AS x(id) WHERE x.id NOT IN (SELECT unnest(p_done))) END;
    pl.retry_at := greatest(pl.retry_at, p_retry_at);
    IF pl.pending = '{}' THEN
        pl.cursor_txid := pl.end_txid;
        pl.cursor_id := pl.end_id;
    END IF;
    IF pl.leased <> '{}' THEN
        pl.available_at := CASE WHEN p_retry_at IS NULL THEN pl.available_at ELSE pl.retry_at END;
    ELSIF pl.pending <> '{}' THEN
        pl.available_at := coalesce(pl.retry_at, v_now);
    ELSE
        pl.available_at := CASE WHEN pl.returned > 0 OR EXISTS (
            SELECT 1 FROM queenspark.messages m
            WHERE m.partition_id = pl.partition_id AND (m.txid, m.id) > (pl.end_txid, pl.end_id)
        ) THEN v_now END;
    END IF;
    UPDATE queenspark.places p
    SET cursor_txid = pl.cursor_txid, cursor_id = pl.cursor_id, pending = pl.pending, leased = pl.leased,
        available_at = pl.available_at, retry_at = pl.retry_at, returned = pl.returned, acked_at = v_now
    WHERE p.group_id = pl.group_id AND p.partition_id = pl.partition_id;
    released := pl.leased = '{}' OR p_retry_at IS NOT NULL;
    more := coalesce(pl.available_at < pl.lease_expires_at, false);
END
$$;

-- Ack messages of one place under its live lease. Outcomes, in the order of the items:
--   completed, retry, dead, repeated (already acked; harmless)
--   unleased (the lease does not cover that message), unknown
CREATE FUNCTION judge(
    pl queenspark.places, p_transactions text[], p_statuses text[], p_errors text[], p_final boolean
) RETURNS TABLE (outcome text, attempts integer, released boolean, more boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    q record;
    v_now timestamptz := clock_timestamp();
    v_txids bigint[];
    v_ids bigint[];
    v_outcomes text[];
    v_attempts integer[];
    v_dead integer;
    v_done bigint[];
    v_failed bigint[];
    v_retry_at timestamptz;
BEGIN
    -- The inner outcomes `failed` and `buried` become `retry` and `dead`.
    SELECT array_agg(j.txid ORDER BY j.n), array_agg(j.id ORDER BY j.n), array_agg(0), array_agg(CASE
               WHEN j.id IS NULL THEN 'unknown'
               WHEN j.id NOT IN (SELECT unnest(pl.leased)) THEN CASE
                   WHEN j.id IN (SELECT unnest(pl.pending)) OR (j.txid, j.id) > (pl.end_txid, pl.end_id)
                   THEN 'unleased' ELSE 'repeated' END
               WHEN j.nth > 1 THEN 'repeated'
               WHEN j.status IN ('completed', 'retry') THEN j.status
               WHEN j.id IN (SELECT unnest(pl.pending)) THEN 'failed'
               ELSE 'dead' END ORDER BY j.n)
    INTO v_txids, v_ids, v_attempts, v_outcomes
    FROM (
        SELECT u.n, u.status, m.txid, i.id, row_number() OVER (PARTITION BY i.id ORDER BY u.n) AS nth
        FROM unnest(p_transactions, p_statuses) WITH ORDINALITY AS u(transaction_id, status, n)
        LEFT JOIN LATERAL (
            SELECT m.txid, m.id FROM queenspark.messages m
            WHERE m.partition_id = pl.partition_id AND m.transaction_id = u.transaction_id
        ) m ON true
        CROSS JOIN LATERAL (
            SELECT CASE WHEN m.id IS NOT NULL OR pl.returned = 0 THEN m.id ELSE (
                SELECT d.id FROM queenspark.dead_letters d
                WHERE d.group_id = pl.group_id AND d.partition_id = pl.partition_id AND d.transaction_id = u.transaction_id
                ORDER BY d.returned DESC LIMIT 1
            ) END AS id
        ) i
    ) j;

    IF v_outcomes && ARRAY['failed', 'dead'] THEN
        INSERT INTO queenspark.attempts AS a (group_id, partition_id, id, count, error)
        SELECT pl.group_id, pl.partition_id, u.id, 1, u.error
        FROM unnest(v_ids, v_outcomes, p_errors) AS u(id, outcome, error) WHERE u.outcome = 'failed'
        ON CONFLICT (group_id, partition_id, id) DO UPDATE SET count = a.count + 1, error = excluded.error;
        -- Returned dead letters that failed again are dead again.
        UPDATE queenspark.dead_letters d
        SET returned = false, attempts = d.attempts + 1, failed_at = v_now, error = coalesce(u.error, d.error)
        FROM unnest(v_ids, v_outcomes, p_errors) AS u(id, outcome, error)
        WHERE u.outcome = 'dead' AND d.group_id = pl.group_id AND d.id = u.id;
        SELECT x.dead_letters_enabled, x.retry_limit, x.retry_delay_ms INTO q
        FROM queenspark.partitions t JOIN queenspark.queues x ON x.id = t.queue_id WHERE t.id = pl.partition_id;
        SELECT array_agg(c.attempts ORDER BY c.n), array_agg(CASE
                   WHEN c.outcome <> 'failed' THEN c.outcome
                   WHEN c.status = 'dlq' OR p_final OR (q.dead_letters_enabled AND c.attempts > q.retry_limit) THEN 'buried'
                   ELSE 'retry' END ORDER BY c.n), count(*) FILTER (WHERE c.outcome = 'dead')
        INTO v_attempts, v_outcomes, v_dead
        FROM (
            SELECT u.*, coalesce(CASE u.outcome
                WHEN 'failed' THEN (
                    SELECT a.count FROM queenspark.attempts a
                    WHERE a.group_id = pl.group_id AND a.partition_id = pl.partition_id AND a.id = u.id)
                WHEN 'dead' THEN (
                    SELECT d.attempts FROM queenspark.dead_letters d WHERE d.group_id = pl.group_id AND d.id = u.id)
                END, 0) AS attempts
            FROM unnest(v_ids, v_outcomes, p_statuses) WITH ORDINALITY AS u(id, outcome, status, n) OFFSET 0
        ) c;
        pl.returned := pl.returned - v_dead;
        SELECT max(v_now + make_interval(secs => least(
            3600, q.retry_delay_ms / 1000.0 * power(2, least(u.attempts - 1, 20))))) INTO v_retry_at
        FROM unnest(v_outcomes, v_attempts) AS u(outcome, attempts) WHERE u.outcome = 'retry' AND u.attempts > 0;
        PERFORM bury(pl.group_id, pl.partition_id, array_agg(u.txid), array_agg(u.id), array_agg(coalesce(
            u.error, CASE u.status WHEN 'dlq' THEN 'sent to the dead letters by its consumer'
                     ELSE 'failed without a reason' END)))
        FROM unnest(v_txids, v_ids, v_outcomes, p_statuses, p_errors) AS u(txid, id, outcome, status, error)
        WHERE u.outcome = 'buried' HAVING count(*) > 0;
    END IF;

    v_done := ARRAY(
        SELECT u.id FROM unnest(v_ids, v_outcomes) AS u(id, outcome) WHERE u.outcome IN ('completed', 'buried', 'dead'));
    v_failed := ARRAY(SELECT u.id FROM unnest(v_ids, v_outcomes) AS u(id, outcome) WHERE u.outcome = 'retry');
    IF 'unknown' = ANY (v_outcomes) THEN
        -- A message deleted while leased can no longer be acked: the lease continues without it.
        v_done := v_done || ARRAY(
            SELECT x.id FROM unnest(pl.leased) AS x(id)
            WHERE x.id NOT IN (
                SELECT m.id FROM queenspark.messages m
                WHERE m.partition_id = pl.partition_id AND (m.txid, m.id) > (pl.cursor_txid, pl.cursor_id)
                  AND (m.txid, m.id) <= (pl.end_txid, pl.end_id))
              AND x.id NOT IN (
                SELECT d.id FROM queenspark.dead_letters d
                WHERE d.group_id = pl.group_id AND d.partition_id = pl.partition_id AND d.returned));
    END IF;
    IF v_done = '{}' AND v_failed = '{}' THEN
        released := pl.leased = '{}';
        more := false;
    ELSE
        IF v_failed <> '{}' THEN
            v_retry_at := greatest(v_retry_at, v_now);
        END IF;
        SELECT s.* INTO released, more FROM settle(pl, v_done, v_failed, v_retry_at) s;
    END IF;
    RETURN QUERY SELECT CASE u.outcome WHEN 'buried' THEN 'dead' ELSE u.outcome END, u.attempts, released, more
    FROM unnest(v_outcomes, v_attempts) AS u(outcome, attempts);
END
$$;

-- Ack messages of several places under their leases; each place has the items from `first` to `last`. Outcomes are
-- those of judge, and stale (the lease is not live). Places with only completed messages are acked at once.
CREATE FUNCTION ack(
    p_partition_ids bigint[], p_groups text[], p_lease_ids uuid[], p_firsts integer[], p_lasts integer[],
    p_transactions text[], p_statuses text[], p_errors text[], p_final boolean
) RETURNS TABLE (outcome text, attempts integer, released boolean, more boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_numbers integer[];
    v_groups integer[];
    v_partitions bigint[];
    v_acked_more boolean[];
    v_more boolean[] := array_fill(NULL::boolean, ARRAY[cardinality(p_partition_ids)]);  -- of the acked places
    pl queenspark.places;
BEGIN
    -- All places are locked here, in order; later statements see everything committed before. Without OFFSET the
    -- outer conditions would be pushed into the subquery, and only the rows that pass them would be locked.
    SELECT array_agg(x.n), array_agg(x.group_id), array_agg(x.partition_id)
    INTO v_numbers, v_groups, v_partitions
    FROM (
        SELECT u.n, u.lease_id AS given, u.first, u.last, p.*
        FROM unnest(p_partition_ids, p_groups, p_lease_ids, p_firsts, p_lasts)
            WITH ORDINALITY AS u(partition_id, name, lease_id, first, last, n)
        JOIN queenspark.partitions t ON t.id = u.partition_id
        JOIN queenspark.groups g ON g.queue_id = t.queue_id AND g.name = u.name
        JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = t.id
        ORDER BY p.partition_id, p.group_id OFFSET 0 FOR UPDATE OF p
    ) x
    WHERE x.lease_id = x.given AND x.lease_expires_at > v_now AND x.returned = 0 AND x.leased = x.pending
      AND 'completed' = ALL (p_statuses[x.first:x.last])
      AND x.leased = ARRAY(
          SELECT m.id FROM unnest(p_transactions[x.first:x.last]) WITH ORDINALITY AS i(transaction_id, n)
          JOIN queenspark.messages m ON m.partition_id = x.partition_id AND m.transaction_id = i.transaction_id
          ORDER BY i.n)
      AND cardinality(x.leased) = x.last - x.first + 1
      AND NOT EXISTS (
          SELECT 1 FROM queenspark.attempts a WHERE a.group_id = x.group_id AND a.partition_id = x.partition_id);
    IF v_numbers IS NOT NULL THEN
        WITH acked AS (
            UPDATE queenspark.places p
            SET cursor_txid = p.end_txid, cursor_id = p.end_id, pending = '{}', leased = '{}', acked_at = v_now,
                available_at = CASE WHEN EXISTS (
                    SELECT 1 FROM queenspark.messages m
                    WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.end_txid, p.end_id)
                ) THEN v_now END
            FROM unnest(v_numbers, v_groups, v_partitions) AS w(n, group_id, partition_id)
            WHERE p.group_id = w.group_id AND p.partition_id = w.partition_id AND p.leased <> '{}'
            RETURNING w.n, p.available_at IS NOT NULL AS more
        )
        SELECT array_agg(a.n), array_agg(a.more) INTO v_numbers, v_acked_more FROM acked a;
        FOR i IN 1 .. cardinality(v_numbers) LOOP
            v_more[v_numbers[i]] := v_acked_more[i];
        END LOOP;
        IF array_position(v_more, NULL) IS NULL THEN
            RETURN QUERY SELECT 'completed', 0, true, v_more[u.n]
            FROM unnest(p_firsts, p_lasts) WITH ORDINALITY AS u(first, last, n)
            CROSS JOIN generate_series(u.first, u.last) AS i ORDER BY i;
            RETURN;
        END IF;
    END IF;
    FOR n IN 1 .. cardinality(p_partition_ids) LOOP
        IF v_more[n] IS NOT NULL THEN
            RETURN QUERY SELECT 'completed', 0, true, v_more[n] FROM generate_series(p_firsts[n], p_lasts[n]);
            CONTINUE;
        END IF;
        SELECT p.* INTO pl FROM queenspark.partitions t
        JOIN queenspark.groups g ON g.queue_id = t.queue_id AND g.name = p_groups[n]
        JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = t.id
        WHERE t.id = p_partition_ids[n];
        IF FOUND AND pl.lease_expires_at > v_now AND pl.lease_id = coalesce(p_lease_ids[n], pl.lease_id) THEN
            RETURN QUERY SELECT j.* FROM judge(
                pl, p_transactions[p_firsts[n]:p_lasts[n]], p_statuses[p_firsts[n]:p_lasts[n]],
                p_errors[p_firsts[n]:p_lasts[n]], p_final) j;
        ELSE
            RETURN QUERY SELECT CASE WHEN pl.group_id IS NULL THEN 'unknown' ELSE 'stale' END, 0, false, false
            FROM generate_series(p_firsts[n], p_lasts[n]);
        END IF;
    END LOOP;
END
$$;

-- Extend a live lease; never shortens it. p_seconds NULL: the queue's lease time.
CREATE FUNCTION extend(p_lease_id uuid, p_seconds double precision, OUT places integer, OUT expires_at timestamptz)
LANGUAGE sql AS $$
    WITH live AS (
        SELECT p.group_id, p.partition_id, greatest(p.lease_expires_at,
               clock_timestamp() + make_interval(secs => coalesce(p_seconds, q.lease_seconds))) AS until
        FROM queenspark.places p JOIN queenspark.groups g ON g.id = p.group_id
        JOIN queenspark.queues q ON q.id = g.queue_id
        WHERE p.lease_id = p_lease_id AND p.lease_expires_at > clock_timestamp() AND cardinality(p.leased) > 0
        ORDER BY p.partition_id, p.group_id OFFSET 0 FOR UPDATE OF p
    ), extended AS (
        UPDATE queenspark.places p
        SET lease_expires_at = live.until,
            available_at = CASE WHEN p.retry_at IS NULL THEN live.until ELSE p.available_at END
        FROM live WHERE p.group_id = live.group_id AND p.partition_id = live.partition_id
        RETURNING p.lease_expires_at
    )
    SELECT count(*)::integer, min(lease_expires_at) FROM extended
$$;

-- Release a lease without acks: its messages are ready for the next pop, and no attempt is counted.
CREATE FUNCTION release(p_lease_id uuid) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_count integer;
BEGIN
    PERFORM 1 FROM queenspark.places p WHERE p.lease_id = p_lease_id
    ORDER BY p.partition_id, p.group_id FOR UPDATE;
    UPDATE queenspark.places p
    SET lease_id = NULL, lease_expires_at = NULL, leased = '{}', available_at = coalesce(p.retry_at, clock_timestamp())
    WHERE p.lease_id = p_lease_id AND cardinality(p.leased) > 0;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END
$$;

-- The dead letters that match a filter; NULL matches all.
CREATE FUNCTION chosen_dead_letters(
    p_queue text, p_group text, p_partition text, p_partition_id bigint, p_transaction_id text,
    p_from timestamptz, p_to timestamptz
) RETURNS SETOF queenspark.dead_letters LANGUAGE sql STABLE AS $$
    SELECT d.* FROM queenspark.dead_letters d
    JOIN queenspark.groups g ON g.id = d.group_id
    JOIN queenspark.partitions t ON t.id = d.partition_id JOIN queenspark.queues q ON q.id = t.queue_id
    WHERE NOT d.returned AND (p_queue IS NULL OR q.name = p_queue) AND (p_group IS NULL OR g.name = p_group)
      AND (p_partition IS NULL OR t.name = p_partition) AND (p_partition_id IS NULL OR d.partition_id = p_partition_id)
      AND (p_transaction_id IS NULL OR d.transaction_id = p_transaction_id)
      AND (p_from IS NULL OR d.failed_at >= p_from) AND (p_to IS NULL OR d.failed_at < p_to)
$$;

-- Return dead letters to their group, and to no other group, for redelivery. Returns the partition of each.
CREATE FUNCTION put_back(
    p_queue text, p_group text, p_partition text, p_partition_id bigint, p_transaction_id text,
    p_from timestamptz, p_to timestamptz
) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    v_groups integer[];
    v_ids bigint[];
BEGIN
    SELECT array_agg(c.group_id), array_agg(c.id) INTO v_groups, v_ids
    FROM chosen_dead_letters(
        p_queue, p_group, p_partition, p_partition_id, p_transaction_id, p_from, p_to) c;
    INSERT INTO queenspark.places (group_id, partition_id, cursor_txid, cursor_id, end_txid, end_id)
    SELECT DISTINCT d.group_id, d.partition_id, g.start_txid, g.start_id, g.start_txid, g.start_id
    FROM unnest(v_groups, v_ids) AS u(group_id, id)
    JOIN queenspark.dead_letters d ON d.group_id = u.group_id AND d.id = u.id
    JOIN queenspark.groups g ON g.id = d.group_id
    ORDER BY d.partition_id, d.group_id
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM queenspark.places p
    WHERE EXISTS (
        SELECT 1 FROM unnest(v_groups, v_ids) AS u(group_id, id)
        JOIN queenspark.dead_letters d ON d.group_id = u.group_id AND d.id = u.id
        WHERE d.group_id = p.group_id AND d.partition_id = p.partition_id)
    ORDER BY p.partition_id, p.group_id FOR UPDATE;
    RETURN QUERY
    WITH back AS (
        UPDATE queenspark.dead_letters d SET returned = true FROM unnest(v_groups, v_ids) AS u(group_id, id)
        WHERE d.group_id = u.group_id AND d.id = u.id AND NOT d.returned
        RETURNING d.group_id, d.partition_id
    ), marked AS (
        UPDATE queenspark.places p
        SET returned = p.returned + b.count::integer,
            available_at = CASE WHEN cardinality(p.leased) > 0 AND p.lease_expires_at > clock_timestamp()
                THEN p.available_at ELSE coalesce(p.retry_at, clock_timestamp()) END
        FROM (SELECT group_id, partition_id, count(*) AS count FROM back GROUP BY group_id, partition_id) b
        WHERE p.group_id = b.group_id AND p.partition_id = b.partition_id
    )
    SELECT b.partition_id FROM back b;
END
$$;

-- Move a group of a queue (or its place in one partition) to a position. Leases are revoked; older acks are rejected.
-- Returns whether the group (and partition) exists.
CREATE FUNCTION seek(p_group_id integer, p_partition_id bigint, p_txid bigint, p_id bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    g queenspark.groups%ROWTYPE;
BEGIN
    SELECT * INTO g FROM queenspark.groups WHERE id = p_group_id FOR NO KEY UPDATE;
    PERFORM 1 FROM queenspark.places p
    WHERE p.group_id = p_group_id AND (p_partition_id IS NULL OR p.partition_id = p_partition_id)
    ORDER BY p.partition_id FOR UPDATE;
    IF p_partition_id IS NULL THEN
        UPDATE queenspark.groups
        SET start_txid = p_txid, start_id = p_id, seen_txid = p_txid, seen_id = p_id, skip_until = NULL
        WHERE id = p_group_id;
    ELSE
        INSERT INTO queenspark.places
            (group_id, partition_id, cursor_txid, cursor_id, end_txid, end_id)
        VALUES (p_group_id, p_partition_id, p_txid, p_id, p_txid, p_id)
        ON CONFLICT DO NOTHING;
    END IF;
    UPDATE queenspark.places p
    SET cursor_txid = p_txid, cursor_id = p_id, end_txid = p_txid, end_id = p_id, pending = '{}', leased = '{}',
        lease_id = NULL, lease_expires_at = NULL, retry_at = NULL, sought = p_partition_id IS NOT NULL,
        available_at = CASE WHEN p_partition_id IS NOT NULL OR p.returned > 0 THEN clock_timestamp() END
    WHERE p.group_id = p_group_id AND (p_partition_id IS NULL OR p.partition_id = p_partition_id);
    DELETE FROM queenspark.attempts a
    WHERE a.group_id = p_group_id AND (p_partition_id IS NULL OR a.partition_id = p_partition_id);
END
$$;

-- Move a group of a window queue: in each partition to just before its first window that ends after a time, or to the
-- end if there is none. Until the next seek, pop skips windows that end at or before it, whenever they arrive. Leases
-- are revoked; older acks are rejected.
CREATE FUNCTION seek_windows(p_group_id integer, p_time timestamptz)
RETURNS void LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    g queenspark.groups%ROWTYPE;
    v_horizon bigint;
    v_now timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO g FROM queenspark.groups WHERE id = p_group_id FOR NO KEY UPDATE;
    -- Windows above the horizon are left to discovery, even visible ones.
    v_horizon := horizon();
    PERFORM 1 FROM queenspark.places p WHERE p.group_id = p_group_id ORDER BY p.partition_id FOR UPDATE;
    INSERT INTO queenspark.places AS p
        (group_id, partition_id, available_at, cursor_txid, cursor_id, end_txid, end_id)
    SELECT p_group_id, t.id,
           -- The oldest window first.
           CASE WHEN w.txid IS NOT NULL
               THEN v_now - make_interval(secs => (count(*) OVER () - rank() OVER (ORDER BY w.txid, w.id)) / 1e6) END,
           coalesce(w.txid, v_horizon), coalesce(w.id - 1, 0), coalesce(w.txid, v_horizon), coalesce(w.id - 1, 0)
    FROM queenspark.partitions t LEFT JOIN (
        SELECT DISTINCT ON (m.partition_id) m.partition_id, m.txid, m.id FROM queenspark.messages m
        WHERE m.queue_id = g.queue_id AND m.window_end > p_time AND m.txid < v_horizon
        ORDER BY m.partition_id, m.txid, m.id
    ) w ON w.partition_id = t.id
    WHERE t.queue_id = g.queue_id ORDER BY t.id
    ON CONFLICT (group_id, partition_id) DO UPDATE
    SET available_at = coalesce(excluded.available_at, CASE WHEN p.returned > 0 THEN v_now END),
        cursor_txid = excluded.cursor_txid, cursor_id = excluded.cursor_id, end_txid = excluded.end_txid,
        end_id = excluded.end_id, pending = '{}', leased = '{}', lease_id = NULL, lease_expires_at = NULL,
        retry_at = NULL, sought = false;
    UPDATE queenspark.groups SET seen_txid = v_horizon, seen_id = 0, skip_until = NULL WHERE id = p_group_id;
    -- By itself: the trigger groups_sought takes a move that leaves the time for one of a version that does not know it.
    UPDATE queenspark.groups SET skip_until = p_time WHERE id = p_group_id;
    DELETE FROM queenspark.attempts a WHERE a.group_id = p_group_id;
END
$$;

-- The fields of a window message that SQL reads, as defined in formats/window_message.py.
CREATE FUNCTION window_sources(p_payload text)
RETURNS TABLE (queue_id integer, first_txid bigint, first_id bigint, last_txid bigint, last_id bigint)
LANGUAGE sql IMMUTABLE AS $$
    SELECT (s ->> 0)::integer, (s ->> 1)::bigint, (s ->> 2)::bigint, (s ->> 3)::bigint, (s ->> 4)::bigint
    FROM jsonb_array_elements(p_payload::jsonb -> 'sources') s
$$;

CREATE FUNCTION window_key(p_payload text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT p_payload::jsonb ->> 'key'
$$;

CREATE FUNCTION window_version(p_payload text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
    SELECT (p_payload::jsonb ->> 'version')::integer
$$;

-- A time in microseconds since 1970.
CREATE FUNCTION microseconds(p_time timestamptz) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT (extract(epoch FROM p_time) * 1000000)::bigint
$$;

-- Whether a record was created in [p_from_us, p_until_us), or at any time: the `created` of Members in
-- windows/membership.py.
CREATE FUNCTION is_created_in(p_us bigint, p_from_us bigint, p_until_us bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_from_us IS NULL OR (p_us >= p_from_us AND p_us < p_until_us)
$$;

-- Messages of a partition or, without one, of a whole queue from one position to another, in log order; only those
-- created in [p_from_us, p_until_us), if given.
CREATE FUNCTION messages_between(
    p_queue_id integer, p_partition text, p_first_txid bigint, p_first_id bigint, p_last_txid bigint, p_last_id bigint,
    p_from_us bigint, p_until_us bigint, p_limit integer
) RETURNS TABLE (
    txid bigint, id bigint, partition_id bigint, created_us bigint, encrypted boolean, transaction_id text, payload text,
    headers text
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_partition_id bigint;
BEGIN
    IF p_partition IS NULL THEN
        RETURN QUERY
        SELECT m.txid, m.id, m.partition_id, c.us, m.encrypted, m.transaction_id::text, m.payload, m.headers
        FROM queenspark.messages m
        CROSS JOIN LATERAL (SELECT microseconds(m.created_at) AS us) c
        WHERE m.queue_id = p_queue_id AND (m.txid, m.id) >= (p_first_txid, p_first_id)
          AND (m.txid, m.id) <= (p_last_txid, p_last_id)
          AND is_created_in(c.us, p_from_us, p_until_us)
        ORDER BY m.txid, m.id LIMIT p_limit;
    ELSE
        SELECT t.id INTO v_partition_id FROM queenspark.partitions t
        WHERE t.queue_id = p_queue_id AND t.name = p_partition;
        RETURN QUERY
        SELECT m.txid, m.id, m.partition_id, c.us, m.encrypted, m.transaction_id::text, m.payload, m.headers
        FROM queenspark.messages m
        CROSS JOIN LATERAL (SELECT microseconds(m.created_at) AS us) c
        WHERE m.partition_id = v_partition_id AND (m.txid, m.id) >= (p_first_txid, p_first_id)
          AND (m.txid, m.id) <= (p_last_txid, p_last_id)
          AND is_created_in(c.us, p_from_us, p_until_us)
        ORDER BY m.txid, m.id LIMIT p_limit;
    END IF;
END
$$;

-- The records of several windows, each in log order: ranges of source queues, and for each window by number the
-- partition name (or NULL: all) and the creation time range [from, until) (or NULL: any).
CREATE FUNCTION window_records(
    p_windows integer[], p_queue_ids integer[], p_first_txids bigint[], p_first_ids bigint[], p_last_txids bigint[],
    p_last_ids bigint[], p_partitions text[], p_from_us bigint[], p_until_us bigint[]
) RETURNS TABLE (
    n integer, txid bigint, id bigint, queue_id integer, partition_id bigint, created_us bigint, encrypted boolean,
    transaction_id text, payload text, headers text
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT r.n, m.txid, m.id, m.queue_id, m.partition_id, c.us, m.encrypted, m.transaction_id::text, m.payload, m.headers
    FROM unnest(p_windows, p_queue_ids, p_first_txids, p_first_ids, p_last_txids, p_last_ids)
        AS r(n, queue_id, first_txid, first_id, last_txid, last_id)
    JOIN queenspark.partitions t ON t.queue_id = r.queue_id AND t.name = p_partitions[r.n]
    JOIN queenspark.messages m ON m.partition_id = t.id
        AND (m.txid, m.id) >= (r.first_txid, r.first_id) AND (m.txid, m.id) <= (r.last_txid, r.last_id)
    CROSS JOIN LATERAL (SELECT microseconds(m.created_at) AS us) c
    WHERE is_created_in(c.us, p_from_us[r.n], p_until_us[r.n])
    ORDER BY r.n, m.txid, m.id;
    IF array_position(p_partitions, NULL) IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT r.n, m.txid, m.id, m.queue_id, m.partition_id, c.us, m.encrypted, m.transaction_id::text, m.payload, m.headers
    FROM unnest(p_windows, p_queue_ids, p_first_txids, p_first_ids, p_last_txids, p_last_ids)
        AS r(n, queue_id, first_txid, first_id, last_txid, last_id)
    JOIN queenspark.messages m ON m.queue_id = r.queue_id
        AND (m.txid, m.id) >= (r.first_txid, r.first_id) AND (m.txid, m.id) <= (r.last_txid, r.last_id)
    CROSS JOIN LATERAL (SELECT microseconds(m.created_at) AS us) c
    WHERE p_partitions[r.n] IS NULL AND is_created_in(c.us, p_from_us[r.n], p_until_us[r.n])
    ORDER BY r.n, m.txid, m.id;
END
$$;

-- Windows that a group has not acked, at most p_limit, of one state or of all: first those of keys that wait for a
-- lease or a retry to end, then those of ready keys, longest ready first, then undiscovered ones, then dead letters.
-- It reads little more than it returns.
CREATE FUNCTION active_windows(p_group_id integer, p_state text, p_limit integer)
RETURNS TABLE (
    state text, sealed_at timestamptz, payload text, attempts integer, error text, lease_holder text,
    leased_at timestamptz, lease_expires_at timestamptz, available_at timestamptz, failed_at timestamptz
)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_left integer := p_limit;
    v_count integer;
    v_ahead boolean;
BEGIN
    FOREACH v_ahead IN ARRAY ARRAY[true, false] LOOP
        CONTINUE WHEN p_state = 'dead' OR (NOT v_ahead AND p_state IN ('leased', 'retrying'));
        RETURN QUERY
        SELECT s.state, w.created_at, w.payload, w.attempts, w.error,
               CASE WHEN s.state = 'leased' AND p.held_lease_id = p.lease_id THEN p.lease_holder END,
               CASE WHEN s.state = 'leased' AND p.held_lease_id = p.lease_id THEN p.leased_at END,
               CASE WHEN s.state = 'leased' THEN p.lease_expires_at END,
               CASE WHEN s.state = 'retrying' THEN p.available_at END, NULL::timestamptz
        FROM queenspark.groups g JOIN queenspark.places p ON p.group_id = g.id
            AND p.available_at > CASE WHEN v_ahead THEN v_now ELSE '-infinity' END
            AND p.available_at <= CASE WHEN v_ahead THEN 'infinity' ELSE v_now END
        CROSS JOIN LATERAL (
            -- Delivered and not acked.
            SELECT m.txid, m.id, m.created_at, m.payload, coalesce(a.count, 0) AS attempts, a.error
            FROM queenspark.messages m LEFT JOIN queenspark.attempts a
                ON a.group_id = p.group_id AND a.partition_id = p.partition_id AND a.id = m.id
            WHERE m.partition_id = p.partition_id AND m.id = ANY (p.pending)
              AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id) AND (m.txid, m.id) <= (p.end_txid, p.end_id)
            UNION ALL
            -- Returned dead letters.
            SELECT d.txid, d.id, d.created_at, d.payload, d.attempts, d.error FROM queenspark.dead_letters d
            WHERE p.returned > 0 AND d.group_id = p.group_id AND d.partition_id = p.partition_id AND d.returned
            UNION ALL
            -- Not delivered yet.
            (SELECT m.txid, m.id, m.created_at, m.payload, 0, NULL FROM queenspark.messages m
             WHERE coalesce(p_state, 'waiting') = 'waiting' AND m.partition_id = p.partition_id
               AND (m.txid, m.id) > (p.end_txid, p.end_id) AND (m.txid, m.id) <= (g.seen_txid, g.seen_id)
               AND (g.skip_until IS NULL OR p.sought OR m.window_end > g.skip_until)
             ORDER BY m.txid, m.id LIMIT v_left)
        ) w
        CROSS JOIN LATERAL (
            SELECT CASE WHEN w.id = ANY (p.leased) AND p.lease_expires_at > v_now THEN 'leased'
                        WHEN v_ahead AND w.id = ANY (p.pending) THEN 'retrying'
                        ELSE 'waiting' END AS state
        ) s
        WHERE g.id = p_group_id AND (p_state IS NULL OR s.state = p_state)
        ORDER BY p.available_at LIMIT v_left;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
    END LOOP;
    IF coalesce(p_state, 'waiting') = 'waiting' THEN
        RETURN QUERY
        SELECT 'waiting', m.created_at, m.payload, 0, NULL::text, NULL::text, NULL::timestamptz, NULL::timestamptz,
               NULL::timestamptz, NULL::timestamptz
        FROM queenspark.groups g JOIN queenspark.messages m ON m.queue_id = g.queue_id
            AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
        LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
        WHERE g.id = p_group_id AND (p.end_txid IS NULL OR (m.txid, m.id) > (p.end_txid, p.end_id))
          AND (g.skip_until IS NULL OR p.sought OR m.window_end > g.skip_until)
        ORDER BY m.txid, m.id LIMIT v_left;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        v_left := v_left - v_count;
    END IF;
    IF coalesce(p_state, 'dead') = 'dead' THEN
        RETURN QUERY
        SELECT 'dead', d.created_at, d.payload, d.attempts, d.error, NULL::text, NULL::timestamptz, NULL::timestamptz,
               NULL::timestamptz, d.failed_at
        FROM queenspark.dead_letters d WHERE d.group_id = p_group_id AND NOT d.returned
        ORDER BY d.id LIMIT v_left;
    END IF;
END
$$;

-- The read position of each version of each stream in each of its sources, and the position from which on it still
-- needs them: the earliest record of an open window, or the one after the last that was read. A version unknown to
-- the pipeline needs everything from its start. Positions are arrays here: they compare as positions do, and support
-- min.
CREATE FUNCTION stream_reads()
RETURNS TABLE (stream_id integer, version integer, queue_id integer, read bigint[], needs bigint[])
LANGUAGE sql STABLE AS $$
    WITH live AS (
        SELECT DISTINCT ON (d.stream_id, d.version) d.stream_id, d.version, d.seq, coalesce(d.body, d.computing) AS body
        FROM queenspark.definitions d JOIN queenspark.streams s ON s.id = d.stream_id
        ORDER BY d.stream_id, d.version, d.seq DESC
    ), pipeline AS (
        -- The slowest bucket.
        SELECT p.txid, p.id, p.seq, p.behind FROM queenspark.progress p ORDER BY p.txid, p.id, p.batch LIMIT 1
    ), opened AS (
        SELECT o.stream_id, o.version, min(ARRAY[o.open_txid, o.open_id]) AS position
        FROM queenspark.stream_stats o WHERE o.open_txid IS NOT NULL GROUP BY o.stream_id, o.version
    ), known AS (
        -- A job with an external sink has read as much as its own query reports as written.
        SELECT l.stream_id, l.version, l.body, o.position AS opened,
               CASE WHEN (l.body ->> 'writes') IS NULL
                    THEN coalesce(p.behind -> (l.stream_id || ':' || l.version), jsonb_build_array(p.txid, p.id))
                    ELSE to_jsonb(string_to_array(r.report ->> 'position', '-')) END AS at
        FROM live l LEFT JOIN pipeline p ON p.seq >= l.seq
        LEFT JOIN queenspark.job_runs r ON r.stream_id = l.stream_id AND r.version = l.version
        LEFT JOIN opened o ON o.stream_id = l.stream_id AND o.version = l.version
        -- The others emit nothing more (OVER in windows/membership.py).
        WHERE (l.body ->> 'until_us') IS NULL OR (l.body ->> 'until_us')::bigint > -(2::bigint ^ 62)
    )
    SELECT k.stream_id, k.version, s.queue_id, r.read,
           greatest(ARRAY[s.txid, s.id], least(ARRAY[r.read[1], r.read[2] + 1], k.opened))
    FROM known k
    CROSS JOIN LATERAL jsonb_to_recordset(k.body -> 'sources') AS s(queue_id integer, txid bigint, id bigint)
    CROSS JOIN LATERAL (
        SELECT CASE WHEN (k.at ->> 0) IS NULL THEN ARRAY[s.txid, s.id]
               ELSE greatest(ARRAY[s.txid, s.id], ARRAY[(k.at ->> 0)::bigint, (k.at ->> 1)::bigint]) END AS read
    ) r
$$;

-- The position of the oldest message of a queue not acked by some group; NULL if there is none.
CREATE FUNCTION oldest_unacked(p_queue_id integer) RETURNS bigint[]
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
    SELECT min(x.position) FROM queenspark.groups g CROSS JOIN LATERAL (
        SELECT min((
            SELECT ARRAY[m.txid, m.id] FROM queenspark.messages m
            WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id)
            ORDER BY m.txid, m.id LIMIT 1)) AS position
        FROM queenspark.places p WHERE p.group_id = g.id AND p.available_at IS NOT NULL
        UNION ALL (
            SELECT ARRAY[m.txid, m.id] FROM queenspark.messages m
            LEFT JOIN queenspark.places p ON p.group_id = g.id AND p.partition_id = m.partition_id
            WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id)
              AND (p.end_txid IS NULL OR (m.txid, m.id) > (p.end_txid, p.end_id))
            ORDER BY m.txid, m.id LIMIT 1)
    ) x WHERE g.queue_id = p_queue_id
$$;

-- The position from which on each stream still needs some queues: for unsealed windows, and for windows not acked by
-- some group. For the latter, the last note before the oldest of them bounds their records. Rows of jobs carry their
-- own data: their source records are not needed.
CREATE FUNCTION stream_needs(p_queue_ids integer[])
RETURNS TABLE (stream_id integer, queue_id integer, needs bigint[]) LANGUAGE sql STABLE AS $$
    WITH reads AS MATERIALIZED (
        SELECT r.stream_id, r.queue_id, min(r.needs) AS needs FROM stream_reads() r
        WHERE r.queue_id = ANY (p_queue_ids) GROUP BY r.stream_id, r.queue_id
    ), unacked AS MATERIALIZED (
        SELECT s.id, oldest_unacked(s.queue_id) AS position FROM queenspark.streams s
        WHERE s.output = 'windows' AND s.id IN (SELECT r.stream_id FROM reads r)
    )
    SELECT r.stream_id, r.queue_id, least(r.needs, CASE WHEN u.position IS NOT NULL THEN coalesce((
            SELECT ARRAY[f.txid, f.id] FROM queenspark.stream_floors f
            WHERE f.stream_id = r.stream_id AND f.frontier <= u.position[1] ORDER BY f.frontier DESC LIMIT 1
        ), ARRAY[0, 0]::bigint[]) END)
    FROM reads r LEFT JOIN unacked u ON u.id = r.stream_id
$$;

-- Counts of the log. They are maintained by one broker at a time, in the background, and cost as much as the activity
-- since the last round; pushes, pops and acks are not involved. Every count covers final messages (below the horizon)
-- up to a stored position, and continues from there. A round uses one snapshot (REPEATABLE READ): a visible deletion
-- is recorded in deleted_messages and its message is gone; with an invisible one, the message is still there. It
-- reads before it writes, because a transaction that has written holds the horizon back.

-- Count messages of a queue after one position and up to another, at most p_limit of them; return the end position,
-- too.
CREATE FUNCTION count_forward(
    p_queue_id integer, p_from_txid bigint, p_from_id bigint, p_upto_txid bigint, p_upto_id bigint, p_limit bigint,
    OUT count bigint, OUT txid bigint, OUT id bigint
) LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    SELECT count(*) INTO count FROM (
        SELECT 1 FROM queenspark.messages m
        WHERE m.queue_id = p_queue_id AND (m.txid, m.id) > (p_from_txid, p_from_id)
          AND (m.txid, m.id) <= (p_upto_txid, p_upto_id)
        ORDER BY m.queue_id, m.txid, m.id LIMIT p_limit) counted;
    txid := p_upto_txid;
    id := p_upto_id;
    IF count = p_limit AND count > 0 THEN
        SELECT m.txid, m.id INTO txid, id FROM queenspark.messages m
        WHERE m.queue_id = p_queue_id AND (m.txid, m.id) > (p_from_txid, p_from_id)
          AND (m.txid, m.id) <= (p_upto_txid, p_upto_id)
        ORDER BY m.queue_id, m.txid, m.id OFFSET p_limit - 1 LIMIT 1;
    END IF;
END
$$;

-- Count messages of a partition between two positions; negative backwards.
CREATE FUNCTION count_between(
    p_partition_id bigint, p_from_txid bigint, p_from_id bigint, p_to_txid bigint, p_to_id bigint
) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    IF (p_from_txid, p_from_id) = (p_to_txid, p_to_id) THEN
        RETURN 0;
    ELSIF (p_from_txid, p_from_id) > (p_to_txid, p_to_id) THEN
        RETURN -count_between(p_partition_id, p_to_txid, p_to_id, p_from_txid, p_from_id);
    END IF;
    RETURN (
        SELECT count(*) FROM queenspark.messages m
        WHERE m.partition_id = p_partition_id AND (m.txid, m.id) > (p_from_txid, p_from_id)
          AND (m.txid, m.id) <= (p_to_txid, p_to_id));
END
$$;

-- The creation time of the oldest message that a group has not discovered yet. Reads at most a thousand: if all of
-- these were delivered by pops of single partitions, the last of them is an approximation.
CREATE FUNCTION oldest_unseen(p_group_id integer, p_queue_id integer, p_txid bigint, p_id bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT m.txid, m.id, m.partition_id, m.created_at FROM queenspark.messages m
        WHERE m.queue_id = p_queue_id AND (m.txid, m.id) > (p_txid, p_id)
        ORDER BY m.queue_id, m.txid, m.id LIMIT 1000
    LOOP
        EXIT WHEN NOT EXISTS (
            SELECT 1 FROM queenspark.places p
            WHERE p.group_id = p_group_id AND p.partition_id = r.partition_id
              AND (p.end_txid, p.end_id) >= (r.txid, r.id));
    END LOOP;
    RETURN r.created_at;
END
$$;

-- Update the counts, unless that was done within the last p_every seconds. Counts at most about p_budget messages for
-- queues and as many for groups. Returns whether everything is counted; NULL while another session is counting. To be
-- called in its own REPEATABLE READ transaction.
CREATE FUNCTION count_log(p_budget bigint, p_every double precision DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    c_few CONSTANT bigint := 100;  -- messages ahead of a place that are counted each time instead of stored
    c_most_dead CONSTANT bigint := 10000;  -- limit of counted dead letters per group
    v_began timestamptz := clock_timestamp();
    v_horizon bigint := horizon();
    v_at timestamptz;
    v_queues integer[] := '{}';  -- changed ones, and for each of them:
    v_totals bigint[] := '{}';
    v_news bigint[] := '{}';
    v_from_txids bigint[] := '{}';
    v_from_ids bigint[] := '{}';
    v_upto_txids bigint[] := '{}';
    v_upto_ids bigint[] := '{}';
    v_groups queenspark.group_counts[] := '{}';
    v_states queenspark.group_counts[];
    v_places queenspark.place_counts[];
    f record;
    r record;
    v_left bigint := p_budget;
    v_complete boolean := true;
    v_unseen bigint;
BEGIN
    SELECT c.counted_at INTO v_at FROM queenspark.counting c;
    IF v_at > v_began - make_interval(secs => p_every) OR NOT pg_try_advisory_xact_lock(8175003150218453619) THEN
        RETURN NULL;
    END IF;
    IF v_at < v_began - interval '50 minutes' THEN
        -- Counting was off, so deletions were not recorded. From now on they are; counting begins with the next
        -- round, when no unrecorded deletion is in flight any more.
        DELETE FROM queenspark.queue_counts;
        DELETE FROM queenspark.group_counts;
        DELETE FROM queenspark.place_counts;
        DELETE FROM queenspark.deleted_messages;
        UPDATE queenspark.counting SET counted_at = clock_timestamp(), seconds = 0, complete = false;
        RETURN false;
    END IF;

    -- Queues that have grown or shrunk, the one that is furthest behind first.
    FOR r IN
        SELECT q.id AS queue_id, coalesce(c.upto_txid, 0) AS txid, coalesce(c.upto_id, 0) AS id,
               coalesce(c.messages, 0) - d.count AS messages, t.grown
        FROM queenspark.queues q LEFT JOIN queenspark.queue_counts c ON c.queue_id = q.id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count FROM queenspark.deleted_messages d
            CROSS JOIN LATERAL unnest(d.txids, d.ids) AS x(txid, id)
            WHERE d.queue_id = q.id AND (x.txid, x.id) <= (c.upto_txid, c.upto_id)
        ) d
        CROSS JOIN LATERAL (
            SELECT EXISTS (
                SELECT 1 FROM queenspark.messages m
                WHERE m.queue_id = q.id AND (m.txid, m.id) > (coalesce(c.upto_txid, 0), coalesce(c.upto_id, 0))
                  AND m.txid < v_horizon) AS grown
        ) t
        WHERE c.queue_id IS NULL OR d.count > 0 OR t.grown
        ORDER BY coalesce(c.upto_txid, 0), q.id
    LOOP
        SELECT 0::bigint AS count, r.txid AS txid, r.id AS id INTO f;
        IF r.grown AND v_left > 0 THEN
            SELECT * INTO f FROM count_forward(r.queue_id, r.txid, r.id, v_horizon, 0, v_left);
            v_left := v_left - f.count;
        END IF;
        v_complete := v_complete AND NOT (r.grown AND v_left <= 0);
        v_queues := v_queues || r.queue_id;
        v_totals := v_totals || (r.messages + f.count);
        v_news := v_news || f.count;
        v_from_txids := v_from_txids || r.txid;
        v_from_ids := v_from_ids || r.id;
        v_upto_txids := v_upto_txids || f.txid;
        v_upto_ids := v_upto_ids || f.id;
    END LOOP;

    -- Groups whose queue or discovery position has changed: continue their counts.
    v_left := p_budget;
    FOR r IN
        SELECT g.id AS group_id, g.queue_id, g.seen_txid, g.seen_id, k.group_id IS NULL AS is_new,
               k.seen_txid AS from_seen_txid, k.seen_id AS from_seen_id,
               k.upto_txid AS from_txid, k.upto_id AS from_id, k.unseen - d.count AS unseen,
               coalesce(n.upto_txid, c.upto_txid, 0) AS upto_txid, coalesce(n.upto_id, c.upto_id, 0) AS upto_id,
               n.news, n.from_txid AS queue_from_txid, n.from_id AS queue_from_id
        FROM queenspark.groups g LEFT JOIN queenspark.group_counts k ON k.group_id = g.id
        LEFT JOIN queenspark.queue_counts c ON c.queue_id = g.queue_id
        LEFT JOIN unnest(v_queues, v_news, v_from_txids, v_from_ids, v_upto_txids, v_upto_ids)
            AS n(queue_id, news, from_txid, from_id, upto_txid, upto_id) ON n.queue_id = g.queue_id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count FROM queenspark.deleted_messages d
            CROSS JOIN LATERAL unnest(d.txids, d.ids) AS x(txid, id)
            WHERE d.queue_id = g.queue_id AND (x.txid, x.id) > (k.seen_txid, k.seen_id)
              AND (x.txid, x.id) <= (k.upto_txid, k.upto_id)
        ) d
        WHERE k.group_id IS NULL OR d.count > 0 OR (k.seen_txid, k.seen_id) <> (g.seen_txid, g.seen_id)
           OR (k.upto_txid, k.upto_id) < (coalesce(n.upto_txid, c.upto_txid, 0), coalesce(n.upto_id, c.upto_id, 0))
    LOOP
        v_unseen := r.unseen;
        IF r.is_new OR (r.seen_txid, r.seen_id) < (r.from_seen_txid, r.from_seen_id)
           OR (r.seen_txid, r.seen_id) > (r.from_txid, r.from_id) THEN
            v_unseen := 0;
            r.from_txid := r.seen_txid;
            r.from_id := r.seen_id;
        ELSIF (r.seen_txid, r.seen_id) > (r.from_seen_txid, r.from_seen_id) THEN
            SELECT v_unseen - x.count INTO v_unseen FROM count_forward(
                r.queue_id, r.from_seen_txid, r.from_seen_id, r.seen_txid, r.seen_id, 9223372036854775807) x;
        END IF;
        SELECT 0::bigint AS count, r.from_txid AS txid, r.from_id AS id INTO f;
        IF (r.from_txid, r.from_id) < (r.upto_txid, r.upto_id) THEN
            IF (r.from_txid, r.from_id) = (r.queue_from_txid, r.queue_from_id) THEN
                SELECT r.news AS count, r.upto_txid AS txid, r.upto_id AS id INTO f;
            ELSIF v_left > 0 THEN
                SELECT * INTO f FROM count_forward(
                    r.queue_id, r.from_txid, r.from_id, r.upto_txid, r.upto_id, v_left);
                v_left := v_left - f.count;
            END IF;
            v_complete := v_complete AND (f.txid, f.id) = (r.upto_txid, r.upto_id);
        END IF;
        v_groups := v_groups || ROW(
            r.group_id, r.queue_id, r.seen_txid, r.seen_id, f.txid, f.id, v_unseen + f.count,
            0, 0, 0, 0, 0, NULL, NULL)::queenspark.group_counts;
    END LOOP;

    -- The places of all groups. Nothing lies between an idle place and the discovery position of its group, unless a
    -- pop of a single partition has gone beyond that.
    WITH placed AS MATERIALIZED (
        SELECT p.group_id, p.partition_id, s.txid AS seen_txid, s.id AS seen_id, e.txid AS end_txid, e.id AS end_id,
               p.acked_at, cardinality(p.pending) AS pending,
               CASE WHEN p.lease_expires_at > v_began THEN cardinality(p.leased) ELSE 0 END AS leased,
               CASE
                   WHEN p.available_at IS NULL AND (e.txid, e.id) <= (s.txid, s.id) THEN 0
                   WHEN k.group_id IS NULL THEN count_between(p.partition_id, e.txid, e.id, s.txid, s.id)
                   ELSE k.ahead - d.count + count_between(p.partition_id, k.seen_txid, k.seen_id, s.txid, s.id)
                        - count_between(p.partition_id, k.end_txid, k.end_id, e.txid, e.id)
               END AS ahead,
               CASE WHEN p.available_at IS NOT NULL THEN (
                   SELECT m.created_at FROM queenspark.messages m
                   WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id)
                   ORDER BY m.partition_id, m.txid, m.id LIMIT 1) END AS oldest
        FROM queenspark.places p JOIN queenspark.groups g ON g.id = p.group_id
        -- Messages above the horizon are not final.
        CROSS JOIN LATERAL (SELECT least(p.end_txid, v_horizon) AS txid, CASE WHEN p.end_txid < v_horizon THEN p.end_id ELSE 0 END AS id) e
        CROSS JOIN LATERAL (SELECT least(g.seen_txid, v_horizon) AS txid, CASE WHEN g.seen_txid < v_horizon THEN g.seen_id ELSE 0 END AS id) s
        LEFT JOIN queenspark.place_counts k ON k.group_id = p.group_id AND k.partition_id = p.partition_id
        LEFT JOIN LATERAL (
            SELECT count(*) FILTER (WHERE (x.txid, x.id) > (k.end_txid, k.end_id) AND (x.txid, x.id) <= (k.seen_txid, k.seen_id))
                   - count(*) FILTER (WHERE (x.txid, x.id) > (k.seen_txid, k.seen_id) AND (x.txid, x.id) <= (k.end_txid, k.end_id))
                       AS count
            FROM queenspark.deleted_messages d CROSS JOIN LATERAL unnest(d.txids, d.ids) AS x(txid, id)
            WHERE d.queue_id = g.queue_id AND d.partition_id = p.partition_id
        ) d ON k.group_id IS NOT NULL
    )
    SELECT (
        SELECT array_agg(ROW(p.group_id, p.partition_id, p.seen_txid, p.seen_id, p.end_txid, p.end_id, p.ahead)
                         ::queenspark.place_counts)
        FROM placed p WHERE abs(p.ahead) > c_few
    ), (
        SELECT array_agg(ROW(g.id, g.queue_id, g.seen_txid, g.seen_id, coalesce(n.upto_txid, k.upto_txid),
                             coalesce(n.upto_id, k.upto_id), coalesce(n.unseen, k.unseen),
                             greatest(0, coalesce(n.unseen, k.unseen) + coalesce(p.lag, 0)), coalesce(p.processing, 0), coalesce(p.leases, 0),
                             coalesce(p.places, 0), dead.count, least(p.oldest, u.oldest), p.acked_at)
                         ::queenspark.group_counts)
        FROM queenspark.groups g
        LEFT JOIN unnest(v_groups) n ON n.group_id = g.id
        LEFT JOIN queenspark.group_counts k ON k.group_id = g.id
        LEFT JOIN (
            SELECT p.group_id, sum(p.ahead + p.pending)::bigint AS lag, sum(p.leased)::bigint AS processing,
                   count(*) FILTER (WHERE p.leased > 0) AS leases, count(*) AS places, min(p.oldest) AS oldest,
                   max(p.acked_at) AS acked_at
            FROM placed p GROUP BY p.group_id
        ) p ON p.group_id = g.id
        CROSS JOIN LATERAL (
            SELECT count(*) AS count FROM (
                SELECT 1 FROM queenspark.dead_letters d WHERE d.group_id = g.id AND NOT d.returned LIMIT c_most_dead) d
        ) dead
        CROSS JOIN LATERAL (
            SELECT CASE WHEN coalesce(n.unseen, k.unseen) > 0 THEN oldest_unseen(g.id, g.queue_id, g.seen_txid, g.seen_id) END AS oldest
        ) u
    ) INTO v_places, v_states;

    DELETE FROM queenspark.deleted_messages;
    INSERT INTO queenspark.queue_counts AS c (queue_id, upto_txid, upto_id, messages)
    SELECT * FROM unnest(v_queues, v_upto_txids, v_upto_ids, v_totals)
    ON CONFLICT (queue_id) DO UPDATE
    SET upto_txid = excluded.upto_txid, upto_id = excluded.upto_id, messages = excluded.messages;
    INSERT INTO queenspark.group_counts AS k SELECT * FROM unnest(v_states)
    ON CONFLICT (group_id) DO UPDATE
    SET seen_txid = excluded.seen_txid, seen_id = excluded.seen_id, upto_txid = excluded.upto_txid,
        upto_id = excluded.upto_id, unseen = excluded.unseen, lag = excluded.lag, processing = excluded.processing,
        leases = excluded.leases, places = excluded.places, dead_letters = excluded.dead_letters,
        oldest = excluded.oldest, acked_at = excluded.acked_at
    WHERE k IS DISTINCT FROM excluded;
    DELETE FROM queenspark.place_counts k WHERE NOT EXISTS (
        SELECT 1 FROM unnest(v_places) x WHERE x.group_id = k.group_id AND x.partition_id = k.partition_id);
    INSERT INTO queenspark.place_counts AS k SELECT * FROM unnest(v_places)
    ON CONFLICT (group_id, partition_id) DO UPDATE
    SET seen_txid = excluded.seen_txid, seen_id = excluded.seen_id, end_txid = excluded.end_txid,
        end_id = excluded.end_id, ahead = excluded.ahead
    WHERE k IS DISTINCT FROM excluded;
    DELETE FROM queenspark.group_counts k WHERE NOT EXISTS (SELECT 1 FROM queenspark.groups g WHERE g.id = k.group_id);
    DELETE FROM queenspark.queue_counts c WHERE NOT EXISTS (SELECT 1 FROM queenspark.queues q WHERE q.id = c.queue_id);
    UPDATE queenspark.queue_counts c
    SET partitions = x.partitions, pending = x.pending, processing = x.processing
    FROM (
        SELECT q.queue_id, coalesce(t.count, 0) AS partitions, greatest(0, coalesce(g.pending, q.messages)) AS pending,
               coalesce(g.processing, 0) AS processing
        FROM queenspark.queue_counts q
        LEFT JOIN (SELECT t.queue_id, count(*) AS count FROM queenspark.partitions t GROUP BY t.queue_id) t
            ON t.queue_id = q.queue_id
        LEFT JOIN (
            SELECT k.queue_id, max(k.lag - k.processing) AS pending, sum(k.processing)::bigint AS processing
            FROM queenspark.group_counts k GROUP BY k.queue_id
        ) g ON g.queue_id = q.queue_id
    ) x
    WHERE c.queue_id = x.queue_id AND (c.partitions, c.pending, c.processing) IS DISTINCT FROM (x.partitions, x.pending, x.processing);
    UPDATE queenspark.counting
    SET counted_at = clock_timestamp(), seconds = extract(epoch FROM clock_timestamp() - v_began), complete = v_complete;
    RETURN v_complete;
END
$$;

-- The current lag of a group. Reads at most p_limit messages and as many places; `exact` is whether that was all.
CREATE FUNCTION group_now(
    p_group_id integer, p_limit bigint, OUT lag bigint, OUT processing bigint, OUT leases bigint, OUT places bigint,
    OUT oldest timestamptz, OUT acked_at timestamptz, OUT exact boolean
) LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    g queenspark.groups%ROWTYPE;
    v_now timestamptz := clock_timestamp();
    v_beyond boolean;
    v_ahead bigint;
    v_unseen bigint;
    v_scanned bigint;
BEGIN
    SELECT * INTO g FROM queenspark.groups x WHERE x.id = p_group_id;
    SELECT count(*), count(*) FILTER (WHERE p.leased <> '{}' AND p.lease_expires_at > v_now), max(p.acked_at),
           coalesce(sum(cardinality(p.leased)) FILTER (WHERE p.lease_expires_at > v_now), 0),
           coalesce(sum(cardinality(p.pending)), 0),
           coalesce(bool_or((p.end_txid, p.end_id) > (g.seen_txid, g.seen_id)), false)
    INTO places, leases, acked_at, processing, lag, v_beyond
    FROM (SELECT * FROM queenspark.places p WHERE p.group_id = p_group_id LIMIT p_limit + 1) p;
    SELECT count(*) INTO v_ahead FROM (
        SELECT 1 FROM queenspark.places p JOIN queenspark.messages m
            ON m.partition_id = p.partition_id AND (m.txid, m.id) > (p.end_txid, p.end_id)
            AND (m.txid, m.id) <= (g.seen_txid, g.seen_id)
        WHERE p.group_id = p_group_id AND p.available_at IS NOT NULL LIMIT p_limit + 1) x;
    SELECT count(*) INTO v_scanned FROM (
        SELECT 1 FROM queenspark.messages m
        WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id) LIMIT p_limit + 1) m;
    v_unseen := v_scanned;
    IF v_beyond THEN
        -- Pops of single partitions have gone beyond the discovery position.
        SELECT count(*) FILTER (WHERE p.end_txid IS NULL OR (m.txid, m.id) > (p.end_txid, p.end_id)) INTO v_unseen
        FROM (
            SELECT m.txid, m.id, m.partition_id FROM queenspark.messages m
            WHERE m.queue_id = g.queue_id AND (m.txid, m.id) > (g.seen_txid, g.seen_id) LIMIT p_limit + 1
        ) m LEFT JOIN queenspark.places p ON p.group_id = p_group_id AND p.partition_id = m.partition_id;
    END IF;
    exact := places <= p_limit AND v_ahead <= p_limit AND v_scanned <= p_limit;
    lag := lag + v_ahead + v_unseen;
    IF lag > 0 THEN
        SELECT min((
            SELECT m.created_at FROM queenspark.messages m
            WHERE m.partition_id = p.partition_id AND (m.txid, m.id) > (p.cursor_txid, p.cursor_id)
            ORDER BY m.partition_id, m.txid, m.id LIMIT 1))
        INTO oldest
        FROM (
            SELECT * FROM queenspark.places p
            WHERE p.group_id = p_group_id AND p.available_at IS NOT NULL LIMIT p_limit
        ) p;
        IF v_unseen > 0 THEN
            oldest := least(oldest, oldest_unseen(g.id, g.queue_id, g.seen_txid, g.seen_id));
        END IF;
    END IF;
END
$$;
