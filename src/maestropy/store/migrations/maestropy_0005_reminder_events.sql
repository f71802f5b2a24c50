-- Which event carries the newest reminder of a deletion. A server that sends this event may send a replacement instead of
-- a plain delete request. The mark is in our own table: a Go server that takes the event sees an ordinary deletion.
ALTER TABLE maestropy_reminders ADD COLUMN IF NOT EXISTS event_id text;
