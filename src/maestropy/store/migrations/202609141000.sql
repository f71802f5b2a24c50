-- When an unconfirmed deletion is sent again. Revisions of this migration differ: a database of an earlier one has its ID,
-- but not the column cooldown_pending, so every statement here may be repeated.
SET LOCAL lock_timeout = '5s';
ALTER TABLE resources ADD COLUMN IF NOT EXISTS delete_retry_at timestamptz;
ALTER TABLE resources ADD COLUMN IF NOT EXISTS delete_retry_delay bigint; -- nanoseconds
CREATE TABLE IF NOT EXISTS delete_recovery_consumers (
    consumer_name text PRIMARY KEY REFERENCES consumers (name) ON DELETE CASCADE,
    next_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_delete_recovery_consumers_due ON delete_recovery_consumers (next_at, consumer_name);
CREATE TABLE IF NOT EXISTS delete_recovery_schedule (
    id integer PRIMARY KEY CHECK (id = 1),
    next_at timestamptz NOT NULL,
    cooldown_pending boolean NOT NULL DEFAULT false
);
ALTER TABLE delete_recovery_schedule ADD COLUMN IF NOT EXISTS cooldown_pending boolean NOT NULL DEFAULT false;
INSERT INTO delete_recovery_schedule (id, next_at) VALUES (1, clock_timestamp()) ON CONFLICT DO NOTHING;
-- concurrently
CREATE INDEX CONCURRENTLY idx_resources_delete_recovery_bootstrap ON resources (deleted_at, id)
    WHERE deleted_at IS NOT NULL AND delete_retry_at IS NULL;
CREATE INDEX CONCURRENTLY idx_resources_delete_recovery_due ON resources (consumer_name, delete_retry_at, id)
    WHERE deleted_at IS NOT NULL AND delete_retry_at IS NOT NULL;
CREATE INDEX CONCURRENTLY idx_events_pending_resource_delete ON events (source_id)
    WHERE source = 'Resources' AND event_type = 'Delete' AND reconciled_date IS NULL;
