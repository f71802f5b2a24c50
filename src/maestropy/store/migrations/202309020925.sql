CREATE TABLE IF NOT EXISTS events (
    id text PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz,
    source text,
    source_id text,
    event_type text,
    reconciled_date timestamptz
);
CREATE INDEX IF NOT EXISTS idx_events_deleted_at ON events (deleted_at);
CREATE INDEX IF NOT EXISTS idx_events_source ON events (source);
CREATE INDEX IF NOT EXISTS idx_events_source_id ON events (source_id);
CREATE INDEX IF NOT EXISTS idx_events_reconciled_date ON events (reconciled_date);
