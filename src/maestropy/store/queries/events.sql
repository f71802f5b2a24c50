-- name: read_events
-- Whom pending events concern; light, since every instance asks for every event.
SELECT e.id, e.source_id, e.event_type, e.reconciled_date IS NOT NULL AS reconciled, r.consumer_name
FROM events e LEFT JOIN resources r ON r.id = e.source_id
WHERE e.id = ANY($1::text[]);

-- name: pending_events
-- Pending events of the consumers connected here, a fair share of each: a backlog of one cannot hide the others.
SELECT id, source_id, event_type, consumer_name
FROM (
    SELECT e.id, e.source_id, e.event_type, r.consumer_name,
           row_number() OVER (PARTITION BY r.consumer_name ORDER BY e.created_at, e.id) AS place
    FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.reconciled_date IS NULL AND r.consumer_name = ANY($1::text[])
) AS ranked
WHERE place <= $2
ORDER BY place, id
LIMIT $3;

-- name: pending_everywhere
-- The same for every consumer: an outside broker reaches them all.
SELECT id, source_id, event_type, consumer_name
FROM (
    SELECT e.id, e.source_id, e.event_type, r.consumer_name,
           row_number() OVER (PARTITION BY r.consumer_name ORDER BY e.created_at, e.id) AS place
    FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.reconciled_date IS NULL
) AS ranked
WHERE place <= $1
ORDER BY place, id
LIMIT $2;

-- name: claim_events
-- Take pending events until the transaction ends; those another instance has taken are left to it.
SELECT e.id, e.source_id
FROM events e
WHERE e.id = ANY($1::text[]) AND e.reconciled_date IS NULL
ORDER BY e.created_at, e.id
FOR UPDATE OF e SKIP LOCKED;

-- name: try_lock_events
-- The lock under which a Go server sends an event, and ours under which one instance at a time sends a bundle: nobody
-- gets an older state of a bundle after a newer one because two instances sent at once.
SELECT id
FROM unnest($1::text[], $2::int[], $3::int[]) AS u (id, event_key, bundle_key)
WHERE pg_try_advisory_xact_lock(bundle_key, $5) AND pg_try_advisory_xact_lock(event_key, $4);

-- name: reconcile
-- Delivered, or not worth delivering any more.
-- An event another instance is marking now is left to it, so that two of them cannot wait for each other.
UPDATE events SET reconciled_date = $2, updated_at = $2
WHERE id IN (
    SELECT id FROM events
    WHERE id = ANY($1::text[]) AND reconciled_date IS NULL
    FOR UPDATE SKIP LOCKED
);

-- name: pending_of_consumers
-- What is pending before a resync reads the bundles; once those are sent, these are delivered.
SELECT r.consumer_name, e.id
FROM events e JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL AND r.consumer_name = ANY($1::text[]);

-- name: retire_orphans
-- Events whose bundle is gone have nobody to go to.
UPDATE events SET reconciled_date = $1, updated_at = $1
WHERE id IN (
    SELECT e.id FROM events e LEFT JOIN resources r ON r.id = e.source_id
    WHERE e.reconciled_date IS NULL AND r.id IS NULL
    LIMIT $2 FOR UPDATE OF e SKIP LOCKED
);

-- name: purge_events
DELETE FROM events
WHERE id IN (
    SELECT id FROM events
    WHERE reconciled_date IS NOT NULL AND reconciled_date <= $1
    LIMIT $2 FOR UPDATE SKIP LOCKED
);

-- name: purge_status_events
-- Those that every living instance has passed on, and those so old that no instance can still be waiting for them. The
-- last words about a bundle are kept for a while: they tell late reports and late instances that it is gone.
DELETE FROM status_events
WHERE id IN (
    SELECT s.id FROM status_events s
    WHERE s.created_at <= $1
      AND (s.status_event_type <> 'StatusDelete' OR s.created_at <= $4)
      AND (
        s.created_at <= $2
        OR NOT EXISTS (
            SELECT 1 FROM server_instances i
            WHERE i.ready AND NOT EXISTS (
                SELECT 1 FROM event_instances p WHERE p.event_id = s.id AND p.instance_id = i.id
            )
        )
      )
    LIMIT $3 FOR UPDATE SKIP LOCKED
);

-- name: retire_stale_deletes
-- Deletions that no agent took for so long are taken off the queue; the bundle stays marked and the agent's next resync
-- finds it.
UPDATE events SET reconciled_date = $2, updated_at = $2
WHERE id IN (
    SELECT e.id FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.event_type = 'Delete' AND e.reconciled_date IS NULL AND r.deleted_at IS NOT NULL AND r.deleted_at <= $1
    LIMIT 10000 FOR UPDATE OF e SKIP LOCKED
)
RETURNING id;

-- name: republish_undelivered
-- Bundles that never got a status and of which nothing has been sent for long are sent again.
WITH silent AS (
    SELECT r.id, r.version, r.consumer_name, r.source, r.created_at
    FROM resources r
    WHERE r.deleted_at IS NULL
      AND (r.status IS NULL OR jsonb_typeof(r.status) = 'null' OR r.status = '{}'::jsonb)
      AND r.updated_at <= $1
      AND NOT EXISTS (
        SELECT 1 FROM events e
        WHERE e.source_id = r.id AND (e.reconciled_date IS NULL OR e.created_at > $1)
      )
    ORDER BY r.updated_at
    LIMIT 1000
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT gen_random_uuid()::text, $2, $2, 'Resources', s.id, CASE WHEN s.version = 1 THEN 'Create' ELSE 'Update' END
    FROM silent s
    RETURNING id, source_id
)
SELECT s.id, s.consumer_name, s.source, s.created_at, pg_notify('events', a.id)
FROM announced a JOIN silent s ON s.id = a.source_id;

-- name: oldest_pending_age
SELECT extract(epoch FROM $1::timestamptz - min(created_at))::float8 FROM events WHERE reconciled_date IS NULL;

-- name: notification_queue_usage
SELECT pg_notification_queue_usage();
