"""The findings a trace can come to, as data: what each means, how sure it can be, what to do, which query checks it.

Nothing here looks at a request; `judge` chooses among these, and `maestro trace explain` prints them.
"""

from dataclasses import dataclass
from typing import Final, Literal, LiteralString

Severity = Literal["error", "warn", "info"]

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
        "SELECT c->>'type' AS type, c->>'status' AS status, c->>'reason' AS reason, c->>'message' AS message "
        "FROM resources r, jsonb_array_elements(r.status->'data'->'conditions') c WHERE r.id = $1"
    ),
    "status_events": (
        "SELECT s.id, s.status_event_type, s.created_at, array_agg(e.instance_id) AS told_by FROM status_events s "
        "LEFT JOIN event_instances e ON e.event_id = s.id WHERE s.resource_id = $1 GROUP BY 1, 2, 3 ORDER BY 3"
    ),
    "instances": "SELECT id, ready, last_heartbeat FROM server_instances",
    "backlog": (
        "SELECT event_type, count(*), min(created_at) AS oldest FROM events WHERE reconciled_date IS NULL GROUP BY 1"
    ),
}
"""Read-only checks; `$1` is the resource ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One thing that can be wrong, or merely notable."""

    code: str
    title: str
    severity: Severity
    cause: str
    advice: tuple[str, ...]
    sql: tuple[str, ...] = ()

    @property
    def stage(self) -> int:
        """The stage it belongs to; 0 for findings about the logs themselves."""
        return int(self.code[3])


STAGES: Final[dict[int, tuple[str, str, str]]] = {
    1: ("svr-receive", "server receives spec", "Maestro server does not receive the spec request"),
    2: ("svr-publish", "server publishes", "Maestro server does not publish the spec request"),
    3: ("agent-receive", "agent receives", "Maestro agent does not receive the spec request"),
    4: ("agent-handle", "agent handles", "Maestro agent does not handle the spec request"),
    5: ("agent-publish", "agent publishes status", "Maestro agent does not publish the status update request"),
    6: ("svr-status-receive", "server receives status", "Maestro server does not receive the status update request"),
    7: ("svr-status-handle", "server handles status", "Maestro server does not handle the status update request"),
    8: ("svr-broadcast", "server broadcasts", "Maestro server does not broadcast the status update request"),
    9: ("svr-send", "server sends to clients", "Maestro server does not publish the status update request"),
}
"""Per stage: its id, its name, and the sentence under which runbooks know its absence."""


def _code(
    code: str, severity: Severity, title: str, cause: str, *advice: str, sql: tuple[str, ...] = ()
) -> tuple[str, Code]:
    return code, Code(code=code, title=title, severity=severity, cause=cause, advice=advice, sql=sql)


