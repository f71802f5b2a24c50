-- name: write_heartbeat
-- Write one heartbeat. A serving instance is ready, even if another instance has marked it not ready meanwhile; an
-- instance that shuts down keeps its mark.
INSERT INTO server_instances AS i (id, created_at, updated_at, last_heartbeat, ready)
VALUES ($1, $2, $2, $2, $3)
ON CONFLICT (id) DO UPDATE
SET last_heartbeat = excluded.last_heartbeat, updated_at = excluded.updated_at, ready = i.ready OR excluded.ready;

-- name: register_own
-- Record that this instance is a maestropy server, not a Go server.
INSERT INTO maestropy_instances (id, started_at) VALUES ($1, $2)
ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at;

-- name: set_ready
UPDATE server_instances SET ready = $2, updated_at = $3 WHERE id = $1;

-- name: ready_instances
SELECT id FROM server_instances WHERE ready;

-- name: read_instance
SELECT ready, last_heartbeat FROM server_instances WHERE id = $1;

-- name: update_readiness
-- An instance with a recent heartbeat is ready. A maestropy instance that shuts down marks itself not ready, and is not
-- marked ready again here.
UPDATE server_instances i
SET ready = (i.last_heartbeat > $1), updated_at = $2
WHERE i.ready IS DISTINCT FROM (i.last_heartbeat > $1)
  AND (i.last_heartbeat <= $1 OR NOT EXISTS (SELECT 1 FROM maestropy_instances p WHERE p.id = i.id))
RETURNING i.id, i.ready;

-- name: remove_instances
DELETE FROM server_instances WHERE last_heartbeat <= $1 AND NOT ready RETURNING id;

-- name: try_lock
SELECT pg_try_advisory_xact_lock($1, $2);

-- name: database_time
SELECT extract(epoch FROM clock_timestamp())::float8;
