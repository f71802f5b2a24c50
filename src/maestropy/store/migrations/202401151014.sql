CREATE TABLE IF NOT EXISTS server_instances (
    id text PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz
);
CREATE INDEX IF NOT EXISTS idx_server_instances_deleted_at ON server_instances (deleted_at);
