CREATE TABLE IF NOT EXISTS event_instances (
    event_id text,
    instance_id text
);
CREATE INDEX IF NOT EXISTS idx_event_instances_event_id ON event_instances (event_id);
CREATE INDEX IF NOT EXISTS idx_event_instances_instance_id ON event_instances (instance_id);
