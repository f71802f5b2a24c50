-- name: unconfirmed_deletions
-- Deletions that were sent and whose end is not reported, those first whose reminder is due for longest. One that a report
-- speaks of right now is left alone.
SELECT r.id, r.consumer_name, r.source, r.deleted_at
FROM resources r LEFT JOIN maestropy_reminders m ON m.id = r.id
WHERE r.deleted_at <= $2
  AND (m.next_at IS NULL OR m.next_at <= $3)
  AND ($1::text[] IS NULL OR r.consumer_name = ANY($1::text[]))
  AND NOT EXISTS (SELECT 1 FROM events e WHERE e.source_id = r.id AND e.reconciled_date IS NULL)
ORDER BY coalesce(m.next_at, r.deleted_at), r.id
LIMIT $4
FOR KEY SHARE OF r SKIP LOCKED;

-- name: remind
-- Queue deletions again and note when the next reminder is due.
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS w (id, event_id, next_at)
),
noted AS (
    INSERT INTO maestropy_reminders (id, next_at) SELECT w.id, w.next_at FROM wanted w
    ON CONFLICT (id) DO UPDATE SET next_at = excluded.next_at
),
announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $4, $4, 'Resources', w.id, 'Delete' FROM wanted w
)
SELECT pg_notify('events', w.event_id) FROM wanted w;
