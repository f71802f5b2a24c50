-- The server instances that run maestropy. The others are Go servers on the same database, which purge a status event
-- only when it has its event_instances rows.
CREATE TABLE IF NOT EXISTS maestropy_instances (
    id text PRIMARY KEY REFERENCES server_instances (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL
);
