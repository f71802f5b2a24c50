-- name: create
INSERT INTO consumers (id, name, labels, created_at, updated_at)
VALUES ($1, $2, $3::jsonb, $4, $4)
RETURNING id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at

-- name: get
SELECT id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at
FROM consumers
WHERE id = $1

-- name: names
SELECT name FROM consumers ORDER BY name

-- name: count_with_works
-- Consumers with resources, and those of them in $1. One probe of an index for each consumer.
SELECT count(*) AS with_works, count(*) FILTER (WHERE c.name = ANY($1::text[])) AS connected
FROM consumers c
WHERE EXISTS (SELECT 1 FROM resources r WHERE r.consumer_name = c.name)

-- name: set_labels
-- One statement, so that two concurrent patches cannot overwrite each other; $2: whether labels are set.
UPDATE consumers
SET labels = CASE WHEN $2::boolean THEN $3::jsonb ELSE labels END, updated_at = $4
WHERE id = $1
RETURNING id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at

-- name: delete
-- The foreign key of `resources` rejects this while the consumer has resources, also ones that are being deleted.
WITH gone AS (SELECT name FROM consumers WHERE id = $1),
pauses AS (DELETE FROM maestropy_pauses p USING gone g WHERE p.consumer_name = g.name),
seen AS (DELETE FROM maestropy_agents a USING gone g WHERE a.consumer_name = g.name)
DELETE FROM consumers WHERE id = $1
RETURNING id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at

-- name: count
SELECT count(*) FROM consumers WHERE :condition

-- name: page
SELECT id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at
FROM consumers
WHERE :condition
ORDER BY :order
LIMIT :limit OFFSET :offset
