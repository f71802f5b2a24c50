-- name: recorded_migrations
SELECT id FROM migrations;

-- name: recorded_own_migrations
SELECT id FROM maestropy_migrations;

-- name: absent_columns
-- Those of the given columns that the tables of this schema do not have.
SELECT c.table_name, c.column_name
FROM unnest($1::text[], $2::text[]) AS c (table_name, column_name)
WHERE NOT EXISTS (
    SELECT 1 FROM pg_attribute a
    WHERE a.attrelid = to_regclass(c.table_name) AND a.attname = c.column_name AND NOT a.attisdropped
)
ORDER BY c.table_name, c.column_name;

-- name: unusable_indexes
-- Those of the given indexes that do not exist, or that an interrupted CREATE INDEX CONCURRENTLY left invalid.
SELECT n.name FROM unnest($1::text[]) AS n (name)
WHERE NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indexrelid = to_regclass(n.name) AND i.indisvalid)
ORDER BY n.name;

-- name: absent_objects
-- The numbers of those of the given objects that do not exist, by kind, table and name.
SELECT o.number
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS o (kind, table_name, name, number)
WHERE CASE o.kind
    WHEN 'table' THEN to_regclass(o.table_name) IS NULL
    WHEN 'primary key' THEN NOT EXISTS (
        SELECT 1 FROM pg_constraint c WHERE c.conrelid = to_regclass(o.table_name) AND c.contype = 'p'
    )
    WHEN 'constraint' THEN NOT EXISTS (
        SELECT 1 FROM pg_constraint c WHERE c.conrelid = to_regclass(o.table_name) AND c.conname = o.name
    )
    ELSE NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indexrelid = to_regclass(o.name) AND i.indisvalid)
END
ORDER BY o.number;

-- name: has_no_schedule
SELECT NOT EXISTS (SELECT 1 FROM delete_recovery_schedule WHERE id = 1);

-- name: try_lock_migrations
-- The lock of the Go server's migrations, here for one transaction.
SELECT pg_try_advisory_xact_lock(hashtext('maestro'), hashtext('migrations')) AS is_locked;

-- name: holder_of_migrations_lock
-- pg_locks has the two keys as unsigned numbers. Every role may read these columns.
SELECT l.pid, a.application_name AS application, a.usename::text AS role
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid = (hashtext('maestro')::bigint & 4294967295)::oid
    AND l.objid = (hashtext('migrations')::bigint & 4294967295)::oid
LIMIT 1;
