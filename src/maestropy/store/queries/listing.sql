-- name: count
-- Number of resources that match the condition, including those that are being deleted; at most :most are counted.
SELECT count(*) FROM (SELECT FROM resources WHERE :condition LIMIT :most) AS counted

-- name: estimate
EXPLAIN (FORMAT JSON) SELECT FROM resources WHERE :condition

-- name: outline
-- IDs of a page in order, with the approximate size of each resource. The page is found first, by an index alone where
-- one has the order: the rows before it are only counted. Lengths are known without the values, so no large value is
-- read. The columns of the rendition are renamed because a search may name a column of `resources` without its table.
SELECT resources.id, :weight AS size
FROM (
    SELECT resources.id AS page_id FROM resources WHERE :condition ORDER BY :order LIMIT :limit OFFSET :offset
) AS page
JOIN resources ON resources.id = page_id
LEFT JOIN (SELECT id AS rendition_id, data AS rendition_data FROM renditions) AS rendition ON rendition_id = page_id
ORDER BY :order

-- name: matches
-- The same, for a condition that an index serves: the matches are found by it and sorted, at most :most of them. With
-- exactly so many the page may be wrong, since there are others.
SELECT resources.id, :weight AS size, matches
FROM (
    SELECT resources.id AS page_id, count(*) OVER () AS matches
    FROM (SELECT resources.* FROM resources WHERE :condition LIMIT :most) AS resources
    ORDER BY :order LIMIT :limit OFFSET :offset
) AS page
JOIN resources ON resources.id = page_id
LEFT JOIN (SELECT id AS rendition_id, data AS rendition_data FROM renditions) AS rendition ON rendition_id = page_id
ORDER BY :order

-- name: order_values
-- The values of the order of a list for its last item, where the next page begins.
SELECT :columns FROM resources WHERE resources.id = $1

-- name: rows
-- Resources by ID, in no order. A valid rendition is returned as it is and the jsonb column is not read;
-- $2, $3, $4: whether data, metadata and status are selected.
SELECT
    resources.id,
    resources.name,
    resources.consumer_name,
    resources.version,
    resources.created_at,
    resources.updated_at,
    resources.deleted_at,
    renditions.version IS NOT DISTINCT FROM resources.version AS is_rendered,
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
-- Write the renditions of resources that a Go server wrote. One statement reads and writes, and a rendition of the
-- current version stays: a concurrent update is never overwritten.
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
