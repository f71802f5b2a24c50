-- name: record
-- Add entries that belong to no change of a resource; those of changes are written by the statements that change them.
INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                               result, detail)
SELECT * FROM unnest(
    $1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[]
);

-- name: end_lost_connections
-- Record the end of connections of agents that no server has seen since $2: a server that is killed records none. Those
-- that were last seen before $1 were looked at before; without $1 all are looked at, also those that were never seen.
INSERT INTO maestropy_history (at, kind, subject_id, consumer_name, source, version, actor, address, operation_id,
                               result, detail)
SELECT $3, 'agent.disconnected', '', c.name, '', 0, '', last.address, '', '',
       jsonb_build_object('instance', last.detail::jsonb ->> 'instance',
                          'last_seen', to_char(greatest(a.seen_at, last.at) AT TIME ZONE 'UTC',
                                               'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text
FROM consumers c
    LEFT JOIN maestropy_agents a ON a.consumer_name = c.name
    CROSS JOIN LATERAL (
        SELECT h.at, h.kind, h.address, h.detail FROM maestropy_history h
        WHERE h.consumer_name = c.name AND h.kind IN ('agent.connected', 'agent.disconnected')
        ORDER BY h.at DESC, h.id DESC LIMIT 1
    ) last
WHERE (a.seen_at <= $2 OR a.seen_at IS NULL) AND ($1::timestamptz IS NULL OR a.seen_at > $1)
    AND last.kind = 'agent.connected' AND last.at <= $2
RETURNING consumer_name;

-- name: page
SELECT id, at, kind, subject_id, consumer_name, source, version, actor, address, operation_id, result, detail
FROM maestropy_history
WHERE :condition
ORDER BY :order
LIMIT :limit;

-- name: consumer_name
-- The name of a consumer with this ID, or of one that was deleted and had it.
SELECT name FROM (
    SELECT name, 0 AS rank FROM consumers WHERE id = $1 OR name = $1
    UNION ALL
    (SELECT consumer_name, 1 FROM maestropy_history
     WHERE subject_id = $1 AND kind LIKE 'consumer.%' ORDER BY at DESC LIMIT 1)
    UNION ALL
    (SELECT consumer_name, 2 FROM maestropy_history WHERE consumer_name = $1 LIMIT 1)
) found
ORDER BY rank LIMIT 1;

-- name: consumers_named
-- The names of consumers that refused requests give by ID, also of deleted ones; a key without a row is a name, or unknown.
SELECT k.key, n.name
FROM unnest($1::text[]) AS k (key) CROSS JOIN LATERAL (
    SELECT coalesce(
        (SELECT c.name FROM consumers c WHERE c.id = k.key),
        (SELECT h.consumer_name FROM maestropy_history h
         WHERE h.subject_id = k.key AND h.kind LIKE 'consumer.%' ORDER BY h.at DESC LIMIT 1)
    ) AS name
) n
WHERE n.name IS NOT NULL;

-- name: consumers_of_works
-- The consumers of works that refused requests name, also of deleted works.
SELECT k.id, n.name
FROM unnest($1::text[]) AS k (id) CROSS JOIN LATERAL (
    SELECT coalesce(
        (SELECT r.consumer_name FROM resources r WHERE r.id = k.id),
        (SELECT h.consumer_name FROM maestropy_history h
         WHERE h.subject_id = k.id AND h.kind LIKE 'work.%' ORDER BY h.at DESC LIMIT 1)
    ) AS name
) n
WHERE n.name IS NOT NULL;

-- name: partitions
-- The partitions of the history, and how much room each takes with its indexes.
SELECT c.relname AS name, pg_total_relation_size(c.oid) AS bytes
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'maestropy_history'::regclass
ORDER BY c.relname;

-- name: default_has_rows
-- Whether the default partition holds rows of a period: then it cannot get a partition of its own.
SELECT EXISTS (SELECT 1 FROM maestropy_history_default WHERE at >= $1 AND at < $2);

-- name: purge_default
-- Remove the oldest rows of the default partition, which is never dropped, a bounded number at a time.
DELETE FROM maestropy_history_default
WHERE ctid = ANY(ARRAY(SELECT ctid FROM maestropy_history_default WHERE at < $1 ORDER BY at LIMIT $2));

-- name: size
-- The room that a partition takes with its indexes; NULL if there is none.
SELECT pg_total_relation_size(to_regclass($1));

-- name: lock
-- One instance at a time changes partitions; bounded by lock_timeout.
SELECT pg_advisory_xact_lock($1, $2);
