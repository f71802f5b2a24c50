-- name: beat
-- One heartbeat. An instance that serves and beats is ready, whatever others thought of it meanwhile; one that is
-- leaving stays as it is.
INSERT INTO server_instances AS i (id, created_at, updated_at, last_heartbeat, ready)
VALUES ($1, $2, $2, $2, $3)
ON CONFLICT (id) DO UPDATE
SET last_heartbeat = excluded.last_heartbeat, updated_at = excluded.updated_at, ready = i.ready OR excluded.ready;

-- name: claim
-- Note that this instance is one of ours, not a Go server.
INSERT INTO maestropy_instances (id, started_at) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at;

-- name: set_ready
UPDATE server_instances SET ready = $2, updated_at = $3 WHERE id = $1;

-- name: ready_instances
SELECT id FROM server_instances WHERE ready;

-- name: read_instance
SELECT ready, last_heartbeat FROM server_instances WHERE id = $1;

-- name: judge_liveness
-- Ready is who has a recent heartbeat; an instance that is leaving says so itself and is not called back.
UPDATE server_instances i
SET ready = (i.last_heartbeat > $1), updated_at = $2
WHERE i.ready IS DISTINCT FROM (i.last_heartbeat > $1)
  AND (i.last_heartbeat <= $1 OR NOT EXISTS (SELECT 1 FROM maestropy_instances p WHERE p.id = i.id))
RETURNING i.id, i.ready;

-- name: forget_instances
DELETE FROM server_instances WHERE last_heartbeat <= $1 AND NOT ready RETURNING id;

-- name: try_lock
SELECT pg_try_advisory_xact_lock($1, $2);

-- name: database_time
SELECT extract(epoch FROM clock_timestamp())::float8;
