-- name: read_for_report
-- What intake needs to know of the bundles that reports speak of, with their rows locked.
SELECT r.id, r.version, r.source, r.consumer_name, r.created_at, r.deleted_at,
       coalesce(r.status ->> 'sequenceid', '') AS sequence_id,
       coalesce(r.status ->> 'statushash', '') AS status_hash,
       coalesce(r.status ->> 'resourceversion', '') AS observed_version,
       CASE WHEN n.id IS NOT NULL THEN n.metadata
            ELSE convert_to((r.payload -> 'metadata')::text, 'UTF8') END AS metadata
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[])
ORDER BY r.id
FOR UPDATE OF r;

-- name: write_statuses
-- Store new statuses with their status events and wake-ups.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (id, status, event_id, source)
),
updated AS (
    UPDATE resources r SET status = w.status::jsonb, updated_at = $5 FROM wanted w WHERE r.id = w.id
),
announced AS (
    INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type,
                               status_event_type)
    SELECT w.event_id, $5, $5, w.id, w.source, '', 'StatusUpdate' FROM wanted w
)
SELECT pg_notify('status_events', w.event_id) FROM wanted w;

-- name: finish
-- The agent has removed everything: the last status lives on in its event, the row goes. What only the row knew, its two
-- times, goes into the payload, because a Go instance tells sources what stands there.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS w (id, status, event_id)
),
announced AS (
    INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type, payload, status,
                               status_event_type)
    SELECT w.event_id, $4, $4, r.id, r.source, coalesce(r.type, ''),
           CASE jsonb_typeof(r.payload->'metadata') WHEN 'object' THEN
               jsonb_set(r.payload, '{metadata}', r.payload->'metadata' || jsonb_strip_nulls(jsonb_build_object(
                   'creationTimestamp', to_char(r.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'deletionTimestamp', to_char(r.deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))))
           ELSE r.payload END,
           w.status::jsonb, 'StatusDelete'
    FROM wanted w JOIN resources r ON r.id = w.id
),
settled AS (
    UPDATE events SET reconciled_date = $4, updated_at = $4
    WHERE id IN (
        SELECT id FROM events
        WHERE source_id = ANY($1::text[]) AND reconciled_date IS NULL
        FOR UPDATE SKIP LOCKED
    )
),
removed AS (
    DELETE FROM resources r USING wanted w WHERE r.id = w.id
)
SELECT pg_notify('status_events', w.event_id) FROM wanted w;

-- name: redeliver
-- An agent says it removed bundles nobody asked it to remove, or others than these: send them again. A Go server that
-- takes the event sends a bundle that is being deleted for no other reason than its deletion.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[]) AS w (id, event_id)
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $3, $3, 'Resources', w.id, CASE WHEN r.deleted_at IS NULL THEN 'Update' ELSE 'Delete' END
    FROM wanted w JOIN resources r ON r.id = w.id
    WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.source_id = w.id AND e.reconciled_date IS NULL)
    RETURNING id
)
SELECT pg_notify('events', id) FROM announced;

-- name: read_status_events
-- Whom status events concern; light, since every instance asks for every event.
SELECT s.id, s.resource_id, s.status_event_type, s.created_at, r.consumer_name,
       coalesce(nullif(s.resource_source, ''), r.source) AS source
FROM status_events s LEFT JOIN resources r ON r.id = s.resource_id
WHERE s.id = ANY($1::text[]);

-- name: last_words
-- With which report the latest bundle of an id has ended, for as long as that is remembered.
SELECT DISTINCT ON (resource_id) resource_id AS id, status ->> 'sequenceid' AS sequence_id
FROM status_events
WHERE resource_id = ANY($1::text[]) AND status_event_type = 'StatusDelete' AND status ->> 'sequenceid' IS NOT NULL
ORDER BY resource_id, created_at DESC, id DESC;

-- name: ended
-- Bundles that these consumers had: the named ones and those that ended after a moment, the latest end last.
SELECT s.resource_id AS id, s.status ->> 'clustername' AS consumer_name, s.status ->> 'resourceversion' AS version
FROM status_events s
WHERE s.status_event_type = 'StatusDelete'
  AND (s.resource_id = ANY($1::text[]) OR s.created_at > $2)
  AND s.status ->> 'clustername' = ANY($3::text[])
ORDER BY s.created_at, s.id;

-- name: missed_status_events
-- Status events of the recent past that an instance has not passed on: it may have missed some wake-ups.
SELECT s.id FROM status_events s
WHERE s.created_at > $1
  AND NOT EXISTS (SELECT 1 FROM event_instances i WHERE i.event_id = s.id AND i.instance_id = $2)
ORDER BY s.created_at, s.id
LIMIT $3;

-- name: read_statuses
-- Bundles with a status, as sources get to see them.
SELECT r.id, r.source, r.version, r.created_at, r.deleted_at, r.status::text AS status,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[]) AND jsonb_typeof(r.status) = 'object' AND r.status <> '{}'::jsonb;

-- name: read_final_statuses
-- The last words of bundles that are gone.
SELECT s.id AS event_id, s.resource_id AS id, s.resource_source AS source, s.status::text AS status,
       convert_to((s.payload -> 'data')::text, 'UTF8') AS data
FROM status_events s
WHERE s.id = ANY($1::text[]) AND jsonb_typeof(s.status) = 'object';

-- name: record_broadcasts
-- Tell the others that this instance has passed these status events on; a Go server purges by it.
INSERT INTO event_instances (event_id, instance_id)
SELECT s.id, $2
FROM status_events s
WHERE s.id = ANY($1::text[])
  AND NOT EXISTS (SELECT 1 FROM event_instances i WHERE i.event_id = s.id AND i.instance_id = $2);
