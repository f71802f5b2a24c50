-- name: count
-- How many bundles fit the condition; those being deleted count too.
SELECT count(*) FROM resources WHERE :condition

-- name: outline
-- Which bundles a page holds, in order, with a guess of their bytes. Neither length needs the value itself, so
-- nothing big is read here. The rendition's columns are renamed because a search may name a column of `resources`
-- without its table.
SELECT resources.id, :weight AS size
FROM resources
LEFT JOIN (SELECT id AS rendition_id, data AS rendition_data FROM renditions) AS rendition
    ON rendition_id = resources.id
WHERE :condition
ORDER BY :order
LIMIT :limit OFFSET :offset

-- name: rows
-- Bundles by id, in no order. A valid rendition is sent as it is and the jsonb beside it is never opened;
-- $2, $3, $4 say whether data, metadata and status are wanted at all.
SELECT
    resources.id,
    resources.name,
    resources.consumer_name,
    resources.version,
    resources.created_at,
    resources.updated_at,
    resources.deleted_at,
    renditions.version IS NOT DISTINCT FROM resources.version AS rendered,
    CASE
        WHEN NOT $2::boolean THEN NULL
        WHEN renditions.version = resources.version THEN renditions.data
        ELSE convert_to((resources.payload -> 'data')::text, 'UTF8')
    END AS data,
    CASE
        WHEN NOT $3::boolean THEN NULL
        WHEN renditions.version = resources.version THEN renditions.metadata
        ELSE convert_to((resources.payload -> 'metadata')::text, 'UTF8')
    END AS metadata,
    CASE WHEN $4::boolean THEN convert_to(resources.status::text, 'UTF8') END AS status
FROM resources
LEFT JOIN renditions ON renditions.id = resources.id
WHERE resources.id = ANY($1::text[])

-- name: fill
-- Render the bundles that a Go server wrote. Each is read and written in one statement, and a rendition that is
-- already as new as the row stays: whoever updates the bundle meanwhile is never overwritten.
INSERT INTO renditions (id, version, envelope, metadata, data)
SELECT
    id,
    version,
    convert_to((payload - 'metadata' - 'data')::text, 'UTF8'),
    convert_to(nullif(payload -> 'metadata', 'null')::text, 'UTF8'),
    convert_to(nullif(payload -> 'data', 'null')::text, 'UTF8')
FROM resources
WHERE id = ANY($1::text[]) AND jsonb_typeof(payload) = 'object'
ORDER BY id
ON CONFLICT (id) DO UPDATE
SET version = excluded.version, envelope = excluded.envelope, metadata = excluded.metadata, data = excluded.data
WHERE renditions.version < excluded.version
