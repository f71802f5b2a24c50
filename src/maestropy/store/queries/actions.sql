-- name: consumer_facts
-- What decides about an action on a consumer; $1 is its ID or its name. Servers without a row in maestropy_instances are Go
-- servers.
SELECT c.id, c.name, p.paused_at, p.paused_by, p.reason AS pause_reason, a.seen_at,
       (SELECT count(*) FROM resources r WHERE r.consumer_name = c.name) AS works,
       (SELECT count(*) FROM resources r WHERE r.consumer_name = c.name AND r.deleted_at IS NOT NULL) AS deleting,
       (SELECT count(DISTINCT e.source_id) FROM events e JOIN resources r ON r.id = e.source_id
        WHERE e.reconciled_date IS NULL AND r.consumer_name = c.name) AS waiting,
       EXISTS (SELECT 1 FROM server_instances i
               WHERE i.ready AND NOT EXISTS (SELECT 1 FROM maestropy_instances m WHERE m.id = i.id)) AS has_go_servers,
       (SELECT min(m.started_at) FROM maestropy_instances m JOIN server_instances i ON i.id = m.id WHERE i.ready)
           AS servers_since
FROM consumers c
    LEFT JOIN maestropy_pauses p ON p.consumer_name = c.name
    LEFT JOIN maestropy_agents a ON a.consumer_name = c.name
WHERE c.id = $1 OR c.name = $1
ORDER BY c.id = $1 DESC
LIMIT 1;

-- name: works_of_consumer
-- The first works of a consumer, for people. They are chosen first, so that only their payloads are read.
WITH chosen AS MATERIALIZED (SELECT id FROM resources WHERE consumer_name = $1 ORDER BY created_at, id LIMIT $2)
SELECT r.id, r.version, r.deleted_at IS NOT NULL AS is_deleting, coalesce(r.payload -> 'metadata' ->> 'name', '') AS name,
       r.consumer_name, coalesce(r.source, '') AS source
FROM resources r JOIN chosen USING (id)
ORDER BY r.created_at, r.id;

-- name: work
-- One work, of all sources or of some ($2); whether its event waits for delivery.
SELECT r.id, r.version, r.deleted_at IS NOT NULL AS is_deleting, coalesce(r.payload -> 'metadata' ->> 'name', '') AS name,
       r.consumer_name, coalesce(r.source, '') AS source,
       EXISTS (SELECT 1 FROM events e WHERE e.source_id = r.id AND e.reconciled_date IS NULL) AS is_waiting
FROM resources r WHERE r.id = $1 AND ($2::text[] IS NULL OR r.source = ANY($2::text[]));

-- name: lock_works
-- Lock all works of a consumer, so that a plan is carried out on what it was made of.
SELECT r.id, r.version, r.deleted_at IS NOT NULL AS is_deleting
FROM resources r WHERE r.consumer_name = $1
ORDER BY r.id
FOR UPDATE OF r;

-- name: versions_of_works
SELECT r.id, r.version, r.deleted_at IS NOT NULL AS is_deleting
FROM resources r WHERE r.consumer_name = $1
ORDER BY r.id;

-- name: queue_works
-- Queue works to be sent again: one ($2), or all of a consumer. A work whose event waits has no second event. Waiting
-- events are announced again: where agents of one consumer are connected to several instances, each has to send them.
WITH chosen AS (
    SELECT r.id, r.deleted_at FROM resources r WHERE r.consumer_name = $1 AND (r.id = $2 OR $2::text IS NULL)
),
waiting AS (
    SELECT e.id, e.created_at FROM events e JOIN chosen c ON c.id = e.source_id WHERE e.reconciled_date IS NULL
),
queued AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT gen_random_uuid()::text, $3, $3, 'Resources', c.id,
           CASE WHEN c.deleted_at IS NULL THEN 'Update' ELSE 'Delete' END
    FROM chosen c
    WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.source_id = c.id AND e.reconciled_date IS NULL)
    RETURNING id, created_at
)
SELECT count(*) AS works, maestropy_notify('events', array_agg(a.id ORDER BY a.created_at, a.id))
FROM (SELECT * FROM waiting UNION ALL SELECT * FROM queued) AS a;

-- name: request_resync
-- Ask all instances to resync with the agents of a consumer.
SELECT pg_notify('maestropy_resyncs', $1);

-- name: pause
-- A consumer that is paused keeps its first pause.
INSERT INTO maestropy_pauses (consumer_name, paused_at, paused_by, reason) VALUES ($1, $2, $3, $4)
ON CONFLICT (consumer_name) DO NOTHING
RETURNING consumer_name;