CODES: Final[dict[str, Code]] = dict(
    (
        _code("MT-001", "warn", "No logs of a component",
              "No file of this component is among the inputs, so its stages cannot be seen.",
              "Collect the logs of all servers and of the agent: maestro trace logs collect"),
        _code("MT-002", "warn", "Outside of what the logs cover",
              "The logs begin after, or end before, the moment at which this stage would have happened.",
              "Collect again with --previous, or for an earlier window"),
        _code("MT-003", "info", "Verbosity too low",
              "The component runs, but no line of this stage is written at its verbosity.",
              "Run agents with -v=2 (before October 2025: -v=4), servers behind the gRPC broker with -v=4"),
        _code("MT-004", "warn", "Logs of server instances are missing",
              "The servers speak of more instances than there are logs; the line may be in another pod.",
              "Collect the logs of all replicas"),
        _code("MT-005", "info", "Clocks differ",
              "The agent's clock is ahead of or behind the servers'; times shown are corrected, order is not affected.",
              "Check time synchronisation on the nodes when the difference matters"),
        _code("MT-006", "warn", "Truncated or dropped lines",
              "A file begins or ends within a record, or collectors have dropped lines over 256 KB.",
              "Collect from the pods themselves; large bundles at -v=4 exceed what log services keep"),
        _code("MT-007", "info", "Mixed generations", "Servers and agents write different generations of log lines.",
              "Nothing to do: every record is read by its own format"),
        _code("MT-008", "info", "op-id not usable for a delete",
              "A delete has its op-id in stage 1 only; from stage 2 on lines carry that of the change before it.",
              "Trace deletes by resource ID"),
        _code("MT-009", "warn", "Unreadable timestamps", "Records have no time that can be read.",
              "Export with RFC 3339 timestamps, or trace from pod logs"),
        _code("MT-101", "error", "The server did not receive the request",
              "No server logged its arrival: the client's publish failed, or went somewhere else.",
              "Look for PublishError / \"Failed to publish resource\" at the client; check service, port and policy",
              "A bundle over --grpc-max-receive-message-size (4 MiB) is rejected before it is logged",
              sql=("resource",)),
        _code("MT-102", "error", "Unauthorised", "The client's token or certificate names nobody who may publish.",
              "Fix the token or certificate; grant the verb pub on /sources/<source>"),
        _code("MT-103", "error", "Malformed request", "The event could not be read as a CloudEvent of a known type.",
              "Fix the client"),
        _code("MT-201", "error", "Rejected by the server",
              "The server received the request and did not take it. The Go server tells only the client why: unknown "
              "consumer, version not the latest, under deletion, invalid manifest.",
              "Read the client's error; create the consumer, read the version again, or fix the manifest",
              sql=("resource", "events")),
        _code("MT-202", "info", "No change", "The request changes nothing, so no event is made.", "Nothing to do"),
        _code("MT-203", "error", "Notification lost",
              "The event was stored, but the server's connection for notifications broke near it.",
              "A sweep picks it up (Go: at start or after about 10 h); restart one server, check PostgreSQL",
              sql=("events",)),
        _code("MT-204", "error", "Publishing failed",
              "The broker did not take the event, or the database would not give or lock it; the server tries again.",
              "Check the broker, its certificates, and the packet size limit",
              "An error about the event itself or its lock is PostgreSQL's: look at pg_stat_activity", sql=("events",)),
        _code("MT-205", "info", "Done by another instance", "Another replica handles this event.",
              "Look at the logs of the other pods"),
        _code("MT-206", "info", "Superseded by a delete", "A delete overtook the request.", "Follow the delete"),
        _code("MT-207", "error", "Deleted without telling the agent",
              "Servers before July 2026 remove a resource that no agent has answered for, without telling the agent.",
              "Look for leftovers on the management cluster; upgrade the server"),
        _code("MT-208", "error", "Worker starved", "Many older events wait; the one worker is busy with them.",
              "Look at the oldest unreconciled events; set --stale-delete-event-threshold", sql=("backlog",)),
        _code("MT-209", "error", "Not published",
              "The server received the request, and nothing shows that it published it: rejected (told only to the "
              "client), a no-op, or a lost notification.",
              "Read the client's error first; then check the event in the database",
              sql=("resource", "events", "backlog")),
        _code("MT-301", "error", "The agent is not connected",
              "No agent of this consumer was subscribed, or it had lost its connection.",
              "Start the agent; check its broker address, certificate and access; a resync delivers on reconnect"),
        _code("MT-302", "error", "Consumer or topic mismatch",
              "The agent subscribes for another consumer than the event is for.",
              "Align --consumer-name, the consumer record and the topics"),
        _code("MT-303", "error", "Message too large",
              "Brokers drop messages over their limit (Event Grid: 512 KB), gRPC connections refuse them (4 MiB).",
              "Split the bundle"),
        _code("MT-304", "warn", "Delivered late", "The first delivery was lost; a resync or re-publish healed it.",
              "Nothing to do; look at the connection when it happens often"),
        _code("MT-305", "warn", "Foreign event", "The agent ignored an event that it does not understand.",
              "Bring server and agent to compatible versions"),
        _code("MT-306", "error", "The agent did not receive it",
              "The server published it, and the agent's log, which covers the time, does not show it.",
              "Check broker, topics and the agent's connection at that time"),
        _code("MT-401", "error", "The agent cannot read the work", "The payload could not be decoded.",
              "Fix the manifests", sql=("conditions",)),
        _code("MT-402", "info", "Stale generation", "The agent had a newer version already.", "Nothing to do"),
        _code("MT-403", "error", "Forbidden", "The agent's service account may not write this object.",
              "Grant the verb and resource named in the error to the agent's service account", sql=("conditions",)),
        _code("MT-404", "error", "Manifest rejected by the API server",
              "The object is invalid, or changes what must not change.",
              "Fix the field named in the error and send an update", sql=("conditions",)),
        _code("MT-405", "error", "Kind unknown on the cluster", "The custom resource definition is not installed.",
              "Install the CRD, or put it into an earlier work", sql=("conditions",)),
        _code("MT-406", "error", "Namespace missing", "The object's namespace does not exist on the cluster.",
              "Add the namespace to the bundle or create it", sql=("conditions",)),
        _code("MT-407", "error", "Denied by an admission webhook", "A webhook on the cluster refused the object.",
              "Read the webhook's message; fix the manifest or the webhook", sql=("conditions",)),
        _code("MT-408", "error", "Field conflict", "Another manager owns fields that the work wants to write.",
              "Force the apply, or leave the fields to the other manager", sql=("conditions",)),
        _code("MT-409", "error", "API server unreachable", "The agent cannot reach its own API server.",
              "Check the API server of the management cluster"),
        _code("MT-410", "error", "Executor not allowed", "The work's executor may not write this object.",
              "Grant the executor's service account what it needs", sql=("conditions",)),
        _code("MT-411", "error", "Deletion blocked", "Objects remain, because a finalizer holds them.",
              "List the objects' finalizers on the cluster, and the controllers that should remove them"),
        _code("MT-412", "error", "The agent did not handle it",
              "The agent received the work and nothing shows that it did anything.",
              "Look for errors of the agent near this time; check that its controllers run", sql=("conditions",)),
        _code("MT-499", "error", "Applying failed", "The API server's answer is in the detail.", "Read the error",
              sql=("conditions",)),
        _code("MT-501", "error", "The agent's publish failed", "The agent could not hand its status to the broker.",
              "Check the agent's connection to the broker"),
        _code("MT-502", "info", "Status unchanged", "The status is as it was, so nothing is sent.", "Nothing to do",
              sql=("resource",)),
        _code("MT-503", "error", "The agent did not publish a status",
              "The work was handled, and no status for this version was sent.",
              "Look for errors of the agent; check that its status controller runs", sql=("resource",)),
        _code("MT-601", "error", "The server's subscription was lost",
              "The server was off the broker when the status was sent.", "A status resync follows a reconnect"),
        _code("MT-602", "error", "Source mismatch", "The status names another source than the server's.",
              "Align the source id of server and agent"),
        _code("MT-603", "error", "The server did not receive the status",
              "No server logged the arrival of a status for this request.",
              "Check the broker and the servers' subscriptions",
              sql=("resource",)),
        _code("MT-701", "error", "Nobody owns the consumer",
              "Every instance passed the status over to another one: the hash ring was changing, or a dead instance is "
              "still listed.", "A status resync heals it; check the server instances", sql=("instances",)),
        _code("MT-702", "error", "Consumer mismatch", "The agent reports for a resource of another consumer.",
              "Fix --consumer-name of the agent"),
        _code("MT-703", "info", "Resource not found", "The status is for a resource that is gone.",
              "Nothing to do after a delete; else look for a work that the server does not know", sql=("resource",)),
        _code("MT-704", "info", "Stale version", "The status answers an older version and is disregarded.",
              "Nothing to do: the newer version is answered on its own"),
        _code("MT-705", "info", "Duplicate or old status", "The same or a newer status is stored already.",
              "Nothing to do"),
        _code("MT-706", "info", "No change", "The status is identical to the stored one.", "Nothing to do"),
        _code("MT-707", "error", "Status handling failed", "The server could not store the status.",
              "Read the error; check PostgreSQL", sql=("status_events",)),
        _code("MT-708", "error", "The server did not handle the status",
              "A server received the status; neither a stored status nor an error follows.",
              "Look for errors of the server near this time", sql=("status_events", "instances")),
        _code("MT-801", "error", "Notification of the status lost",
              "The connection for notifications broke; this instance never tells its clients of this status.",
              "The next status heals it; restart the client, or let it resync", sql=("status_events",)),
        _code("MT-802", "error", "Status event unreadable", "The server could not read the status event or resource.",
              "Check PostgreSQL", sql=("status_events",)),
        _code("MT-803", "error", "The server did not broadcast",
              "The status was stored, and no instance logged a broadcast.", "Check notifications of PostgreSQL",
              sql=("status_events",)),
        _code("MT-901", "warn", "No client connected", "No client of this source was subscribed on any instance.",
              "Connect the client; it receives the status by a resync"),
        _code("MT-902", "error", "Clients of another source only", "Clients are connected, but for other sources.",
              "Compare the client's source id with that of the request"),
        _code("MT-903", "error", "Stream broken", "The stream to a client broke while the status was to be sent.",
              "Look at proxies and the client; a reconnect brings a resync"),
        _code("MT-904", "warn", "Slow client", "A client reads more slowly than statuses arrive.",
              "Look at the client's performance"),
        _code("MT-905", "error", "Not sent to clients", "The status was broadcast, and nothing shows that it was sent.",
              "Check the clients' subscriptions and their source ids"),
    )
)  # fmt: skip

