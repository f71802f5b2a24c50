-- Label searches of clients: payload->'metadata'->'labels' @> '{...}'.
CREATE INDEX IF NOT EXISTS maestropy_resources_labels
    ON resources USING gin ((payload -> 'metadata' -> 'labels') jsonb_path_ops);
-- Stable paging.
CREATE INDEX IF NOT EXISTS maestropy_resources_order ON resources (created_at, id);
-- Pending events of a resource: superseding, resync and the sweep ask for them.
CREATE INDEX IF NOT EXISTS maestropy_events_pending ON events (source_id) WHERE reconciled_date IS NULL;
-- The sweep looks for status events it was not told of.
CREATE INDEX IF NOT EXISTS maestropy_status_events_created ON status_events (created_at);
