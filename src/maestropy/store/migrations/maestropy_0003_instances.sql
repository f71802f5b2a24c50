-- Which of the server instances are ours. The others are Go servers on the same database, for whom every
-- status event needs its event_instances row before they purge it.
CREATE TABLE IF NOT EXISTS maestropy_instances (
    id text PRIMARY KEY REFERENCES server_instances (id) ON DELETE CASCADE,
    started_at timestamptz NOT NULL
);
