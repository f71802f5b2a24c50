"""The tools: their names, what they are for, and the arguments they take. Values only.

Descriptions are written for an assistant that does not know Maestro. The JSON schema of the arguments is made from the
class that also checks them, so that both say the same.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

Cursor = Annotated[
    str,
    Meta(
        max_length=64,
        description="The cursor of an earlier answer: continues that list. Other arguments are then ignored.",
    ),
]
_Name = Annotated[str, Meta(max_length=300)]
_WORK = (
    "A work: its resource ID (a UUID), its name, KIND/[NAMESPACE/]NAME of an object in it, KEY=VALUE of a label, or "
    "the name of an AppliedManifestWork."
)
_CONSUMER = "Only this consumer (the name of a target cluster)."
Part = Literal["all", "server", "agent", "broker", "database", "data safety", "certificates", "clocks"]
Action = Literal["pause", "resume", "resync", "resend"]


class Arguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The arguments of a tool; unknown ones are refused."""

    cursor: Cursor = ""


class Find(Arguments):
    """Arguments of `find`."""

    text: Annotated[
        str,
        Meta(
            max_length=300,
            description="Words to search in names, IDs, labels, objects and problems. Filters: consumer:NAME, "
            "label:KEY=VALUE, code:MW-005, severity:error, condition:Applied=False, age:>1h, is:broken, is:deleting, "
            "is:stuck, is:behind, is:held; a minus excludes. Empty: all works, the worst first.",
        ),
    ] = ""


class TraceWork(Arguments):
    """Arguments of `trace_work`."""

    work: Annotated[_Name, Meta(description=_WORK)] = ""
    consumer: Annotated[_Name, Meta(description=_CONSUMER)] = ""


class TraceRequest(Arguments):
    """Arguments of `trace_request`."""

    identifier: Annotated[
        _Name, Meta(description="A resource ID, an operation ID, the name of a work or object, or the ID of an event.")
    ] = ""
    consumer: Annotated[_Name, Meta(description=_CONSUMER)] = ""
    action: Annotated[Literal["", "create", "update", "delete"], Meta(description="Only requests of this kind.")] = ""
    version: Annotated[int, Meta(ge=0, le=1 << 31, description="Only this resource version; 0 for all.")] = 0


class TraceHcp(Arguments):
    """Arguments of `trace_hcp`."""

    identifier: Annotated[
        str,
        Meta(
            max_length=600,
            description="ARM resource ID, Clusters Service ID or href, bundle ID, namespace, or NAMESPACE/NAME of a "
            "HostedCluster. In an archive it may be empty: the hosted control planes that were collected.",
        ),
    ] = ""


class Stuck(Arguments):
    """Arguments of `stuck`."""

    consumer: Annotated[_Name, Meta(description=_CONSUMER)] = ""


class Fleet(Arguments):
    """Arguments of `fleet`."""

    text: Annotated[_Name, Meta(description="Only consumers whose name or label contains this.")] = ""


class History(Arguments):
    """Arguments of `history`."""

    work: Annotated[_Name, Meta(description="The resource ID or the name of a work.")] = ""
    consumer: Annotated[_Name, Meta(description="The name of a consumer; with `work`, it narrows the name.")] = ""
    kind: Annotated[
        _Name, Meta(description="Only entries whose kind begins so: work, work.status, agent, consumer, request.")
    ] = ""
    since: Annotated[
        str, Meta(max_length=40, description="Only entries from this time on, such as 2026-11-17T10:00:00Z.")
    ] = ""


class Explain(Arguments):
    """Arguments of `explain`."""

    code: Annotated[
        str,
        Meta(max_length=200, description="A code such as MW-005, MT-301 or MD-101; empty for the list of all codes."),
    ] = ""


class LogsAround(Arguments):
    """Arguments of `logs_around`."""

    evidence: Annotated[
        str, Meta(max_length=400, description="The evidence ID of a log record, FILE:LINE, from another answer.")
    ] = ""
    before: Annotated[int, Meta(ge=0, le=200, description="Lines before it.")] = 10
    after: Annotated[int, Meta(ge=0, le=200, description="Lines after it.")] = 10


class Diff(Arguments):
    """Arguments of `diff`."""

    before: Annotated[_Name, Meta(description="The name of the older archive, as `archive` lists it.")] = ""
    after: Annotated[_Name, Meta(description="The name of the newer archive.")] = ""
    work: Annotated[_Name, Meta(description="Instead: the resource ID or name of a work, to compare its versions.")] = (
        ""
    )
    from_version: Annotated[int, Meta(ge=0, description="The older version of the work; 0 for the first.")] = 0
    to_version: Annotated[int, Meta(ge=0, description="The newer version of the work; 0 for the newest.")] = 0


class Check(Arguments):
    """Arguments of `check`."""

    part: Annotated[Part, Meta(description="Which part to check.")] = "all"
    consumer: Annotated[_Name, Meta(description="Live systems: read only this consumer, which is faster.")] = ""


class Archive(Arguments):
    """Arguments of `archive`."""

    evidence: Annotated[
        str,
        Meta(
            max_length=400,
            description="An evidence ID of another answer (FILE:LINE, row:ID, history:ID, seen:ID) to open; empty: "
            "what was collected, what was not and why, and the files.",
        ),
    ] = ""


