-- Announce events on a channel. Go servers, which are those without a row in maestropy_instances, expect one notification
-- per event. Among maestropy servers a notification has as many IDs as fit (a payload has at most 8,000 bytes): every
-- notification is delivered to every listening instance.
CREATE OR REPLACE FUNCTION maestropy_notify(channel text, ids text[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    at_once int := 200;
BEGIN
    IF EXISTS (
        SELECT 1 FROM server_instances i
        WHERE NOT EXISTS (SELECT 1 FROM maestropy_instances m WHERE m.id = i.id)
    ) THEN
        at_once := 1;
    END IF;
    FOR begin_at IN 1 .. coalesce(cardinality(ids), 0) BY at_once LOOP
        PERFORM pg_notify(channel, array_to_string(ids[begin_at : begin_at + at_once - 1], ','));
    END LOOP;
END
$$;
