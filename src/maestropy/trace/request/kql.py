"""Queries for log services: the records a trace needs, in order, from today's tables and the older ones. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.journal.fields import Absorb, Accept, Agent, Broker, Deliver, Fanout, Listen, Sweep

_SERVER = (
    Accept.RECEIVED, "Publishing resource", Agent.RECEIVED, Deliver.SENDING, Deliver.TO_SPEC_SUBSCRIBERS,
    Deliver.PUBLISH_FAILED, Deliver.HANDLE_FAILED, "skipping to publish", "skipping create", "skipping update",
    Deliver.BY_ANOTHER_WORKER, Absorb.STATUS_RECEIVED, "received action", "skipping resource",
    "handle resource status update", "Updating resource status", "Updating status for stale resource",
    "event was sent", "failed to handle status event", "Broadcast the resource status", Fanout.TO_STATUS_SUBSCRIBERS,
    Fanout.NO_CLIENTS, "broadcaster client", "failed to send", "recreate the listener", Listen.STOPPED,
    Broker.DISCONNECTED, Broker.REGISTERING, Sweep.REPUBLISHED, "Setting up", "Starting gRPC server",
)  # fmt: skip
_AGENT = (
    Agent.RECEIVED, Agent.SENDING, "Receive the event", Agent.APPLIED, Agent.CREATED, Agent.UPDATED, Agent.READ_ONLY,
    Agent.DELETED, Agent.REMOVED, Agent.PENDING_DELETION, Agent.SYNC_FAILED, Agent.APPLY_FAILED,
    Agent.APPLY_RESOURCE_FAILED, Agent.NOT_ALLOWED, Agent.DECODE_FAILED, Agent.HANDLE_FAILED,
    "INFO: Created", "INFO: Updated", "WARNING: Failed to", "removed Successfully", "is terminating",
    Broker.DISCONNECTED, "reconnect", Broker.SUBSCRIBE_FAILED, Broker.RECEIVE_FAILED, "subscribed to",
)  # fmt: skip
_BLOCKS = (
    "io.open-cluster-management.works.v1alpha1.manifestbundles", "metadata", "resourceid:", "resourceversion:",
    "sequenceid:", "clustername:", "Context Attributes",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What to ask for."""

    start: str
    end: str
    identifiers: Sequence[str] = ()


def query(table: str, subject: str, window: Window) -> str:
    """Return the query for `subject` (server, agent or events) in `table` (containerLogs or kubesystem)."""
    is_new = table == "containerLogs"
    time = "timestamp" if is_new else "TIMESTAMP"
    database = "ServiceLogs" if is_new else "HCPServiceLogs"
    containers = '"service", "maestro-server", "maestro"' if subject == "server" else '"maestro-agent", "agent"'
    lines = [
        f"let start_time = datetime({window.start});",
        f"let end_time = datetime({window.end});",
        f"database('{database}').table('{table}')",
        f"| where {time} between (start_time .. end_time)",
        '| where namespace_name startswith "maestro"',
        f"| where container_name in ({containers})",
        f"| extend text = {'tostring(log)' if is_new else 'log'}",
        f"| where {_condition(subject)}",
    ]
    if window.identifiers:
        known = ", ".join(_quoted(each) for each in window.identifiers)
        lines.append(f'| where text has_any ({known}) or text !has "resource"')
    lines += [f"| project {time}, pod_name, log = text", f"| order by pod_name asc, {time} asc"]
    return "\n".join(lines) + "\n"


def _condition(subject: str) -> str:
    if subject == "events":
        return 'text has "Event(v1.ObjectReference"'
    phrases = _SERVER if subject == "server" else _AGENT
    return "text has_any (" + ",\n    ".join(_quoted(each) for each in (*phrases, *_BLOCKS)) + ")"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
