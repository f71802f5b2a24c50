"""Build Kusto queries that export the log records a trace needs, in order, from current and older tables. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from maestropy.journal.phrases import (
    AgentPhrase,
    BrokerPhrase,
    ListenerPhrase,
    MaintenancePhrase,
    RestPhrase,
    SpecDispatcherPhrase,
    SpecWriterPhrase,
    StatusDispatcherPhrase,
    StatusWriterPhrase,
)

_SERVER = (
    SpecWriterPhrase.RECEIVED,
    "Publishing resource",
    AgentPhrase.RECEIVED,
    SpecDispatcherPhrase.SENDING,
    SpecDispatcherPhrase.TO_SPEC_SUBSCRIBERS,
    SpecDispatcherPhrase.PUBLISH_FAILED,
    SpecDispatcherPhrase.HANDLE_FAILED,
    "skipping to publish",
    "skipping create",
    "skipping update",
    SpecDispatcherPhrase.BY_ANOTHER_WORKER,
    StatusWriterPhrase.STATUS_RECEIVED,
    "received action",
    "skipping resource",
    "handle resource status update",
    "Updating resource status",
    "Updating status for stale resource",
    "event was sent",
    "failed to handle status event",
    "Broadcast the resource status",
    StatusDispatcherPhrase.TO_STATUS_SUBSCRIBERS,
    StatusDispatcherPhrase.NO_CLIENTS,
    "broadcaster client",
    "failed to send",
    "recreate the listener",
    ListenerPhrase.STOPPED,
    BrokerPhrase.DISCONNECTED,
    BrokerPhrase.REGISTERING,
    MaintenancePhrase.REPUBLISHED,
    RestPhrase.ACTION,
    "Setting up",
    "Starting gRPC server",
)
_AGENT = (
    AgentPhrase.RECEIVED,
    AgentPhrase.SENDING,
    "Receive the event",
    AgentPhrase.APPLIED,
    AgentPhrase.CREATED,
    AgentPhrase.UPDATED,
    AgentPhrase.READ_ONLY,
    AgentPhrase.DELETED,
    AgentPhrase.REMOVED,
    AgentPhrase.PENDING_DELETION,
    AgentPhrase.SYNC_FAILED,
    AgentPhrase.APPLY_FAILED,
    AgentPhrase.APPLY_RESOURCE_FAILED,
    AgentPhrase.NOT_ALLOWED,
    AgentPhrase.DECODE_FAILED,
    AgentPhrase.HANDLE_FAILED,
    "INFO: Created",
    "INFO: Updated",
    "WARNING: Failed to",
    "removed Successfully",
    "is terminating",
    BrokerPhrase.DISCONNECTED,
    "reconnect",
    BrokerPhrase.SUBSCRIBE_FAILED,
    BrokerPhrase.RECEIVE_FAILED,
    "subscribed to",
)
_BLOCKS = (
    "io.open-cluster-management.works.v1alpha1.manifestbundles", "metadata", "resourceid:", "resourceversion:",
    "sequenceid:", "clustername:", "Context Attributes",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class KqlWindow:
    """The time window and identifiers of a query."""

    start: str
    end: str
    identifiers: Sequence[str] = ()


def query(table: str, subject: str, window: KqlWindow) -> str:
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
        known = ", ".join(_quoted(identifier) for identifier in window.identifiers)
        lines.append(f'| where text has_any ({known}) or text !has "resource"')
    lines += [f"| project {time}, pod_name, log = text", f"| order by pod_name asc, {time} asc"]
    return "\n".join(lines) + "\n"


def _condition(subject: str) -> str:
    if subject == "events":
        return 'text has "Event(v1.ObjectReference"'
    phrases = _SERVER if subject == "server" else _AGENT
    return "text has_any (" + ",\n    ".join(_quoted(phrase) for phrase in (*phrases, *_BLOCKS)) + ")"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
