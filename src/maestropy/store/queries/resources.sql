-- name: insert_new
-- Insert resources whose consumer exists and whose ID is free, unless the same event of the source has created the
-- resource before and it was removed since: then this is a late copy of the event. Each is written with its rendition, its Create event and the
-- notification, in one statement and so in one transaction. Returns the inserted IDs. The payload is built here from
-- the parts of the rendition: a large payload is not sent twice.
WITH batch AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[], $8::text[], $9::text[],
        $11::text[], $12::text[], $13::text[], $14::text[]
    ) AS b (id, source, consumer_name, version, envelope, metadata, data, event_id, created_by,
            actor, address, operation_id, detail)
),
inserted AS (
    INSERT INTO resources (id, created_at, updated_at, name, source, consumer_name, version, type, payload)
    SELECT b.id, $10, $10, b.id, b.source, b.consumer_name, b.version, '', convert_from(
        substring(b.envelope FOR octet_length(b.envelope) - 1) || coalesce(',"metadata":'::bytea || b.metadata, '')
        || coalesce(',"data":'::bytea || b.data, '') || '}', 'UTF8')::jsonb
    FROM batch b JOIN consumers c ON c.name = b.consumer_name
    WHERE NOT EXISTS (
        SELECT 1 FROM status_events s WHERE s.resource_id = b.id AND s.maestropy_created_by = b.created_by
    )
    ON CONFLICT DO NOTHING
    RETURNING id
),
rendered AS (
    INSERT INTO renditions (id, version, envelope, metadata, data, created_by)
    SELECT b.id, b.version, b.envelope, b.metadata, b.data, nullif(b.created_by, '')
    FROM batch b JOIN inserted USING (id)
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT b.event_id, $10, $10, 'Resources', b.id, 'Create'
    FROM batch b JOIN inserted USING (id)
),
recorded AS (
    INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                                   result, detail)
    SELECT $10, 'work.created', b.id, b.consumer_name, b.source, b.version, b.actor, b.address, b.operation_id, '',
           b.detail
    FROM batch b JOIN inserted USING (id) WHERE b.detail IS NOT NULL
)
SELECT b.id,
       CASE row_number() OVER () WHEN 1 THEN maestropy_notify('events', array_agg(b.event_id) OVER ()) END
FROM batch b JOIN inserted USING (id);

-- name: removed_creations
-- Which of these events created a resource that was removed since.
SELECT b.id
FROM unnest($1::text[], $2::text[]) AS b (id, created_by)
WHERE EXISTS (SELECT 1 FROM status_events s WHERE s.resource_id = b.id AND s.maestropy_created_by = b.created_by);

-- name: lock_ids
-- Take the advisory locks that a Go server takes for the same rows, always in the same order to avoid deadlocks.
SELECT pg_advisory_xact_lock(key, $2)
FROM (SELECT DISTINCT k AS key FROM unnest($1::int[]) AS u (k) ORDER BY 1) AS sorted;

-- name: read_for_change
-- Stored specs for admission; the rows stay locked until the transaction ends.
SELECT r.id, r.version, r.source, r.consumer_name, r.deleted_at IS NOT NULL AS is_deleting,
       -- The agent keeps a newer version until the source publishes again.
       COALESCE(jsonb_path_exists(
           r.status,
           '$.data.conditions[*] ? (@.type == "DataSafetyHold" && @.status == "True" && @.reason == "OlderVersion")'
       ), false) AS is_held_back,
       CASE WHEN n.id IS NOT NULL THEN n.envelope
            -- Removing keys from a value that is not an object is an error, and would fail all rows.
            WHEN jsonb_typeof(r.payload) = 'object'
            THEN convert_to((r.payload - 'data' - 'metadata')::text, 'UTF8')
            -- So that the error says what the row has in place of an object.
            ELSE convert_to(COALESCE(r.payload, 'null')::text, 'UTF8') END AS envelope,
       CASE WHEN n.id IS NOT NULL THEN n.metadata
            ELSE convert_to((r.payload -> 'metadata')::text, 'UTF8') END AS metadata,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[])
ORDER BY r.id
FOR UPDATE OF r;

-- name: write_updates
-- Replace the specs of locked resources. The new event supersedes older pending events of the resource, since a
-- dispatcher always sends the current row. Skip events that another instance is sending.
WITH batch AS (
    SELECT *
    FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[], $6::text[],
                $8::text[], $9::text[], $10::text[], $11::text[])
        AS b (id, version, envelope, metadata, data, event_id, actor, address, operation_id, detail)
),
updated AS (
    UPDATE resources r
    SET version = b.version, updated_at = $7, payload = convert_from(
        substring(b.envelope FOR octet_length(b.envelope) - 1) || coalesce(',"metadata":'::bytea || b.metadata, '')
        || coalesce(',"data":'::bytea || b.data, '') || '}', 'UTF8')::jsonb
    FROM batch b WHERE r.id = b.id
    RETURNING r.id, r.consumer_name, r.source
),
rendered AS (
    INSERT INTO renditions AS n (id, version, envelope, metadata, data)
    SELECT b.id, b.version, b.envelope, b.metadata, b.data FROM batch b
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
    SELECT b.event_id, $7, $7, 'Resources', b.id, 'Update' FROM batch b
),
recorded AS (
    INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                                   result, detail)
    SELECT $7, 'work.updated', b.id, c.consumer_name, coalesce(c.source, ''), b.version, b.actor, b.address, b.operation_id,
           '', b.detail
    FROM batch b JOIN updated c USING (id) WHERE b.detail IS NOT NULL
)
SELECT maestropy_notify('events', array_agg(b.event_id)) FROM batch b;

