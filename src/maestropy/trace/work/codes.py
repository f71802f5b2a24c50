"""The catalogue of findings about works: what each code means, why it happens, and what to do. Data, no decisions.

`MW-001` to `MW-013` are the rows of the table of consistency verdicts; `MW-1nn` go beyond it. Codes are stable.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.trace.output import Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One thing that can be true of a work."""

    code: str
    name: str
    """The verdict in one or two words."""
    severity: str
    title: str
    cause: str
    advice: tuple[str, ...] = ()
    """Commands with {placeholders} that the verdict fills in."""
    exit: Exit = Exit.PROBLEM


_REQUEST = "maestro trace request --resource-id {id} LOGS"
_AGENT_LOGS = "kubectl {kubectl} logs -n {agent_namespace} -l app=maestro-agent --tail=500"
_RECORD = "kubectl {kubectl} get appliedmanifestwork {applied} -o yaml"

_ALL = (
    Code(
        code="MW-001", name="OK", severity="info", title="Complete trace successful. All relationships verified.",
        cause="The status answers the newest version, everything wanted is applied, and every object is there.",
        advice=(_RECORD, "kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml"),
        exit=Exit.HEALTHY,
    ),
    Code(
        code="MW-002", name="PENDING", severity="warn", title="The agent has not yet answered.",
        cause="The work is younger than ten minutes and has no status; delivery may be under way.",
        advice=("maestro trace work --resource-id {id}   # again in a minute", _REQUEST),
    ),
    Code(
        code="MW-003", name="UNDELIVERED", severity="error", title="The agent has never answered.",
        cause="No status after ten minutes. The server publishes such works again every two minutes, so the agent is "
        "not connected, listens for another consumer, or its reports are lost.",
        advice=(_REQUEST, _AGENT_LOGS),
    ),
    Code(
        code="MW-004", name="STALE STATUS", severity="error", title="The agent has not reported the newest version.",
        cause="The status in the database answers an older version of the work: the update was not delivered, not yet "
        "carried out, or its report was lost.",
        advice=(_REQUEST, _AGENT_LOGS),
    ),
    Code(
        code="MW-005", name="APPLY FAILED", severity="error", title="The cluster refused some manifests.",
        cause="The agent tried and reported why; the messages below are the API server's own.",
        advice=("Fix the manifest and send an update; the agent tries again by itself.", _AGENT_LOGS, _REQUEST),
    ),
    Code(
        code="MW-006", name="NOT ON CLUSTER", severity="error", title="Work not applied to cluster",
        cause="The database says it is applied, but the cluster has no AppliedManifestWork for it: it was evicted or "
        "deleted by hand, or this is not the management cluster of its consumer.",
        advice=(
            "kubectl {kubectl} get deployment -n {agent_namespace} -o yaml | grep consumer-name",
            _AGENT_LOGS,
        ),
    ),
    Code(
        code="MW-007", name="DELETING", severity="warn", title="The deletion is under way.",
        cause="The work is marked as deleted and the cluster still has objects of it.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml   # see metadata.finalizers",),
    ),
    Code(
        code="MW-008", name="STUCK DELETE", severity="error", title="Deleted for over an hour and never confirmed.",
        cause="The cluster has nothing left of it, but the agent's confirmation never arrived: the agent is gone, or "
        "its report was lost. The server retires such delete events after an hour.",
        advice=(_REQUEST, _AGENT_LOGS),
    ),
    Code(
        code="MW-009", name="ORPHAN", severity="error", title="The cluster has a work that the database does not know.",
        cause="The delete never reached the agent, or the applied work belongs to another Maestro (its hub hash is "
        "another broker's) or to the klusterlet of ACM.",
        advice=(_RECORD, "maestro trace id --broker-host HOST:PORT   # is the hub hash of your broker?"),
    ),
    Code(
        code="MW-010", name="NOT FOUND", severity="error", title="No resource found with this ID/name",
        cause="Neither the database nor a cluster knows it. It may be misspelt (ids are compared letter by letter, and "
        "computed ones are lower case), or fully deleted and purged.",
        advice=("maestro trace work --name-like {asked}", "maestro trace request {asked} LOGS"),
        exit=Exit.NOT_FOUND,
    ),
    Code(
        code="MW-011", name="AMBIGUOUS", severity="warn", title="Multiple resources found",
        cause="A work's name is unique only per source and consumer.",
        advice=("Narrow it with --consumer or --source, or trace one by its id.",),
        exit=Exit.AMBIGUOUS,
    ),
    Code(
        code="MW-012", name="DRIFT", severity="error", title="What is applied is not what is wanted.",
        cause="The manifests in the database and the resources that the AppliedManifestWork lists differ.",
        advice=(_RECORD, _AGENT_LOGS),
    ),
    Code(
        code="MW-013", name="REPLACED", severity="warn", title="An object was re-created outside Maestro.",
        cause="Its uid is not the one that was applied. The agent will take it over at its next turn, or somebody "
        "else deletes and creates it again and again.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml --show-managed-fields",),
    ),
    Code(
        code="MW-100", name="UNKNOWN", severity="warn", title="Too little could be seen for a verdict.",
        cause="A side of the relation could not be asked; what the other side says is reported.",
        advice=("maestro trace work --check   # what is missing, and how to get it",),
        exit=Exit.INCONCLUSIVE,
    ),
    Code(
        code="MW-101", name="DELETED ON CLUSTER", severity="warn",
        title="Work deleted from cluster, data available in DB only",
        cause="The work is marked as deleted and the cluster has nothing left; the agent's confirmation is awaited.",
        advice=("maestro trace work --resource-id {id}   # again in a minute", _REQUEST),
    ),
    Code(
        code="MW-102", name="DELETED", severity="info", title="Fully deleted: the agent confirmed it.",
        cause="The row is gone; only the status event of the confirmation is left, until it is purged.",
        advice=("maestro trace request --resource-id {id} --resource-request delete_request LOGS",),
        exit=Exit.NOT_FOUND,
    ),
    Code(
        code="MW-103", name="WRONG CONSUMER", severity="error", title="The clusters asked are not its consumer's.",
        cause="The work is for another consumer than the clusters given, or its applied work is on another's cluster.",
        advice=("maestro trace work --resource-id {id} --mgmt-context {consumer}=CONTEXT",),
    ),
    Code(
        code="MW-104", name="OBJECT MISSING", severity="error", title="An applied object is not there any more.",
        cause="The AppliedManifestWork lists it, but the cluster does not have it: somebody deleted it, and the agent "
        "has not put it back.",
        advice=(_AGENT_LOGS, "kubectl {kubectl} get events -n {namespace} --sort-by=.lastTimestamp"),
    ),
    Code(
        code="MW-105", name="UNREPORTED", severity="error", title="Applied on the cluster, but no report has arrived.",
        cause="The AppliedManifestWork is there, so the agent received the work; its status never came back.",
        advice=(_REQUEST, _AGENT_LOGS),
    ),
    Code(
        code="MW-106", name="RECORD LEAVING", severity="error",
        title="The work is wanted, but its AppliedManifestWork is being deleted.",
        cause="Somebody deleted the record by hand; the agent deletes its objects and will make it anew.",
        advice=(_RECORD,),
    ),
    Code(
        code="MW-107", name="STUCK DELETION", severity="error", title="The deletion is blocked by a finalizer.",
        cause="An object of the work waits for its finalizer for over an hour; who has to remove it is in its name.",
        advice=(
            "kubectl {kubectl} get {kind} {name} -n {namespace} -o jsonpath='{{.metadata.finalizers}}'",
            "kubectl {kubectl} get events -n {namespace} --sort-by=.lastTimestamp",
        ),
    ),
    Code(
        code="MW-108", name="EVICTING", severity="error", title="The agent is about to remove it as unmanaged.",
        cause="The server did not list the work when the agent asked; its record is deleted when the time is over.",
        advice=(_REQUEST, _AGENT_LOGS),
    ),
    Code(
        code="MW-109", name="SEVERAL RECORDS", severity="warn", title="Several AppliedManifestWorks carry this work.",
        cause="The broker's address changed, or two agents serve the cluster. Objects with two owners are not deleted "
        "with the work.",
        advice=("kubectl {kubectl} get appliedmanifestworks -o name | grep {id}",),
    ),
    Code(
        code="MW-110", name="SEVERAL OWNERS", severity="warn", title="An object belongs to several works.",
        cause="Several AppliedManifestWorks own it; it is deleted only with the last of them.",
        advice=("maestro trace work --applied-work NAME   # each of the owners",),
    ),
    Code(
        code="MW-111", name="NOT AVAILABLE", severity="warn", title="Applied, but not available.",
        cause="The objects exist and are not ready, or are gone; the condition's message says which.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml",),
    ),
    Code(
        code="MW-112", name="CHANGED", severity="warn", title="Live objects differ from their manifests.",
        cause="Somebody changed fields that the manifest sets; the agent corrects it unless its strategy leaves them.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml --show-managed-fields",),
    ),
    Code(
        code="MW-113", name="NESTED PROBLEM", severity="error", title="A work within this work has a problem.",
        cause="The outer work only carries the inner one; the inner one's own agent reports below.",
        advice=("kubectl {kubectl} get manifestwork {name} -n {namespace} -o yaml",),
    ),
    Code(
        code="MW-114", name="OBJECT LEAVING", severity="error", title="A wanted object is being deleted.",
        cause="Somebody deleted it and finalizers hold it; the agent can only put it back when it is gone.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml",),
    ),
    Code(
        code="MW-115", name="OLD NAME", severity="info", title="Applied under the user's work name.",
        cause="Agents before January 2026 named applied works after the user's work name, not the resource id.",
        exit=Exit.HEALTHY,
    ),
    Code(
        code="MW-116", name="CHOSEN ID", severity="info", title="The resource id is not computed from its parts.",
        cause="A raw client may choose any id; only ids of the work client are uuid5 of source, consumer and name.",
        exit=Exit.HEALTHY,
    ),
    Code(
        code="MW-117", name="OTHER BROKER", severity="warn", title="The record is of another broker's agent.",
        cause="The hub hash is not that of the broker given: an old address, another Maestro, or ACM's klusterlet.",
        advice=("maestro trace id --broker-host HOST:PORT",),
    ),
    Code(
        code="MW-118", name="STANDALONE", severity="info", title="Not managed by any ManifestWork",
        cause="The object exists and has no AppliedManifestWork among its owners: somebody else made it.",
        advice=("kubectl get {kind} {name} -n {namespace} -o jsonpath='{{.metadata.ownerReferences}}'",),
        exit=Exit.NOT_FOUND,
    ),
    Code(
        code="MW-119", name="NO MANIFEST", severity="error", title="Manifest not found",
        cause="No cluster that could be asked has it, and no work in the database contains it.",
        advice=("Verify kind, namespace and name; it may be deleted already.",),
        exit=Exit.NOT_FOUND,
    ),
)  # fmt: skip

CATALOGUE: Mapping[str, Code] = {each.code: each for each in _ALL}
"""Every code by itself, for `maestro trace explain`."""


def explained(code: str) -> str:
    """Return all that is known about a code, for `maestro trace explain`."""
    entry = CATALOGUE[code]
    lines = [f"{entry.code} {entry.severity}  {entry.name}: {entry.title}", f"  cause  {entry.cause}"]
    lines += [f"  do     {each.replace('{{', '{').replace('}}', '}')}" for each in entry.advice]
    return "\n".join([*lines, f"  exit   {int(entry.exit)}"]) + "\n"