-- name: resume
DELETE FROM maestropy_pauses WHERE consumer_name = $1 RETURNING consumer_name;

-- name: paused_among
-- The consumers of this list that are paused.
SELECT consumer_name FROM maestropy_pauses WHERE consumer_name = ANY($1::text[]);

-- name: pauses
-- All pauses, or those of consumers that have works of some sources ($1).
SELECT p.consumer_name, p.paused_at, p.paused_by, p.reason FROM maestropy_pauses p
WHERE $1::text[] IS NULL
   OR EXISTS (SELECT 1 FROM resources r WHERE r.consumer_name = p.consumer_name AND r.source = ANY($1::text[]))
ORDER BY p.consumer_name;

-- name: count_pauses
SELECT count(*) AS consumers, (extract(epoch FROM $1::timestamptz - min(paused_at)))::float8 AS oldest
FROM maestropy_pauses;

-- name: note_seen
-- Only of consumers that exist, or whose agent has reported a hold: an agent may name any. Rows of the last moments stay as they are: two instances may have
-- agents of the same consumer.
INSERT INTO maestropy_agents AS a (consumer_name, seen_at)
SELECT k.name, $2 FROM (
    SELECT c.name FROM consumers c WHERE c.name = ANY($1::text[])
    UNION
    SELECT h.consumer_name FROM maestropy_holds h WHERE h.consumer_name = ANY($1::text[])
) k
ORDER BY k.name
ON CONFLICT (consumer_name) DO UPDATE SET seen_at = excluded.seen_at
WHERE a.seen_at < excluded.seen_at - interval '30 seconds';

-- name: remove_consumer
-- The last step of a retirement, with what only our tables have of the consumer.
WITH pauses AS (DELETE FROM maestropy_pauses WHERE consumer_name = $1),
seen AS (DELETE FROM maestropy_agents WHERE consumer_name = $1),
holds AS (DELETE FROM maestropy_holds WHERE consumer_name = $1)
DELETE FROM consumers WHERE name = $1;

-- name: mark_released
-- Sources see the time of the release as the time of the deletion, also those of a Go instance.
UPDATE resources SET deleted_at = $2 WHERE id = ANY($1::text[]) AND deleted_at IS NULL;

-- name: orphans
-- Rows that belong to nothing, by class. Resources without a consumer cannot exist (a foreign key). Maintenance removes
-- events and status events without a resource, so those before $1 were left behind while no maestropy server ran.
SELECT 'hold' AS class, h.consumer_name AS subject, h.since AS since, a.seen_at AS seen_at
FROM maestropy_holds h LEFT JOIN maestropy_agents a ON a.consumer_name = h.consumer_name WHERE NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = h.consumer_name)
UNION ALL
SELECT 'pause', p.consumer_name, p.paused_at, NULL
FROM maestropy_pauses p WHERE NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = p.consumer_name)
UNION ALL
SELECT 'agent', a.consumer_name, a.seen_at, a.seen_at
FROM maestropy_agents a WHERE NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = a.consumer_name)
UNION ALL
SELECT 'event', e.id, e.created_at, NULL
FROM events e
WHERE e.reconciled_date IS NULL AND e.created_at < $1 AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = e.source_id)
UNION ALL
SELECT 'status-event', s.id, s.created_at, NULL
FROM status_events s WHERE s.created_at < $1 AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = s.resource_id)
ORDER BY 1, 2;

-- name: remove_orphan_holds
DELETE FROM maestropy_holds h WHERE h.consumer_name = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = h.consumer_name);

-- name: remove_orphan_pauses
DELETE FROM maestropy_pauses p WHERE p.consumer_name = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = p.consumer_name);

-- name: remove_orphan_agents
DELETE FROM maestropy_agents a WHERE a.consumer_name = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM consumers c WHERE c.name = a.consumer_name);

-- name: remove_orphan_events
DELETE FROM events e WHERE e.id = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = e.source_id);

-- name: remove_orphan_status_events
DELETE FROM status_events s WHERE s.id = ANY($1::text[])
    AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = s.resource_id);

-- name: agent_side
-- What agents keep although the database does not ask for it. Only an agent can remove it, after an adoption.
SELECT h.consumer_name, h.reason, h.work_count, h.pending_count
FROM maestropy_holds h JOIN consumers c ON c.name = h.consumer_name
WHERE h.work_count > 0 OR h.pending_count > 0
ORDER BY h.consumer_name;
