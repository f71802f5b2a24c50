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