_APPLY_ERRORS: Final = (
    ("not allowed to apply", "MT-410"),
    ("executor", "MT-410"),
    ("admission webhook", "MT-407"),
    ("is forbidden", "MT-403"),
    ("forbidden", "MT-403"),
    ("no matches for kind", "MT-405"),
    ("could not find the requested resource", "MT-405"),
    ("not found the kind", "MT-405"),
    ("doesn't have a resource type", "MT-405"),
    ("conflict", "MT-408"),
    ("object has been modified", "MT-408"),
    ("is invalid", "MT-404"),
    ("required value", "MT-404"),
    ("immutable", "MT-404"),
    ("unknown field", "MT-404"),
    ("deadline exceeded", "MT-409"),
    ("connection refused", "MT-409"),
    ("manifests are invalid", "MT-401"),
)


def code_of_apply_error(text: str) -> str:
    """Return the finding that an error of the API server means."""
    lower = text.lower()
    if "namespace" in lower and "not found" in lower:
        return "MT-406"
    return next((code for part, code in _APPLY_ERRORS if part in lower), "MT-499")


def explained(code: str) -> str:
    """Return the whole entry of a code as text."""
    entry = CODES[code]
    lines = [f"{entry.code}  {entry.severity}  {entry.title}"]
    if entry.stage:
        lines += [f"stage   {entry.stage} ({STAGES[entry.stage][1]}), in runbooks: ERROR: {STAGES[entry.stage][2]}"]
    lines += [f"cause   {entry.cause}", *(f"do      {each}" for each in entry.advice)]
    lines += [f"check   {SQL[each]}" for each in entry.sql]
    return "\n".join(lines) + "\n"
