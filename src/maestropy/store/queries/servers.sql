-- name: write_access
-- Whether the server is a standby, and whether a transaction may write. Reads settings only.
SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') = 'on' AS is_read_only;

-- name: timeline
-- The timeline, which changes when a standby is promoted or a backup is restored; null on a standby.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END;

-- name: server_process
-- Which server process and which database a connection leads to; a pooler does not change it.
SELECT pg_postmaster_start_time() AS started_at, current_database()::text AS database;

-- name: backend
SELECT pg_backend_pid();

-- name: inspect
SELECT current_setting('server_version') AS version, current_user::text AS user, current_schema()::text AS schema,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
       extract(epoch FROM clock_timestamp())::float8 AS seconds;

-- name: missing_privileges
-- Privileges on existing tables that this role lacks.
SELECT t.name || ': ' || string_agg(p.name, ', ' ORDER BY p.name)
FROM unnest($1::text[]) AS t (name), unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p (name)
WHERE to_regclass(t.name) IS NOT NULL AND NOT has_table_privilege(t.name, p.name)
GROUP BY t.name ORDER BY t.name;

-- name: load
-- How full the server is: connections and the queue of notifications, which blocks commits when it is full. Of the tables of
-- a Maestro, whether they are there.
SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::int AS connections,
       current_setting('max_connections')::int AS max_connections,
       pg_notification_queue_usage()::float8 AS notification_queue,
       ARRAY(SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
             WHERE NOT i.indisvalid AND c.relnamespace = current_schema()::regnamespace ORDER BY 1) AS invalid_indexes,
       coalesce((SELECT max(extract(epoch FROM clock_timestamp() - xact_start)) FROM pg_stat_activity
                 WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()), 0)::float8
           AS oldest_transaction_seconds,
       to_regclass('events') IS NOT NULL AND to_regclass('resources') IS NOT NULL AS has_events,
       to_regclass('maestropy_pauses') IS NOT NULL AS has_pauses,
       to_regclass('maestropy_database') IS NOT NULL AS has_identity;

-- name: oldest_pending
-- The spec events that wait for delivery, and for how long the oldest does.
SELECT count(*)::int AS pending, coalesce(max(extract(epoch FROM clock_timestamp() - e.created_at)), 0)::float8 AS seconds
FROM events e JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL;

-- name: oldest_pending_not_paused
-- The same without consumers whose delivery is paused.
SELECT count(*)::int AS pending, coalesce(max(extract(epoch FROM clock_timestamp() - e.created_at)), 0)::float8 AS seconds
FROM events e JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL
  AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = r.consumer_name);
