-- Facts about a Maestro database for an archive. Every statement is read-only, and every row is one JSON document.

-- name: facts
SELECT json_build_object('trace', 'facts', 'version', version(), 'time', extract(epoch FROM clock_timestamp()),
  'bytes', pg_database_size(current_database()), 'is_in_recovery', pg_is_in_recovery(),
  'connections', (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()),
  'max_connections', current_setting('max_connections')::int,
  'oldest_transaction_seconds', (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)
    FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'),
  'tables', (SELECT json_agg(relname ORDER BY relname) FROM pg_class WHERE relkind IN ('r', 'p')
    AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('resources'))),
  'invalid_indexes', (SELECT json_agg(c.relname) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE NOT i.indisvalid)
)::text

-- name: pending_events
SELECT json_build_object('trace', 'event', 'id', e.id, 'resource_id', e.source_id, 'event_type', e.event_type,
  'created_at', e.created_at, 'consumer_name', r.consumer_name, 'age_seconds', extract(epoch FROM clock_timestamp() - e.created_at)
)::text
FROM events e LEFT JOIN resources r ON r.id = e.source_id
WHERE e.reconciled_date IS NULL AND ($1::text = '' OR r.consumer_name = $1::text)
ORDER BY e.created_at LIMIT 2000

-- name: instances
SELECT (to_jsonb(i) || jsonb_build_object('trace', 'instance',
  'heartbeat_age_seconds', extract(epoch FROM clock_timestamp() - i.last_heartbeat)))::text
FROM server_instances i ORDER BY i.last_heartbeat DESC LIMIT 200

-- name: consumers
SELECT json_build_object('trace', 'consumer', 'id', c.id, 'name', c.name, 'labels', c.labels, 'created_at', c.created_at)::text
FROM consumers c WHERE $1::text = '' OR c.name = $1::text ORDER BY c.name LIMIT 20000

-- name: migrations
SELECT json_build_object('trace', 'migration', 'id', m.id)::text FROM migrations m ORDER BY m.id

-- name: history
SELECT json_build_object('trace', 'history', 'id', h.id, 'time', h.at, 'kind', h.kind, 'subject_id', h.subject_id,
  'consumer_name', h.consumer_name, 'source', h.source, 'version', h.version, 'user', h.actor, 'address', h.address,
  'operation_id', h.operation_id, 'result', h.result, 'detail', h.detail)::text
FROM maestropy_history h
WHERE ($1::text = '' OR h.consumer_name = $1::text)
  AND ($2::text = '' OR h.at >= $2::text::timestamptz OR h.id IN ( -- the state of each agent when the window begins
    SELECT DISTINCT ON (c.consumer_name) c.id FROM maestropy_history c
    WHERE c.kind IN ('agent.connected', 'agent.disconnected') AND ($1::text = '' OR c.consumer_name = $1::text)
      AND $2::text <> '' AND c.at < nullif($2::text, '')::timestamptz
    ORDER BY c.consumer_name, c.at DESC, c.id DESC))
  AND ($3::text = '' OR h.at <= $3::text::timestamptz)
ORDER BY h.at DESC, h.id DESC LIMIT 20000

-- name: holds
SELECT (to_jsonb(h) || '{"trace": "hold"}')::text FROM maestropy_holds h
WHERE $1::text = '' OR h.consumer_name = $1::text ORDER BY h.since DESC LIMIT 200

-- name: pauses
SELECT (to_jsonb(p) || '{"trace": "pause"}')::text FROM maestropy_pauses p
WHERE $1::text = '' OR p.consumer_name = $1::text ORDER BY p.paused_at DESC LIMIT 1000
