-- name: read_for_status_update
-- Stored statuses to decide on status updates; the rows stay locked until the transaction ends.
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

-- name: read_status_data
-- The stored statuses to compare new ones with; only for those that this instance has not stored itself.
SELECT id, convert_to((status -> 'data')::text, 'UTF8') AS data FROM resources WHERE id = ANY($1::text[]);

-- name: write_statuses
-- Store new statuses with their status events and notifications.
WITH batch AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $6::text[], $7::text[], $8::text[], $9::text[])
        AS b (id, status, event_id, source, actor, address, operation_id, detail)
),
updated AS (
    UPDATE resources r SET status = b.status::jsonb, updated_at = $5 FROM batch b WHERE r.id = b.id
    RETURNING r.id, r.consumer_name, r.source, r.version
),
announced AS (
    INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type,
                               status_event_type)
    SELECT b.event_id, $5, $5, b.id, b.source, '', 'StatusUpdate' FROM batch b
),
recorded AS (
    INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                                   result, detail)
    SELECT $5, 'work.status', b.id, c.consumer_name, coalesce(c.source, ''), c.version, b.actor, b.address, b.operation_id,
           '', b.detail
    FROM batch b JOIN updated c USING (id) WHERE b.detail IS NOT NULL
)
SELECT maestropy_notify('status_events', array_agg(b.event_id)) FROM batch b;

-- name: remove
-- Remove resources whose agent has deleted everything. The status event keeps the last status. The creation and deletion
-- times of the row go into its payload, because a Go instance sends that payload to sources.
WITH batch AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $5::text[], $6::text[], $7::text[], $8::text[])
        AS b (id, status, event_id, actor, address, operation_id, detail)
),
announced AS (
    INSERT INTO status_events (id, created_at, updated_at, resource_id, resource_source, resource_type, payload, status,
                               status_event_type, maestropy_created_by)
    SELECT b.event_id, $4, $4, r.id, r.source, coalesce(r.type, ''),
           CASE jsonb_typeof(r.payload->'metadata') WHEN 'object' THEN
               jsonb_set(r.payload, '{metadata}', r.payload->'metadata' || jsonb_strip_nulls(jsonb_build_object(
                   'creationTimestamp', to_char(r.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'deletionTimestamp', to_char(r.deleted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))))
           ELSE r.payload END,
           b.status::jsonb, 'StatusDelete', n.created_by
    FROM batch b JOIN resources r ON r.id = b.id LEFT JOIN renditions n ON n.id = r.id
),
reconciled AS (
    UPDATE events SET reconciled_date = $4, updated_at = $4
    WHERE id IN (
        SELECT id FROM events
        WHERE source_id = ANY($1::text[]) AND reconciled_date IS NULL
        FOR UPDATE SKIP LOCKED
    )
),
removed AS (
    DELETE FROM resources r USING batch b WHERE r.id = b.id
    RETURNING r.id, r.consumer_name, r.source, r.version
),
recorded AS (
    INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                                   result, detail)
    SELECT $4, 'work.deleted', b.id, c.consumer_name, coalesce(c.source, ''), c.version, b.actor, b.address, b.operation_id,
           '', b.detail
    FROM batch b JOIN removed c USING (id) WHERE b.detail IS NOT NULL
)
SELECT maestropy_notify('status_events', array_agg(b.event_id)) FROM batch b;

-- name: redeliver
-- Queue resources again whose agent deleted the work without a request, or deleted a previous incarnation. A Go server
-- sends a deleting resource only for a Delete event.
WITH batch AS (
    SELECT * FROM unnest($1::text[], $2::text[]) AS b (id, event_id)
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT b.event_id, $3, $3, 'Resources', b.id, CASE WHEN r.deleted_at IS NULL THEN 'Update' ELSE 'Delete' END
    FROM batch b JOIN resources r ON r.id = b.id
    WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.source_id = b.id AND e.reconciled_date IS NULL)
    RETURNING id
)
SELECT maestropy_notify('events', array_agg(id)) FROM announced;

-- name: read_status_events
-- Status events with their sources; small rows, since every instance reads every event.
SELECT s.id, s.resource_id, s.status_event_type, s.created_at, r.consumer_name,
       coalesce(nullif(s.resource_source, ''), r.source) AS source
FROM status_events s LEFT JOIN resources r ON r.id = s.resource_id
WHERE s.id = ANY($1::text[]);

-- name: last_sequence_ids
-- Sequence ID of the last status of the latest removed incarnation, as long as its status event is kept.
SELECT DISTINCT ON (resource_id) resource_id AS id, status ->> 'sequenceid' AS sequence_id
FROM status_events
WHERE resource_id = ANY($1::text[]) AND status_event_type = 'StatusDelete' AND status ->> 'sequenceid' IS NOT NULL
ORDER BY resource_id, created_at DESC, id DESC;

-- name: removed_versions
-- Removed resources of these consumers: those named and those removed after $2, latest last.
SELECT s.resource_id AS id, s.status ->> 'clustername' AS consumer_name, s.status ->> 'resourceversion' AS version,
       s.status -> 'metadata' ->> 'creationTimestamp' AS created
FROM status_events s
WHERE s.status_event_type = 'StatusDelete'
  AND (s.resource_id = ANY($1::text[]) OR s.created_at > $2)
  AND s.status ->> 'clustername' = ANY($3::text[])
  -- The objects of a released work stay on the cluster.
  AND s.status ->> 'released' IS NULL
ORDER BY s.created_at, s.id;

-- name: missed_status_events
-- Recent status events that an instance has not broadcast: it may have missed notifications.
SELECT s.id FROM status_events s
WHERE s.created_at > $1
  AND NOT EXISTS (SELECT 1 FROM event_instances i WHERE i.event_id = s.id AND i.instance_id = $2)
ORDER BY s.created_at, s.id
LIMIT $3;

-- name: oldest_missed_status_event
SELECT extract(epoch FROM $3::timestamptz - min(s.created_at))::float8 FROM status_events s
WHERE s.created_at > $1
  AND NOT EXISTS (SELECT 1 FROM event_instances i WHERE i.event_id = s.id AND i.instance_id = $2);

-- name: read_statuses
-- Resources with a status, to dispatch it to their sources.
SELECT r.id, r.source, r.version, r.created_at, r.deleted_at, r.status::text AS status,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[]) AND jsonb_typeof(r.status) = 'object' AND r.status <> '{}'::jsonb;

-- name: read_final_statuses
-- Last statuses of removed resources.
SELECT s.id AS event_id, s.resource_id AS id, s.resource_source AS source, s.status::text AS status,
       convert_to((s.payload -> 'data')::text, 'UTF8') AS data
FROM status_events s
WHERE s.id = ANY($1::text[]) AND jsonb_typeof(s.status) = 'object';

-- name: record_broadcasts
-- Record that this instance has broadcast these status events; a Go server purges by it.
INSERT INTO event_instances (event_id, instance_id)
SELECT s.id, $2
FROM status_events s
WHERE s.id = ANY($1::text[])
  AND NOT EXISTS (SELECT 1 FROM event_instances i WHERE i.event_id = s.id AND i.instance_id = $2);
