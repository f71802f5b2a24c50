-- name: insert_new
-- Insert bundles whose consumer exists and whose id is free, each with its rendition, its Create event and the wake-up,
-- in one statement and so in one transaction. Returns the ids that went in; the caller asks `read` about the others.
-- The payload is put together here from the pieces of the rendition: a large one is not sent twice.
WITH wanted AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::text[]
    ) AS w (id, source, consumer_name, version, envelope, metadata, data, event_id)
),
inserted AS (
    INSERT INTO resources (id, created_at, updated_at, name, source, consumer_name, version, type, payload)
    SELECT w.id, $9, $9, w.id, w.source, w.consumer_name, w.version, '', convert_from(
        substring(w.envelope FOR octet_length(w.envelope) - 1) || coalesce(',"metadata":'::bytea || w.metadata, '')
        || coalesce(',"data":'::bytea || w.data, '') || '}', 'UTF8')::jsonb
    FROM wanted w JOIN consumers c ON c.name = w.consumer_name
    ON CONFLICT DO NOTHING
    RETURNING id
),
rendered AS (
    INSERT INTO renditions (id, version, envelope, metadata, data)
    SELECT w.id, w.version, w.envelope, w.metadata, w.data
    FROM wanted w JOIN inserted USING (id)
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $9, $9, 'Resources', w.id, 'Create'
    FROM wanted w JOIN inserted USING (id)
)
SELECT w.id, pg_notify('events', w.event_id)
FROM wanted w JOIN inserted USING (id);

-- name: lock_ids
-- Take the advisory locks a Go server takes for the same rows; always in the same order, so nobody waits in a circle.
SELECT pg_advisory_xact_lock(key, $2)
FROM (SELECT DISTINCT k AS key FROM unnest($1::int[]) AS u (k) ORDER BY 1) AS sorted;

-- name: read_for_change
-- What admission needs to know of bundles that exist, with their rows locked until the transaction ends.
SELECT r.id, r.version, r.source, r.consumer_name, r.deleted_at IS NOT NULL AS deleting,
       CASE WHEN n.id IS NOT NULL THEN n.envelope
            -- Of what is no object nothing can be taken away: an error, and not only for this row.
            WHEN jsonb_typeof(r.payload) = 'object'
            THEN convert_to((r.payload - 'data' - 'metadata')::text, 'UTF8') END AS envelope,
       CASE WHEN n.id IS NOT NULL THEN n.metadata
            ELSE convert_to((r.payload -> 'metadata')::text, 'UTF8') END AS metadata,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[])
ORDER BY r.id
FOR UPDATE OF r;

-- name: write_updates
-- Replace the specs of locked bundles; older pending events of the same bundle are superseded by the new one, since a
-- delivery always sends the row as it is. Events another instance is delivering now are left to it.
WITH wanted AS (
    SELECT *
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[])
        AS w (id, version, envelope, metadata, data, event_id)
),
updated AS (
    UPDATE resources r
    SET version = w.version, updated_at = $7, payload = convert_from(
        substring(w.envelope FOR octet_length(w.envelope) - 1) || coalesce(',"metadata":'::bytea || w.metadata, '')
        || coalesce(',"data":'::bytea || w.data, '') || '}', 'UTF8')::jsonb
    FROM wanted w WHERE r.id = w.id
),
rendered AS (
    INSERT INTO renditions AS n (id, version, envelope, metadata, data)
    SELECT w.id, w.version, w.envelope, w.metadata, w.data FROM wanted w
    ON CONFLICT (id) DO UPDATE
    SET version = excluded.version, envelope = excluded.envelope, metadata = excluded.metadata, data = excluded.data
),
superseded AS (
    UPDATE events SET reconciled_date = $7, updated_at = $7
    WHERE id IN (
        SELECT id FROM events
        WHERE source_id = ANY($1::text[]) AND reconciled_date IS NULL
        FOR UPDATE SKIP LOCKED
    )
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $7, $7, 'Resources', w.id, 'Update' FROM wanted w
)
SELECT pg_notify('events', w.event_id) FROM wanted w;

-- name: mark_deleting
-- Soft-delete locked bundles; like a Go server, leave updated_at alone.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[]) AS w (id, event_id)
),
marked AS (
    UPDATE resources r SET deleted_at = $3 FROM wanted w WHERE r.id = w.id
),
superseded AS (
    UPDATE events SET reconciled_date = $3, updated_at = $3
    WHERE id IN (
        SELECT id FROM events
        WHERE source_id = ANY($1::text[]) AND reconciled_date IS NULL
        FOR UPDATE SKIP LOCKED
    )
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $3, $3, 'Resources', w.id, 'Delete' FROM wanted w
)
SELECT pg_notify('events', w.event_id) FROM wanted w;

-- name: existing_consumers
SELECT name FROM consumers WHERE name = ANY($1::text[]);

-- name: read_specs
-- Bundles as deliveries send them.
SELECT r.id, r.version, r.source, r.consumer_name, r.created_at, r.updated_at, r.deleted_at,
       CASE WHEN n.id IS NOT NULL THEN n.envelope
            -- Of what is no object nothing can be taken away: an error, and not only for this row.
            WHEN jsonb_typeof(r.payload) = 'object'
            THEN convert_to((r.payload - 'data' - 'metadata')::text, 'UTF8') END AS envelope,
       CASE WHEN n.id IS NOT NULL THEN n.metadata
            ELSE convert_to((r.payload -> 'metadata')::text, 'UTF8') END AS metadata,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[]);

-- name: versions_of_consumers
-- What a spec resync compares: no payload is read.
SELECT consumer_name, id, version, deleted_at IS NOT NULL AS deleting
FROM resources WHERE consumer_name = ANY($1::text[])
ORDER BY created_at, id;

-- name: unanswered_of_consumer
-- What an agent may not have got: bundles that are to go, and those whose status is of another version than theirs.
SELECT id FROM resources
WHERE consumer_name = $1 AND (deleted_at IS NOT NULL OR status ->> 'resourceversion' IS DISTINCT FROM version::text)
ORDER BY created_at, id;

-- name: changed_since
-- What may have been missed; a deletion is marked without touching updated_at.
SELECT id FROM resources
WHERE consumer_name = ANY($1::text[]) AND (updated_at > $2 OR deleted_at > $2)
ORDER BY created_at, id;

-- name: status_hashes_of_consumers
-- What a status resync asks an agent about; deleting bundles too, since their last word may be what was lost.
SELECT consumer_name, id, coalesce(status ->> 'statushash', '') AS status_hash
FROM resources WHERE consumer_name = ANY($1::text[])
ORDER BY created_at, id;

-- name: status_hashes_of_source
SELECT id, coalesce(status ->> 'statushash', '') AS status_hash
FROM resources
WHERE source = $1 AND jsonb_typeof(status) = 'object' AND status <> '{}'::jsonb
ORDER BY created_at, id;
