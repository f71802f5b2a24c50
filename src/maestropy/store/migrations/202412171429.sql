ALTER TABLE server_instances ADD COLUMN IF NOT EXISTS last_heartbeat timestamptz;
ALTER TABLE server_instances ADD COLUMN IF NOT EXISTS ready boolean DEFAULT false;
