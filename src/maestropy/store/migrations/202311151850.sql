CREATE TABLE IF NOT EXISTS resources (
    id text PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz,
    name text,
    source text,
    consumer_name text,
    version bigint NOT NULL,
    type text,
    payload jsonb,
    status jsonb
);
CREATE INDEX IF NOT EXISTS idx_resources_deleted_at ON resources (deleted_at);
CREATE UNIQUE INDEX IF NOT EXISTS idx_resources_name ON resources (name);
CREATE INDEX IF NOT EXISTS idx_resources_source ON resources (source);
CREATE INDEX IF NOT EXISTS idx_resources_consumer_name ON resources (consumer_name);
CREATE INDEX IF NOT EXISTS idx_resources_type ON resources (type);
