CREATE TABLE IF NOT EXISTS consumers (
    id text PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz,
    name text NOT NULL,
    labels jsonb
);
CREATE INDEX IF NOT EXISTS idx_consumers_deleted_at ON consumers (deleted_at);
CREATE UNIQUE INDEX IF NOT EXISTS idx_consumers_name ON consumers (name);
ALTER TABLE resources DROP CONSTRAINT IF EXISTS fk_resources_consumers;
ALTER TABLE resources ADD CONSTRAINT fk_resources_consumers
    FOREIGN KEY (consumer_name) REFERENCES consumers (name) ON DELETE RESTRICT ON UPDATE RESTRICT;
