-- Queries about works. Every statement is read-only, and every result row is one JSON document.
-- Parameters are text: $1 consumer or '', $2 source or '', $3 the identifier or a JSON list of them.
-- A part is text that statements share; <name> stands for it.
--
-- A search that no index helps is a scan with a deadline: <deadline> after the statement began, every further row counts
-- as late, so that the LIMIT is reached and the scan ends. The statement then reports how much it has searched. The scan
-- begins with the newest work where the index for that exists; on a database that only Go servers migrated it does not,
-- and the scan is in the order of the table. `to_regclass` decides it before a row is read.

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
  'created_at', s.created_at, 'payload', s.payload, 'released', s.status ->> 'released',
  'conditions', s.status -> 'data' -> 'conditions')::text AS document

-- part: narrowed
($1::text = '' OR r.consumer_name = $1::text) AND ($2::text = '' OR r.source = $2::text)

-- part: listed
ARRAY(SELECT json_array_elements_text($3::json))

-- part: late
clock_timestamp() > statement_timestamp() + $4::text::interval

-- part: is_ordered
to_regclass('maestropy_resources_order') IS NOT NULL

-- part: numbered
SELECT r.id, r.created_at, r.payload, <late> AS is_late,
  row_number() OVER (ORDER BY r.created_at DESC, r.id DESC) AS number
FROM resources r WHERE <is_ordered> AND <narrowed>

-- part: unordered
SELECT r.id, r.created_at, r.payload, <late> AS is_late, row_number() OVER () AS number
FROM resources r WHERE NOT (<is_ordered>) AND <narrowed>

-- part: rows_and_coverage
SELECT document FROM (
  SELECT <row> FROM (
    SELECT id, created_at FROM hits WHERE NOT is_late ORDER BY created_at DESC, id LIMIT 500
  ) h JOIN resources r USING (id) ORDER BY h.created_at DESC, h.id
) rows
UNION ALL
SELECT json_build_object('trace', 'coverage', 'matches', count(*) FILTER (WHERE NOT is_late),
  'searched', min(number) FILTER (WHERE is_late) - 1, 'since', max(created_at) FILTER (WHERE is_late),
  'is_newest_first', <is_ordered>, 'found_by_index', count(*) FILTER (WHERE number = 0),
  'total', (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = 'resources'::regclass))::text
FROM hits

-- name: by_id
SELECT <row> FROM resources r
WHERE <narrowed> AND r.id = ANY (<listed>)
UNION ALL
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND s.resource_id = ANY (<listed>)

-- name: origins
-- The sources and consumers from which the IDs of works of a name are computed. The index is read source by source.
WITH RECURSIVE sources (source) AS (
  (SELECT source FROM resources ORDER BY source LIMIT 1)
  UNION ALL
  SELECT (SELECT r.source FROM resources r WHERE r.source > s.source ORDER BY r.source LIMIT 1)
  FROM sources s WHERE s.source IS NOT NULL
)
SELECT json_build_object('trace', 'origins',
  'sources', (SELECT json_agg(source) FROM (
    SELECT source FROM sources WHERE source IS NOT NULL AND ($2::text = '' OR source = $2::text) LIMIT 10001) s),
  'consumers', (SELECT json_agg(name) FROM (
    SELECT name FROM consumers WHERE $1::text = '' OR name = $1::text LIMIT 10001) c))::text AS document

-- part: computed_ids
ARRAY(SELECT json_array_elements_text($5::json))

-- part: has_names
to_regclass('maestropy_resources_work_name') IS NOT NULL

-- name: by_work_name
-- $5 are the IDs that a work client computes for the name. Where the index on names exists, it finds all others too, and
-- the number -1 says so. The scan for others only runs if none of both exists. It also finds applied works of before
-- January 2026, which carry the user's work name.
WITH computed AS MATERIALIZED (
  SELECT r.id, r.created_at, false AS is_late, CASE WHEN <has_names> THEN -1 ELSE 0 END::bigint AS number
  FROM resources r WHERE <narrowed> AND r.id = ANY (<computed_ids>)
  UNION
  SELECT r.id, r.created_at, false AS is_late, -1::bigint AS number FROM resources r
  WHERE <has_names> AND <narrowed> AND r.payload->'metadata'->>'name' = ANY (<listed>)
), hits AS MATERIALIZED (
  SELECT * FROM computed
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<numbered> AND NOT EXISTS (SELECT 1 FROM computed)) r
  WHERE r.is_late OR r.payload->'metadata'->>'name' = ANY (<listed>) LIMIT 10001)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<unordered> AND NOT EXISTS (SELECT 1 FROM computed)) r
  WHERE r.is_late OR r.payload->'metadata'->>'name' = ANY (<listed>) LIMIT 10001)
)
<rows_and_coverage>
UNION ALL
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND s.resource_id = ANY (<computed_ids>)
UNION ALL
SELECT <tombstone> FROM (
  SELECT * FROM (SELECT e.*, <late> AS is_late FROM status_events e) e
  WHERE e.is_late OR (e.status_event_type = 'StatusDelete' AND e.payload->'metadata'->>'name' = ANY (<listed>)
    AND NOT e.resource_id = ANY (<computed_ids>))
  LIMIT 500
) s WHERE NOT s.is_late

