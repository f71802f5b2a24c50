-- name: primary_position
-- Where the write-ahead log of the primary is flushed to: every durable commit before this statement lies before it.
-- The unflushed rest may be lost in a crash, and a position must not lie ahead of the log afterwards. Where commits do
-- not wait for the disk, only the end of what was inserted has them all.
SELECT (pg_control_system()).system_identifier,
       substr(pg_walfile_name(lsn), 1, 8),
       (lsn - '0/0'::pg_lsn)::bigint
FROM (
    SELECT CASE WHEN current_setting('synchronous_commit') = 'off'
                THEN pg_current_wal_insert_lsn() ELSE pg_current_wal_flush_lsn() END AS lsn
) AS current_position;

-- name: state
-- The timeline is the newest that the control file or the receiver knows; a user may lack the permission for the latter.
SELECT pg_is_in_recovery(),
       (pg_control_system()).system_identifier,
       greatest(
           (pg_control_checkpoint()).timeline_id,
           (pg_control_recovery()).min_recovery_end_timeline,
           (SELECT received_tli FROM pg_stat_wal_receiver)
       ),
       coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint;

-- name: replayed
SELECT pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn() - '0/0'::pg_lsn, 0)::bigint;
