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