class PlanAction(Arguments):
    """Arguments of `plan_action`."""

    action: Annotated[
        Action | None,
        Meta(
            description="pause: stop sending works to a consumer. resume: send them again. resync: send all works of a "
            "consumer again. resend: send one work again."
        ),
    ] = None
    target: Annotated[_Name, Meta(description="The name of the consumer; for resend, the resource ID of the work.")] = (
        ""
    )
    reason: Annotated[str, Meta(max_length=300, description="Why; it is kept in the history.")] = ""


class PerformAction(PlanAction):
    """Arguments of `perform_action`."""

    plan: Annotated[str, Meta(max_length=64, description="The token that plan_action returned for this action.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    required: tuple[str, ...] = ()
    is_read_only: bool = True
    is_open_world: bool = True
    """Whether it reaches systems; `explain` does not."""
    seconds: float = 60.0
    """After so long it gives up and says so."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        _, components = msgspec.json.schema_components([self.arguments])
        schema = dict(components[self.arguments.__name__])
        schema.pop("title", None)
        schema.pop("description", None)
        properties = {name: _without_default(field) for name, field in schema["properties"].items()}
        # The cursor last: it is the argument that the first call does not have.
        cursor = properties.pop("cursor")
        return {**schema, "properties": {**properties, "cursor": cursor}, "required": list(self.required)}


def _without_default(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field without what only says that it is absent."""
    shown = {name: value for name, value in field.items() if name != "default" or value not in ("", None)}
    kinds = [kind for kind in shown.pop("anyOf", []) if kind != {"type": "null"}]
    return {**shown, **(kinds[0] if kinds else {})}


_MAESTRO = (
    "Maestro carries Kubernetes manifests (bundled as works) from sources to the agents of target clusters (consumers) "
    "and brings their status back. "
)
READ: Final = (
    Tool(
        name="fleet",
        title="State of the fleet",
        description=_MAESTRO + "Start here: how many works are healthy, what is wrong now with the worst first, and "
        "each consumer with its agent (connected or away), its works, errors and how far it is behind.",
        arguments=Fleet,
    ),
    Tool(
        name="find",
        title="Find works",
        description=_MAESTRO + "Find works by words or filters. Returns ID, name, consumer, versions (wanted and "
        "reported by the agent), conditions and the code of the verdict of each.",
        arguments=Find,
    ),
    Tool(
        name="stuck",
        title="Works that do not go on",
        description="All works that wait for longer than usual, grouped by their common cause (an agent that is away, "
        "the same error, a pause, a hold), each group with its code, remedy and oldest works.",
        arguments=Stuck,
    ),
    Tool(
        name="trace_work",
        title="Trace one work",
        description="The verdict on one work from database, agent and cluster: where it stands, the findings with "
        "code, cause, evidence and remedy, then its manifests, applied objects and spec events. Several works of that "
        "name are listed as candidates.",
        arguments=TraceWork,
    ),
    Tool(
        name="trace_request",
        title="Trace requests through logs",
        description="The nine stages that each create, update or delete request of a work passed, from the logs of "
        "servers and agents: where it stopped, when, why, and which log lines prove it. Needs logs.",
        arguments=TraceRequest,
    ),
    Tool(
        name="trace_hcp",
        title="Trace a hosted control plane",
        description="For ARO HCP: walk a hosted cluster from the resource provider over Clusters Service and Maestro "
        "to its management cluster, and name the hop that blocks it.",
        arguments=TraceHcp,
    ),
    Tool(
        name="history",
        title="History of a work or consumer",
        description="Who changed a work or a consumer, when and from where: requests, versions, statuses, connections "
        "of the agent, refused requests. The newest first. With neither work nor consumer: of everything.",
        arguments=History,
    ),
    Tool(
        name="explain",
        title="Explain a code",
        description="What the code of a finding means: cause, what to do, what to search in logs. Offline and exact.",
        arguments=Explain,
        is_open_world=False,
    ),
    Tool(
        name="logs_around",
        title="Log lines around a record",
        description="The lines of a log around an evidence ID of the form FILE:LINE that another tool returned.",
        arguments=LogsAround,
        required=("evidence",),
    ),
    Tool(
        name="diff",
        title="Compare archives or versions",
        description="Compare two archives (new findings, findings that are gone, works with another verdict), or two "
        "versions of one work (which paths of its manifests changed).",
        arguments=Diff,
    ),
    Tool(
        name="check",
        title="Check server, agents, broker and database",
        description="The health of servers, agents, broker, database, certificates, clocks and data safety, as "
        "findings with code, evidence and remedy, the most important first; with part `all`, also of works and "
        "requests. On live systems it collects an archive without secrets first, which can take a minute.",
        arguments=Check,
        seconds=180.0,
    ),
    Tool(
        name="archive",
        title="Open evidence, or list what is known",
        description="Open the document behind an evidence ID. Without one: the sources, what could not be read and "
        "why, the files of the archive.",
        arguments=Archive,
    ),
)
ACTIONS: Final = (
    Tool(
        name="plan_action",
        title="Dry run of an operator action",
        description="Say exactly what an action would do, without doing it, and return a plan token for "
        "perform_action. Show the effects to the user before performing it.",
        arguments=PlanAction,
        required=("action", "target"),
    ),
    Tool(
        name="perform_action",
        title="Perform a planned operator action",
        description="Do what plan_action has shown in this session. Needs its plan token and the same action, target "
        "and reason; refused if anything has changed since. Ask the user first.",
        arguments=PerformAction,
        required=("action", "target", "plan"),
        is_read_only=False,
    ),
)


def listed(*, allows_actions: bool) -> tuple[Tool, ...]:
    """Return the tools that are offered."""
    return (*READ, *ACTIONS) if allows_actions else READ