-- name: by_name_part
WITH hits AS MATERIALIZED (
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<numbered>) r
  WHERE r.is_late OR strpos(lower(r.payload->'metadata'->>'name'), lower($3::text)) > 0 LIMIT 10)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<unordered>) r
  WHERE r.is_late OR strpos(lower(r.payload->'metadata'->>'name'), lower($3::text)) > 0 LIMIT 10001)
)
<rows_and_coverage>

-- name: by_label
-- The index on labels answers by itself, Go's of September 2026 or ours of before; without it the search is a scan.
WITH hits AS MATERIALIZED (
  (SELECT r.id, r.created_at, false AS is_late, 0::bigint AS number FROM resources r
  WHERE coalesce(to_regclass('idx_resources_payload_labels'), to_regclass('maestropy_resources_labels')) IS NOT NULL AND <narrowed>
    AND r.payload->'metadata'->'labels' @> jsonb_build_object($3::text, $5::text) LIMIT 10001)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (
    <numbered> AND coalesce(to_regclass('idx_resources_payload_labels'), to_regclass('maestropy_resources_labels')) IS NULL) r
  WHERE r.is_late OR r.payload->'metadata'->'labels'->>$3::text = $5::text LIMIT 10001)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (
    <unordered> AND coalesce(to_regclass('idx_resources_payload_labels'), to_regclass('maestropy_resources_labels')) IS NULL) r
  WHERE r.is_late OR r.payload->'metadata'->'labels'->>$3::text = $5::text LIMIT 10001)
)
<rows_and_coverage>

-- name: by_operation
WITH hits AS MATERIALIZED (
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<numbered>) r
  WHERE r.is_late OR strpos(r.payload->>'logtracing', $3::text) > 0 LIMIT 10001)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<unordered>) r
  WHERE r.is_late OR strpos(r.payload->>'logtracing', $3::text) > 0 LIMIT 10001)
)
<rows_and_coverage>

-- part: has_manifest
-- The containment is a cheap test of most works; the rest is exact.
r.payload @> jsonb_build_object('data', jsonb_build_object('manifests', jsonb_build_array(
  jsonb_build_object('metadata', jsonb_build_object('name', $5::text)))))
AND EXISTS (
  SELECT 1 FROM jsonb_array_elements(CASE jsonb_typeof(r.payload->'data'->'manifests')
    WHEN 'array' THEN r.payload->'data'->'manifests' ELSE '[]'::jsonb END) m
  WHERE m->'metadata'->>'name' = $5::text AND lower(m->>'kind') = ANY (<listed>)
    AND ($6::text = '' OR coalesce(m->'metadata'->>'namespace', '') = $6::text)
    AND ($7::text = '' OR split_part(m->>'apiVersion', '/', 1) = $7::text)
)

-- name: by_manifest
WITH hits AS MATERIALIZED (
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<numbered>) r
  WHERE r.is_late OR (<has_manifest>) LIMIT 10001)
  UNION ALL
  (SELECT r.id, r.created_at, r.is_late, r.number FROM (<unordered>) r
  WHERE r.is_late OR (<has_manifest>) LIMIT 10001)
)
<rows_and_coverage>

-- name: has_holds
-- Only databases of this project have the table.
SELECT '{}' WHERE to_regclass('maestropy_holds') IS NOT NULL

-- name: has_pauses
SELECT '{}' WHERE to_regclass('maestropy_pauses') IS NOT NULL

-- name: pauses
SELECT to_jsonb(p)::text FROM maestropy_pauses p ORDER BY p.paused_at DESC LIMIT 1000

-- name: holds
SELECT to_jsonb(h)::text FROM maestropy_holds h ORDER BY h.since DESC LIMIT 100

-- name: page
-- All works, in pages by ID: $3 is the last ID of the page before, $4 the size of a page.
SELECT <row> FROM resources r WHERE <narrowed> AND r.id > $3::text ORDER BY r.id LIMIT $4::text::int

-- name: tombstones
-- The newest confirmed deletions: $4 is their number.
SELECT <tombstone> FROM status_events s
WHERE s.status_event_type = 'StatusDelete' AND ($2::text = '' OR s.resource_source = $2::text)
  AND ($1::text = '' OR coalesce(s.payload->>'clustername', s.payload->'metadata'->>'namespace') = $1::text)
  AND ($3::text = '' OR s.created_at >= $3::text::timestamptz)
ORDER BY s.created_at DESC LIMIT $4::text::int