-- name: mark_deleting
-- Soft-delete locked resources; like a Go server, keep updated_at.
WITH batch AS (
    SELECT * FROM unnest($1::text[], $2::text[], $4::text[], $5::text[], $6::text[], $7::text[])
        AS b (id, event_id, actor, address, operation_id, detail)
),
marked AS (
    UPDATE resources r SET deleted_at = $3 FROM batch b WHERE r.id = b.id
    RETURNING r.id, r.consumer_name, r.source, r.version
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
    SELECT b.event_id, $3, $3, 'Resources', b.id, 'Delete' FROM batch b
),
recorded AS (
    INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                                   result, detail)
    SELECT $3, 'work.deletion-requested', b.id, c.consumer_name, coalesce(c.source, ''), c.version, b.actor, b.address, b.operation_id,
           '', b.detail
    FROM batch b JOIN marked c USING (id) WHERE b.detail IS NOT NULL
)
SELECT maestropy_notify('events', array_agg(b.event_id)) FROM batch b;

-- name: existing_consumers
SELECT name FROM consumers WHERE name = ANY($1::text[]);

-- name: read_specs
-- Resources with their specs, to dispatch them, and the identity of the database that they are read from. A pause is read
-- with the row: what is read after the pause was stored is not sent.
SELECT (SELECT d.id FROM maestropy_database d) AS database_id,
       EXISTS (SELECT 1 FROM maestropy_pauses p WHERE p.consumer_name = r.consumer_name) AS is_paused, r.id, r.version, r.source, r.consumer_name, r.created_at, r.updated_at, r.deleted_at,
       CASE WHEN n.id IS NOT NULL THEN n.envelope
            -- Removing keys from a value that is not an object is an error, and would fail all rows.
            WHEN jsonb_typeof(r.payload) = 'object'
            THEN convert_to((r.payload - 'data' - 'metadata')::text, 'UTF8')
            -- So that the error says what the row has in place of an object.
            ELSE convert_to(COALESCE(r.payload, 'null')::text, 'UTF8') END AS envelope,
       CASE WHEN n.id IS NOT NULL THEN n.metadata
            ELSE convert_to((r.payload -> 'metadata')::text, 'UTF8') END AS metadata,
       CASE WHEN n.id IS NOT NULL THEN n.data
            ELSE convert_to((r.payload -> 'data')::text, 'UTF8') END AS data
FROM resources r LEFT JOIN renditions n ON n.id = r.id AND n.version = r.version
WHERE r.id = ANY($1::text[]);

-- name: versions_of_consumers
-- Versions for a spec resync; no payload is read. The ID of the source's event tells two specs of one version apart; $2
-- says whether an agent has reported any. It is read without parsing: one damaged envelope must not fail the resync of
-- all consumers. Row by row: for some dozens of consumers a join would read the renditions of all of them.
SELECT r.consumer_name, r.id, r.version, r.deleted_at IS NOT NULL AS is_deleting,
       substring(encode(n.envelope, 'escape') FROM '"id":\s*"([^"]*)"') AS event_id
FROM resources r LEFT JOIN LATERAL (
    SELECT envelope FROM renditions WHERE $2::boolean AND id = r.id AND version = r.version OFFSET 0
) n ON true
WHERE r.consumer_name = ANY($1::text[])
ORDER BY r.created_at, r.id;

-- name: unconfirmed_of_consumer
-- Resources that are being deleted, and those whose status is of another version than the spec.
SELECT id FROM resources
WHERE consumer_name = $1 AND (deleted_at IS NOT NULL OR status ->> 'resourceversion' IS DISTINCT FROM version::text)
ORDER BY created_at, id;

-- name: changed_since
-- Resources that a notification may have missed; a deletion does not change updated_at.
SELECT id FROM resources
WHERE consumer_name = ANY($1::text[]) AND (updated_at > $2 OR deleted_at > $2)
ORDER BY created_at, id;

-- name: status_hashes_of_consumers
-- Status hashes for a status resync; also of deleting resources, since their last status may be lost. The concatenation
-- changes nothing: it decompresses a large status once for both members.
SELECT consumer_name, id, coalesce(status ->> 'statushash', '') AS status_hash,
       coalesce(status ->> 'sequenceid', '') AS sequence_id
FROM (
    SELECT consumer_name, id, created_at, status || '{}'::jsonb AS status
    FROM resources WHERE consumer_name = ANY($1::text[])
    OFFSET 0
) decompressed
ORDER BY created_at, id;

-- name: status_hashes_of_resources
-- Status hashes of some resources of a consumer.
SELECT id, coalesce(status ->> 'statushash', '') AS status_hash, coalesce(status ->> 'sequenceid', '') AS sequence_id
FROM resources WHERE id = ANY($1::text[]) AND consumer_name = $2
ORDER BY created_at, id;

-- name: status_hashes_of_source
SELECT id, coalesce(status ->> 'statushash', '') AS status_hash
FROM resources
WHERE source = $1 AND jsonb_typeof(status) = 'object' AND status <> '{}'::jsonb
ORDER BY created_at, id;
