-- name: identity
SELECT id FROM maestropy_database;

-- name: write_hold
-- Store the hold that an agent reports; `since` stays while the hold is the same.
INSERT INTO maestropy_holds AS h (
    consumer_name, id, reason, message, database_id, work_count, works, since,
    pending_count, pending_works, pending_since, pending_deadline
)
VALUES ($1, $2, $3, $4, $5, $6, $7::text[], $8, $9, $10::text[], $11, $12)
ON CONFLICT (consumer_name) DO UPDATE
SET id = excluded.id, reason = excluded.reason, message = excluded.message, database_id = excluded.database_id,
    work_count = excluded.work_count, works = excluded.works, pending_count = excluded.pending_count,
    pending_works = excluded.pending_works, pending_since = excluded.pending_since,
    pending_deadline = excluded.pending_deadline,
    since = CASE WHEN h.id = excluded.id THEN h.since ELSE excluded.since END;

-- name: remove_hold
DELETE FROM maestropy_holds WHERE consumer_name = $1;

-- name: held_consumers
-- The consumers of this list that have a hold.
SELECT consumer_name FROM maestropy_holds WHERE consumer_name = ANY($1::text[]);

-- name: holds
-- All holds without the names of the works.
SELECT h.consumer_name, h.id, h.reason, h.message, h.database_id, h.work_count, '{}'::text[] AS works, h.since,
       '{}'::text[] AS absent_works, h.pending_count, '{}'::text[] AS pending_works, h.pending_since, h.pending_deadline,
       left(encode(sha256(convert_to(jsonb_build_array(h.reason, h.database_id, h.work_count, h.works)::text, 'UTF8')), 'hex'), 12) AS digest
FROM maestropy_holds h ORDER BY h.consumer_name;

-- name: held
SELECT coalesce(sum(work_count), 0)::bigint AS works, count(*) FILTER (WHERE work_count > 0) AS consumers,
       coalesce(sum(pending_count), 0)::bigint AS pending_evictions,
       coalesce(extract(epoch FROM min(pending_deadline) FILTER (WHERE pending_count > 0)), 0)::float8 AS next_eviction
FROM maestropy_holds;

-- name: holds_of_sources
-- The holds of works of these sources, with the IDs of these works only; of one consumer, or of all if $2 is NULL.
-- The message may tell about works of others, and works that wait for eviction belong to no source here.
SELECT h.consumer_name, h.id, h.reason, '' AS message, h.database_id, cardinality(own.works) AS work_count, own.works,
       h.since, '{}'::text[] AS absent_works, 0 AS pending_count, '{}'::text[] AS pending_works,
       NULL::timestamptz AS pending_since, NULL::timestamptz AS pending_deadline,
       left(encode(sha256(convert_to(jsonb_build_array(h.reason, h.database_id, h.work_count, h.works)::text, 'UTF8')), 'hex'), 12) AS digest
FROM maestropy_holds h CROSS JOIN LATERAL (
    SELECT ARRAY(
        SELECT r.id FROM resources r
        WHERE r.id = ANY(h.works) AND r.consumer_name = h.consumer_name AND r.source = ANY($1::text[])
        ORDER BY r.id
    ) AS works
) own
WHERE cardinality(own.works) > 0 AND (h.consumer_name = $2 OR $2::text IS NULL)
ORDER BY h.consumer_name;

-- name: hold_of
-- The hold of a consumer, and those of its works that this database does not have: an adoption deletes them.
SELECT h.consumer_name, h.id, h.reason, h.message, h.database_id, h.work_count, h.works, h.since,
       ARRAY(
           SELECT w FROM unnest(h.works) AS w
           WHERE NOT EXISTS (
               SELECT 1 FROM resources r
               WHERE r.id = w AND r.consumer_name = h.consumer_name AND r.deleted_at IS NULL
           )
           ORDER BY w
       ) AS absent_works,
       h.pending_count, h.pending_works, h.pending_since, h.pending_deadline,
       left(encode(sha256(convert_to(jsonb_build_array(h.reason, h.database_id, h.work_count, h.works)::text, 'UTF8')), 'hex'), 12) AS digest
FROM maestropy_holds h WHERE h.consumer_name = $1;

-- name: adopt
-- Record that an operator ends a hold; nothing is written if the agent reports another one, or other works, by now.
INSERT INTO maestropy_adoptions (
    hold_id, consumer_name, database_id, reason, from_database_id, work_count, works, adopted_by, adopted_at
)
SELECT h.id, h.consumer_name, d.id, h.reason, h.database_id, h.work_count, h.works, $3, $4
FROM maestropy_holds h, maestropy_database d
WHERE h.consumer_name = $1 AND h.id = $2
  AND (h.reason, h.database_id, h.work_count, h.works) = ($5, $6, $7, $8::text[])
ON CONFLICT (hold_id) DO NOTHING
RETURNING hold_id;

-- name: adopted
-- Those of the holds that an operator has ended, for this database.
SELECT a.hold_id FROM maestropy_adoptions a JOIN maestropy_database d ON d.id = a.database_id
WHERE a.hold_id = ANY($1::text[]);
