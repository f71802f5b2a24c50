-- Label searches of clients: payload->'metadata'->'labels' @> '{...}'.
CREATE INDEX IF NOT EXISTS maestropy_resources_labels
    ON resources USING gin ((payload -> 'metadata' -> 'labels') jsonb_path_ops);
-- Stable paging.
CREATE INDEX IF NOT EXISTS maestropy_resources_order ON resources (created_at, id);
-- Pending events of a resource, for superseding, resync and maintenance.
CREATE INDEX IF NOT EXISTS maestropy_events_pending ON events (source_id) WHERE reconciled_date IS NULL;
-- Status events that an instance has not broadcast, for the rescan.
CREATE INDEX IF NOT EXISTS maestropy_status_events_created ON status_events (created_at);
