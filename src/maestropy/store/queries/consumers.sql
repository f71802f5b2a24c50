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

-- name: set_labels
-- One statement, so that two concurrent patches cannot overwrite each other; $2: whether labels are set.
UPDATE consumers
SET labels = CASE WHEN $2::boolean THEN $3::jsonb ELSE labels END, updated_at = $4
WHERE id = $1
RETURNING id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at

-- name: delete
-- The foreign key of `resources` rejects this while the consumer has resources, also ones that are being deleted.
DELETE FROM consumers WHERE id = $1

-- name: count
SELECT count(*) FROM consumers WHERE :condition

-- name: page
SELECT id, name, convert_to(labels::text, 'UTF8') AS labels, created_at, updated_at
FROM consumers
WHERE :condition
ORDER BY :order
LIMIT :limit OFFSET :offset
