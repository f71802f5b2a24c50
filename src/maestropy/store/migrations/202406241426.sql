CREATE TABLE IF NOT EXISTS status_events (
    id text PRIMARY KEY,
    created_at timestamptz,
    updated_at timestamptz,
    deleted_at timestamptz,
    resource_id text,
    resource_source text,
    resource_type text,
    payload jsonb,
    status jsonb,
    status_event_type text,
    reconciled_date timestamptz
);
CREATE INDEX IF NOT EXISTS idx_status_events_deleted_at ON status_events (deleted_at);
CREATE INDEX IF NOT EXISTS idx_status_events_resource_id ON status_events (resource_id);
CREATE INDEX IF NOT EXISTS idx_status_events_reconciled_date ON status_events (reconciled_date);
