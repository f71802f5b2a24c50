-- Label searches of clients: payload->'metadata'->'labels' @> '{...}'.
-- concurrently
CREATE INDEX CONCURRENTLY idx_resources_payload_labels
    ON resources USING gin ((payload -> 'metadata' -> 'labels') jsonb_path_ops);
