-- name: claim_round
-- Lock the schedule if its pause is to be started, or if a round is due and has work. Go servers lock the same row.
SELECT s.cooldown_pending
FROM delete_recovery_schedule s
WHERE s.id = 1
  AND (
    s.cooldown_pending
    OR (
      s.next_at <= $1
      AND (
        EXISTS (
            SELECT 1 FROM delete_recovery_consumers c
            WHERE c.next_at <= $1
              AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = c.consumer_name)
        )
        OR EXISTS (SELECT 1 FROM resources r WHERE r.deleted_at IS NOT NULL AND r.delete_retry_at IS NULL)
      )
    )
  )
FOR UPDATE OF s SKIP LOCKED;

-- name: start_pause
UPDATE delete_recovery_schedule SET cooldown_pending = false, next_at = $1 WHERE id = 1;

-- name: owe_pause
UPDATE delete_recovery_schedule SET cooldown_pending = true WHERE id = 1;

-- name: lock_unscheduled
-- The oldest deletions that have no schedule yet. The limit counts before locked rows are skipped: rows that are busy do not
-- make the search longer.
WITH oldest AS MATERIALIZED (
    SELECT id FROM resources
    WHERE deleted_at IS NOT NULL AND delete_retry_at IS NULL
    ORDER BY deleted_at, id
    LIMIT $1
)
SELECT r.id, r.consumer_name, r.source, r.deleted_at, r.delete_retry_delay
FROM resources r
WHERE r.id IN (SELECT id FROM oldest) AND r.deleted_at IS NOT NULL AND r.delete_retry_at IS NULL
FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: set_retries
-- When deletions are sent again, and their delays in nanoseconds.
UPDATE resources r SET delete_retry_at = w.retry_at, delete_retry_delay = w.delay
FROM unnest($1::text[], $2::timestamptz[], $3::bigint[]) AS w (id, retry_at, delay)
WHERE r.id = w.id;

-- name: queue_consumers
-- A consumer that waits already keeps its place, or gets an earlier one.
INSERT INTO delete_recovery_consumers AS c (consumer_name, next_at)
SELECT w.consumer_name, w.next_at FROM unnest($1::text[], $2::timestamptz[]) AS w (consumer_name, next_at)
ON CONFLICT (consumer_name) DO UPDATE SET next_at = least(c.next_at, excluded.next_at);

-- name: due_consumers
-- Nothing is repeated while the delivery to a consumer is paused.
SELECT c.consumer_name FROM delete_recovery_consumers c
WHERE c.next_at <= $1 AND NOT EXISTS (SELECT 1 FROM maestropy_pauses d WHERE d.consumer_name = c.consumer_name)
ORDER BY c.next_at, c.consumer_name
LIMIT $2;

-- name: due_deletions
-- The deletions of each consumer that are due for the longest time, at most $3 of each.
SELECT d.id
FROM unnest($1::text[]) AS c (consumer_name)
    CROSS JOIN LATERAL (
        SELECT r.id FROM resources r
        WHERE r.consumer_name = c.consumer_name
          AND r.deleted_at IS NOT NULL AND r.delete_retry_at IS NOT NULL AND r.delete_retry_at <= $2
        ORDER BY r.delete_retry_at, r.id
        LIMIT $3
    ) AS d;

-- name: lock_deletions
-- Lock deletions before their events are looked at, as a Go server does; skip those that a status update has locked.
SELECT r.id, r.consumer_name, r.source, r.deleted_at, r.delete_retry_delay
FROM resources r
WHERE r.id = ANY($1::text[]) AND r.deleted_at IS NOT NULL
FOR NO KEY UPDATE OF r SKIP LOCKED;

-- name: announce_again
-- Queue delete requests again, except those that still wait for their delivery.
WITH announced AS (
    INSERT INTO events (id, created_at, updated_at, source, source_id, event_type)
    SELECT w.event_id, $3, $3, 'Resources', w.id, 'Delete'
    FROM unnest($1::text[], $2::text[]) AS w (id, event_id)
    WHERE NOT EXISTS (
        SELECT 1 FROM events e
        WHERE e.source_id = w.id AND e.source = 'Resources' AND e.event_type = 'Delete' AND e.reconciled_date IS NULL
    )
    RETURNING id, source_id
)
SELECT a.source_id,
       CASE row_number() OVER () WHEN 1 THEN maestropy_notify('events', array_agg(a.id) OVER ()) END
FROM announced a;

-- name: advance_consumers
-- The next turn of each consumer: when its next deletion is due, not before now; none without a deletion.
WITH turns AS (
    SELECT c.consumer_name,
           (
               SELECT r.delete_retry_at FROM resources r
               WHERE r.consumer_name = c.consumer_name AND r.deleted_at IS NOT NULL AND r.delete_retry_at IS NOT NULL
               ORDER BY r.delete_retry_at, r.id
               LIMIT 1
           ) AS due_at
    FROM unnest($1::text[]) AS c (consumer_name)
),
finished AS (
    DELETE FROM delete_recovery_consumers c USING turns t WHERE c.consumer_name = t.consumer_name AND t.due_at IS NULL
)
UPDATE delete_recovery_consumers c SET next_at = greatest($2::timestamptz, t.due_at)
FROM turns t
WHERE c.consumer_name = t.consumer_name AND t.due_at IS NOT NULL;

-- name: backlog
-- All gauges at one moment of the database clock.
WITH sampled AS MATERIALIZED (SELECT clock_timestamp() AS at),
unscheduled AS MATERIALIZED (
    SELECT count(*) AS deletions, min(deleted_at) AS oldest
    FROM resources
    WHERE deleted_at IS NOT NULL AND delete_retry_at IS NULL
),
scheduled AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE delete_retry_at <= at) AS due,
           count(*) FILTER (WHERE delete_retry_at > at) AS delayed,
           min(deleted_at) FILTER (WHERE delete_retry_at <= at) AS oldest_due,
           min(deleted_at) FILTER (WHERE delete_retry_at > at) AS oldest_delayed
    FROM resources CROSS JOIN sampled
    WHERE deleted_at IS NOT NULL AND delete_retry_at IS NOT NULL
),
consumers AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE next_at <= at) AS due, count(*) FILTER (WHERE next_at > at) AS scheduled
    FROM delete_recovery_consumers CROSS JOIN sampled
),
pending AS MATERIALIZED (
    SELECT count(*) AS events, min(created_at) AS oldest
    FROM events
    WHERE source = 'Resources' AND event_type = 'Delete' AND reconciled_date IS NULL
)
SELECT u.deletions AS unscheduled, s.due, s.delayed,
       coalesce(extract(epoch FROM at - u.oldest), 0)::float8 AS oldest_unscheduled,
       coalesce(extract(epoch FROM at - s.oldest_due), 0)::float8 AS oldest_due,
       coalesce(extract(epoch FROM at - s.oldest_delayed), 0)::float8 AS oldest_delayed,
       c.due AS due_consumers, c.scheduled AS scheduled_consumers, p.events AS pending_events,
       coalesce(extract(epoch FROM at - p.oldest), 0)::float8 AS oldest_pending_event
FROM sampled CROSS JOIN unscheduled u CROSS JOIN scheduled s CROSS JOIN consumers c CROSS JOIN pending p;
