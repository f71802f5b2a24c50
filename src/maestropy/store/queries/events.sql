-- name: read_events
-- Events with their consumers; small rows, since every instance reads every event. The event of a deletion itself is as old as
-- the deletion, those that repeat it are younger.
SELECT e.id, e.source_id, e.event_type, e.reconciled_date IS NOT NULL AS is_reconciled, r.consumer_name,
       coalesce(e.event_type = 'Delete' AND e.created_at > r.deleted_at + interval '1 second', false) AS is_repeated
FROM events e LEFT JOIN resources r ON r.id = e.source_id
WHERE e.id = ANY($1::text[]);

-- name: pending_events
-- Pending events of the given consumers, at most $2 of each: the backlog of one cannot hide the others. The events of a
-- paused consumer wait for its resumption.
SELECT p.id, p.source_id, p.event_type, p.consumer_name, p.is_repeated
FROM (
    SELECT e.id, e.source_id, e.event_type, r.consumer_name,
           coalesce(e.event_type = 'Delete' AND e.created_at > r.deleted_at + interval '1 second', false) AS is_repeated,
           row_number() OVER (PARTITION BY r.consumer_name ORDER BY e.created_at, e.id) AS queue_position
    FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.reconciled_date IS NULL AND r.consumer_name = ANY($1::text[])
      AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name)
) AS p
WHERE p.queue_position <= $2
ORDER BY p.queue_position, p.id
LIMIT $3;

-- name: pending_everywhere
-- The same for all consumers: a message broker reaches them all.
SELECT p.id, p.source_id, p.event_type, p.consumer_name, p.is_repeated
FROM (
    SELECT e.id, e.source_id, e.event_type, r.consumer_name,
           coalesce(e.event_type = 'Delete' AND e.created_at > r.deleted_at + interval '1 second', false) AS is_repeated,
           row_number() OVER (PARTITION BY r.consumer_name ORDER BY e.created_at, e.id) AS queue_position
    FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.reconciled_date IS NULL
      AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name)
) AS p
WHERE p.queue_position <= $1
ORDER BY p.queue_position, p.id
LIMIT $2;

-- name: claim_events
-- Lock pending events until the transaction ends; skip those that another instance has locked.
SELECT e.id, e.source_id
FROM events e
WHERE e.id = ANY($1::text[]) AND e.reconciled_date IS NULL
ORDER BY e.created_at, e.id
FOR UPDATE OF e SKIP LOCKED;

-- name: try_lock_events
-- Take the lock under which a Go server sends an event, and ours under which one instance at a time sends a resource:
-- two instances that send at once could deliver an older version after a newer one.
SELECT id
FROM unnest($1::text[], $2::int[], $3::int[]) AS u (id, event_key, resource_key)
WHERE pg_try_advisory_xact_lock(resource_key, $5) AND pg_try_advisory_xact_lock(event_key, $4);

-- name: reconcile
-- Mark events as delivered or obsolete. Skip events that another instance is marking, so that two instances cannot
-- deadlock.
UPDATE events SET reconciled_date = $2, updated_at = $2
WHERE id IN (
    SELECT id FROM events
    WHERE id = ANY($1::text[]) AND reconciled_date IS NULL
    FOR UPDATE SKIP LOCKED
);

-- name: pending_of_consumers
-- Pending events before a resync reads the resources; they are delivered once the resources are sent.
SELECT r.consumer_name, e.id
FROM events e JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL AND r.consumer_name = ANY($1::text[]);

-- name: retire_orphans
-- Events of removed resources need no delivery.
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
-- Status events that every ready instance has broadcast, and those too old for any instance to need. Events of removed
-- resources are kept for a while: late status updates and late instances need them.
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
-- Delete events that no agent received for too long leave the queue; the resource stays marked, and delete recovery or the
-- next spec resync of the agent finds it. An event that repeats a deletion has as much time as the first one.
UPDATE events SET reconciled_date = $2, updated_at = $2
WHERE id IN (
    SELECT e.id FROM events e JOIN resources r ON r.id = e.source_id
    WHERE e.event_type = 'Delete' AND e.reconciled_date IS NULL AND e.created_at <= $1
      AND r.deleted_at IS NOT NULL AND r.deleted_at <= $1
      AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name)
    LIMIT 10000 FOR UPDATE OF e SKIP LOCKED
)
RETURNING id;

-- name: republish_undelivered
-- Queue resources again that have no status and no event since $1.
WITH undelivered AS (
    SELECT r.id, r.version, r.consumer_name, r.source, r.created_at
    FROM resources r
    WHERE r.deleted_at IS NULL
      AND (r.status IS NULL OR jsonb_typeof(r.status) = 'null' OR r.status = '{}'::jsonb)
      AND r.updated_at <= $1
      AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name)
      AND NOT EXISTS (
        SELECT 1 FROM events e
        WHERE e.source_id = r.id AND (e.reconciled_date IS NULL OR e.created_at > $1)
      )
    ORDER BY r.updated_at
    LIMIT 1000
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT gen_random_uuid()::text, $2, $2, 'Resources', u.id, CASE WHEN u.version = 1 THEN 'Create' ELSE 'Update' END
    FROM undelivered u
    RETURNING id, source_id
)
SELECT u.id, u.consumer_name, u.source, u.created_at,
       CASE row_number() OVER () WHEN 1 THEN maestropy_notify('events', array_agg(a.id) OVER ()) END
FROM announced a JOIN undelivered u ON u.id = a.source_id;

-- name: oldest_pending_age
-- Not of paused consumers: their events wait on purpose.
SELECT extract(epoch FROM $1::timestamptz - min(e.created_at))::float8 FROM events e
WHERE e.reconciled_date IS NULL AND NOT EXISTS (
    SELECT 1 FROM resources r JOIN maestropy_pauses d ON d.consumer_name = r.consumer_name WHERE r.id = e.source_id
);

-- name: oldest_pending_age_of_consumers
-- Like oldest_pending_age, of events for the given consumers.
SELECT extract(epoch FROM $1::timestamptz - min(e.created_at))::float8 FROM events e
JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL AND r.consumer_name = ANY($2::text[])
    AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name);

-- name: notification_queue_usage
SELECT pg_notification_queue_usage();
