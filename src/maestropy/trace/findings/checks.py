"""The SQL statements that check a finding in Maestro's database. Data only.

`SQL` is for programs: one row per fact, and `$1` is the resource ID. `PRETTY` is for people: documents, indented.
"""

from typing import Final, LiteralString

SQL: Final[dict[str, LiteralString]] = {
    "resource": (
        "SELECT id, source, consumer_name, version, created_at, updated_at, deleted_at, "
        "payload->'metadata'->>'name' AS work_name, payload->>'type' AS last_request, "
        "status->>'resourceversion' AS status_version, status->>'sequenceid' AS status_sequence "
        "FROM resources WHERE id = $1"
    ),
    "events": (
        "SELECT id, event_type, created_at, reconciled_date FROM events "
        "WHERE source = 'Resources' AND source_id = $1 ORDER BY created_at"
    ),
    "conditions": (
        "SELECT c->>'type' AS type, c->>'status' AS status, c->>'reason' AS reason, c->>'message' AS message, "
        "c->>'observedGeneration' AS observed_generation "
        "FROM resources r, jsonb_array_elements(r.status->'data'->'conditions') c WHERE r.id = $1"
    ),
    "manifests": (
        "SELECT m->'resourceMeta'->>'kind' AS kind, m->'resourceMeta'->>'namespace' AS namespace, "
        "m->'resourceMeta'->>'name' AS name, c->>'message' AS message "
        "FROM resources r, jsonb_array_elements(r.status->'data'->'resourceStatus') m, "
        "jsonb_array_elements(m->'conditions') c "
        "WHERE r.id = $1 AND c->>'type' = 'Applied' AND c->>'status' = 'False'"
    ),
    "status_events": (
        "SELECT s.id, s.status_event_type, s.created_at, array_agg(e.instance_id) AS broadcast_by FROM status_events s "
        "LEFT JOIN event_instances e ON e.event_id = s.id WHERE s.resource_id = $1 GROUP BY 1, 2, 3 ORDER BY 3"
    ),
    "instances": "SELECT id, ready, last_heartbeat FROM server_instances",
    "backlog": (
        "SELECT event_type, count(*), min(created_at) AS oldest FROM events WHERE reconciled_date IS NULL GROUP BY 1"
    ),
}
"""Read-only checks; `$1` is the resource ID."""

PRETTY: Final[dict[str, LiteralString]] = {
    "resource": "SELECT jsonb_pretty(payload) FROM resources WHERE id = $1",
    "conditions": "SELECT jsonb_pretty(status) FROM resources WHERE id = $1",
    "manifests": "SELECT jsonb_pretty(status->'data'->'resourceStatus') FROM resources WHERE id = $1",
    "status_events": (
        "SELECT jsonb_pretty(payload) FROM status_events WHERE resource_id = $1 ORDER BY created_at DESC LIMIT 1"
    ),
}
"""The whole document behind a check, where there is one."""
