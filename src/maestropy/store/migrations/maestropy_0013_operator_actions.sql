-- Consumers to which an operator has paused the delivery of specs. No foreign key, so that a Go server deletes a consumer as
-- before; it does not know pauses, and sends to a paused consumer.
CREATE TABLE IF NOT EXISTS maestropy_pauses (
    consumer_name text PRIMARY KEY,
    paused_at timestamptz NOT NULL,
    paused_by text NOT NULL,
    reason text NOT NULL
);
-- When an agent of a consumer was connected or sent something, as far as maestropy servers have seen it. Updated once a
-- minute; free space keeps a new version of a row on its page.
CREATE TABLE IF NOT EXISTS maestropy_agents (
    consumer_name text PRIMARY KEY,
    seen_at timestamptz NOT NULL
) WITH (fillfactor = 70);
