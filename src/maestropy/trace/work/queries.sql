-- Questions about works. Every statement only reads, and every result row is one JSON document.
-- Parameters are text: $1 consumer or '', $2 source or '', $3 the identifier or a JSON list of them.
-- A part is text that statements share; <name> stands for it.

-- part: row
json_build_object('trace', 'row', 'id', r.id, 'source', r.source, 'consumer_name', r.consumer_name,
  'version', r.version, 'created_at', r.created_at, 'updated_at', r.updated_at, 'deleted_at', r.deleted_at,
  'payload', r.payload, 'status', r.status, 'events', (
    SELECT json_agg(json_build_object('id', e.id, 'event_type', e.event_type, 'created_at', e.created_at,
      'reconciled_date', e.reconciled_date) ORDER BY e.created_at)
    FROM (SELECT * FROM events WHERE source = 'Resources' AND source_id = r.id ORDER BY created_at DESC LIMIT 5) e
  ))::text AS document

-- part: tombstone
json_build_object('trace', 'tombstone', 'resource_id', s.resource_id, 'source', s.resource_source,
  'created_at', s.created_at, 'payload', s.payload)::text AS document

-- part: narrowed
($1::text = '' OR r.consumer_name = $1::text) AND ($2::text = '' OR r.source = $2::text)

-- part: listed
ARRAY(SELECT json_array_elements_text($3::json))

-- part: newest
ORDER BY r.created_at DESC, r.id

-- name: by_id
SELECT <row> FROM resources r
WHERE <narrowed> AND r.id = ANY (<listed>)
UNION ALL
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND s.resource_id = ANY (<listed>)

-- name: by_applied_work
-- Before January 2026 applied works carry the user's work name. The scan by name only runs if no id fits.
WITH by_id AS (
  SELECT <row> FROM resources r WHERE <narrowed> AND r.id = ANY (<listed>)
)
SELECT document FROM by_id
UNION ALL
SELECT <row> FROM resources r
WHERE NOT EXISTS (SELECT 1 FROM by_id) AND <narrowed> AND r.payload->'metadata'->>'name' = ANY (<listed>)
UNION ALL
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND s.resource_id = ANY (<listed>)

-- name: by_work_name
(SELECT <row> FROM resources r
WHERE <narrowed> AND r.payload->'metadata'->>'name' = ANY (<listed>) <newest> LIMIT 500)
UNION ALL
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND s.payload->'metadata'->>'name' = ANY (<listed>)

-- name: by_name_part
SELECT <row> FROM resources r
WHERE <narrowed> AND strpos(lower(r.payload->'metadata'->>'name'), lower($3::text)) > 0 <newest> LIMIT 10

-- name: by_label
SELECT <row> FROM resources r
WHERE <narrowed> AND r.payload->'metadata'->'labels'->>$3::text = $4::text <newest> LIMIT 500

-- name: by_operation
SELECT <row> FROM resources r
WHERE <narrowed> AND strpos(r.payload->>'logtracing', $3::text) > 0 <newest> LIMIT 500

-- name: by_manifest
SELECT <row> FROM resources r
WHERE <narrowed> AND EXISTS (
  SELECT 1 FROM jsonb_array_elements(CASE jsonb_typeof(r.payload->'data'->'manifests')
    WHEN 'array' THEN r.payload->'data'->'manifests' ELSE '[]'::jsonb END) m
  WHERE m->'metadata'->>'name' = $4::text AND lower(m->>'kind') = ANY (<listed>)
    AND ($5::text = '' OR coalesce(m->'metadata'->>'namespace', '') = $5::text)
    AND ($6::text = '' OR split_part(m->>'apiVersion', '/', 1) = $6::text)
) <newest> LIMIT 500
