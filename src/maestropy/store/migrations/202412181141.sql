ALTER TABLE event_instances ADD COLUMN IF NOT EXISTS spec_event_id text;
CREATE INDEX IF NOT EXISTS idx_event_instances_spec_event_id ON event_instances (spec_event_id);
CREATE INDEX IF NOT EXISTS idx_status_event_instance ON event_instances (event_id, instance_id);
ALTER TABLE event_instances DROP CONSTRAINT IF EXISTS fk_event_instances_server_instances;
ALTER TABLE event_instances ADD CONSTRAINT fk_event_instances_server_instances
    FOREIGN KEY (instance_id) REFERENCES server_instances (id) ON DELETE CASCADE;
ALTER TABLE event_instances DROP CONSTRAINT IF EXISTS fk_event_instances_status_events;
ALTER TABLE event_instances ADD CONSTRAINT fk_event_instances_status_events
    FOREIGN KEY (event_id) REFERENCES status_events (id) ON DELETE CASCADE;
ALTER TABLE event_instances DROP CONSTRAINT IF EXISTS fk_event_instances_events;
ALTER TABLE event_instances ADD CONSTRAINT fk_event_instances_events
    FOREIGN KEY (spec_event_id) REFERENCES events (id) ON DELETE CASCADE;
