"""The MW codes of the catalogue: findings about works in the database and on clusters. Data only.

`MW-001` to `MW-013` are the rows of the table of consistency verdicts; `MW-1nn` go beyond it. Codes are stable.
"""

from typing import Any, Final

from maestropy.trace.exit_codes import Exit
from maestropy.trace.findings.entry import Entry
from maestropy.trace.findings.log_phrases import NORMAL, PHRASES

REQUEST_LOGS = "LOGS"
"""Stands for the logs that a request is traced in; advice about a system on this computer names its folder."""
AGENT_LOGS = "kubectl {kubectl} logs -n {agent_namespace} -l app=maestro-agent --tail=500"
LOCAL_AGENT_LOGS = "tail -n 500 {agent_log}"
"""The same, of an agent that runs on this computer."""
_REQUEST = f"maestro trace request --resource-id {{id}} {REQUEST_LOGS}"
_RECORD = "kubectl {kubectl} get appliedmanifestwork {applied} -o yaml"

FIX_MANIFEST = "Fix the manifest and send an update; the agent tries again by itself."
_STAGES = {"MW-003": 3, "MW-004": 4, "MW-005": 4, "MW-007": 4, "MW-008": 7, "MW-104": 4, "MW-105": 5, "MW-107": 4}
"""The stage of a request whose lines are missing or failed."""


def _code(code: str, **fields: Any) -> Entry:
    normal = NORMAL[_STAGES[code]] if code in _STAGES else ()
    return Entry(
        code=code, phrases=PHRASES.get(code, ()), normal=normal, **{"advice": (), "sql": ("resource",), **fields}
    )


WORK_CODES: Final = (
    _code(
        code="MW-001", name="OK", severity="info", title="Complete trace successful. All relationships verified.",
        cause="The status is about the newest version, every manifest is applied, and every object exists.",
        advice=(_RECORD, "kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml"),
        exit=Exit.HEALTHY,
    ),
    _code(
        code="MW-002", name="PENDING", severity="warn", title="The agent has not reported yet.",
        cause="The work is younger than ten minutes and has no status; delivery may be under way.",
        advice=("maestro trace work --resource-id {id} {access}   # again in a minute", _REQUEST),
    ),
    _code(
        code="MW-003", name="UNDELIVERED", severity="error", title="The agent has never reported.",
        cause="No status after ten minutes. The server publishes such works again every two minutes, so the agent is "
        "not connected, subscribes for another consumer, or its status updates are lost.",
        advice=(_REQUEST, AGENT_LOGS),
    ),
    _code(
        code="MW-004", name="STALE STATUS", severity="error", title="The agent has not reported the newest version.",
        cause="The status in the database, or its condition Applied, is about an older version of the work: the update "
        "was not delivered, not yet applied, or its status update was lost.",
        advice=(_REQUEST, AGENT_LOGS),
    ),
    _code(
        code="MW-005", name="APPLY FAILED", severity="error", title="The cluster rejected some manifests.",
        cause="The agent reported the reason; the messages below come from the API server.",
        advice=(FIX_MANIFEST, AGENT_LOGS, _REQUEST),
    ),
    _code(
        code="MW-006", name="NOT ON CLUSTER", severity="error", title="Work not applied to cluster",
        cause="The database says it is applied, but the cluster has no AppliedManifestWork for it: it was evicted or "
        "deleted by hand, or this is not the management cluster of its consumer.",
        advice=(
            "kubectl {kubectl} get deployment -n {agent_namespace} -o yaml | grep consumer-name",
            AGENT_LOGS,
        ),
    ),
    _code(
        code="MW-007", name="DELETING", severity="warn", title="The deletion is under way.",
        cause="The work is marked as deleted, and its agent has not confirmed that its objects are gone: the cluster "
        "still has them, or it was not read.",
        advice=(
            "An object with a finalizer goes when the finalizer's controller removes it: check that it runs.",
            "kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml   # see metadata.finalizers",
        ),
    ),
    _code(
        code="MW-008", name="STUCK DELETE", severity="error", title="Deleted for over an hour and never confirmed.",
        cause="Nothing remains on the cluster, but the agent's confirmation never arrived: the agent is down, or "
        "its status update was lost. The server retires such delete events after an hour.",
        advice=(_REQUEST, AGENT_LOGS),
    ),
    _code(
        code="MW-009", name="ORPHAN", severity="error", title="The cluster has a work that the database does not know.",
        cause="The delete never reached the agent, or the applied work belongs to another Maestro (its hub hash is "
        "another broker's) or to the klusterlet of ACM.",
        advice=(_RECORD, "maestro trace id --broker-host HOST:PORT   # is the hub hash of your broker?"),
    ),
    _code(
        code="MW-010", name="NOT FOUND", severity="error", title="No resource found with this ID/name",
        cause="Neither the database nor a cluster knows it. It may be misspelt (ids are compared letter by letter, and "
        "computed ones are lower case), or fully deleted and purged.",
        advice=("maestro trace work --name-like {requested} {access}", "maestro trace request {requested} LOGS"),
        exit=Exit.NOT_FOUND,
    ),
    _code(
        code="MW-011", name="AMBIGUOUS", severity="warn", title="Multiple resources found",
        cause="A work's name is unique only per source and consumer.",
        advice=("Narrow it with --consumer or --source, or trace one by its id.",),
        exit=Exit.AMBIGUOUS,
    ),
    _code(
        code="MW-012", name="DRIFT", severity="error", title="The applied objects differ from the manifests.",
        cause="The manifests in the database and the resources that the AppliedManifestWork lists differ.",
        advice=(_RECORD, AGENT_LOGS),
    ),
    _code(
        code="MW-013", name="REPLACED", severity="warn", title="An object was re-created outside Maestro.",
        cause="Its uid is not the one that was applied. The agent adopts it at its next reconcile, or another "
        "client deletes and creates it again and again.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml --show-managed-fields",),
    ),
    _code(
        code="MW-100", name="UNKNOWN", severity="warn", title="Too little could be read for a verdict.",
        cause="The database or a cluster could not be read; the report is based on the rest.",
        advice=("maestro trace work --check   # what is missing, and how to get it",),
        exit=Exit.INCONCLUSIVE,
    ),
    _code(
        code="MW-101", name="DELETED ON CLUSTER", severity="warn",
        title="Work deleted from cluster, data available in DB only",
        cause="The work is marked as deleted and nothing remains on the cluster; the agent's confirmation is pending.",
        advice=("maestro trace work --resource-id {id} {access}   # again in a minute", _REQUEST),
    ),
    _code(
        code="MW-102", name="DELETED", severity="info", title="Fully deleted: the agent confirmed it.",
        cause="The row is deleted; only the status event of the confirmation remains, until it is purged.",
        advice=("maestro trace request --resource-id {id} --resource-request delete_request LOGS",),
        exit=Exit.NOT_FOUND,
    ),
    _code(
        code="MW-103", name="WRONG CONSUMER", severity="error", title="The given clusters are not its consumer's.",
        cause="The work is for another consumer than the clusters given, or its applied work is on another's cluster.",
        advice=("maestro trace work --resource-id {id} --mgmt-context {consumer}=CONTEXT",),
    ),
    _code(
        code="MW-104", name="OBJECT MISSING", severity="error", title="An applied object no longer exists.",
        cause="The AppliedManifestWork lists it, but the cluster does not have it: it was deleted, and the agent "
        "has not re-created it.",
        advice=(AGENT_LOGS, "kubectl {kubectl} get events -n {namespace} --sort-by=.lastTimestamp"),
    ),
    _code(
        code="MW-105", name="UNREPORTED", severity="error", title="Applied on the cluster, but never reported.",
        cause="The AppliedManifestWork exists, so the agent received the work; no status update arrived.",
        advice=(_REQUEST, AGENT_LOGS),
    ),
    _code(
        code="MW-106", name="RECORD LEAVING", severity="error",
        title="The work is active, but its AppliedManifestWork is being deleted.",
        cause="It was deleted by hand; the agent deletes its objects and creates it again.",
        advice=(_RECORD,),
    ),
    _code(
        code="MW-107", name="STUCK DELETION", severity="error", title="The deletion is blocked by a finalizer.",
        cause="An object has waited for its finalizer for over an hour; the finalizer's name shows its controller.",
        advice=(
            "Start or repair the controller that the finalizer names.",
            "Remove a finalizer by hand only if its controller is gone and you know what it would have cleaned up.",
            "kubectl {kubectl} get {kind} {name} -n {namespace} -o jsonpath='{{.metadata.finalizers}}'",
            "kubectl {kubectl} get events -n {namespace} --sort-by=.lastTimestamp",
        ),
    ),
    _code(
        code="MW-108", name="EVICTING", severity="error", title="The agent is about to remove it as unmanaged.",
        cause="The server did not list the work in a resync; the applied work is deleted after the grace period.",
        advice=(_REQUEST, AGENT_LOGS),
    ),
    _code(
        code="MW-109", name="SEVERAL RECORDS", severity="warn", title="Several AppliedManifestWorks carry this work.",
        cause="The broker's address changed, or two agents serve the cluster. Objects with two owners are not deleted "
        "with the work.",
        advice=("kubectl {kubectl} get appliedmanifestworks -o name | grep {id}",),
    ),
    _code(
        code="MW-110", name="SEVERAL OWNERS", severity="warn", title="An object belongs to several works.",
        cause="Several AppliedManifestWorks own it; it is deleted only with the last of them. Where "
        "their manifests differ, one overwrites what the other has written.",
        advice=(
            "Keep the object in one of the works, and take it out of the others.",
            "maestro trace work --applied-work {owner} {access}   # another owner",
        ),
    ),
    _code(
        code="MW-111", name="NOT AVAILABLE", severity="warn", title="Applied, but not available.",
        cause="The objects exist and are not ready, or are gone; the condition's message says which.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml",),
    ),
    _code(
        code="MW-112", name="CHANGED", severity="warn", title="Live objects differ from their manifests.",
        cause="Fields that the manifest sets were changed; the agent corrects drift unless its strategy ignores it.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml --show-managed-fields",),
    ),
    _code(
        code="MW-113", name="NESTED PROBLEM", severity="error", title="A work within this work has a problem.",
        cause="The outer work only contains the inner one; the status of the inner one is below.",
        advice=("kubectl {kubectl} get manifestwork {name} -n {namespace} -o yaml",),
    ),
    _code(
        code="MW-114", name="OBJECT LEAVING", severity="error", title="An object of the work is being deleted.",
        cause="It was deleted and has finalizers; the agent can re-create it only after that.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml",),
    ),
    _code(
        code="MW-115", name="OLD NAME", severity="info", title="Applied under the user's work name.",
        cause="Agents before January 2026 named applied works after the user's work name, not the resource id.",
        exit=Exit.HEALTHY,
    ),
    _code(
        code="MW-116", name="CHOSEN ID", severity="info", title="The resource id is not computed from its parts.",
        cause="A raw client may choose any id; only ids of the work client are uuid5 of source, consumer and name.",
        exit=Exit.HEALTHY,
    ),
    _code(
        code="MW-117", name="OTHER BROKER", severity="warn", title="The record is of another broker's agent.",
        cause="The hub hash is not that of the broker given: an old address, another Maestro, or ACM's klusterlet.",
        advice=("maestro trace id --broker-host HOST:PORT",),
    ),
    _code(
        code="MW-118", name="STANDALONE", severity="info", title="Not managed by any ManifestWork",
        cause="The object exists and has no AppliedManifestWork among its owners: another client created it.",
        advice=("kubectl {kubectl} get {kind} {name} -n {namespace} -o jsonpath='{{.metadata.ownerReferences}}'",),
        exit=Exit.NOT_FOUND,
    ),
    _code(
        code="MW-119", name="NO MANIFEST", severity="error", title="Manifest not found",
        cause="No readable cluster has it, and no work in the database contains it.",
        advice=("Verify kind, namespace and name; it may be deleted already.",),
        exit=Exit.NOT_FOUND,
    ),
    _code(
        code="MW-120", name="PARTLY SEARCHED", severity="warn",
        title="Nothing was found in the part that was searched.",
        cause="No index of the database helps this search, so it ends after a part of a second; other works may match.",
        advice=("Narrow it with --consumer and --source, or search everything with --search-all.",),
        exit=Exit.INCONCLUSIVE,
    ),
    _code(
        code="MW-122", name="HELD", severity="error", title="A data-safety hold keeps the work as it is.",
        cause="The agent deletes, prunes and overwrites nothing of it: the work came from another database, the server "
        "has an older version of it, does not know its consumer, or lacks too many works of this agent. Reason "
        "EvictionPending ends with the grace period; others when the right database is back or this is adopted.",
        advice=(
            "maestro consumer adopt {consumer} --dry-run   # what would be applied and deleted; changes nothing",
            "Compare the database in the server's log (the server uses this database) with the right one first",
            AGENT_LOGS,
        ),
    ),
    _code(
        code="MW-123", name="PAUSED", severity="error", title="Delivery to the consumer of the work is paused.",
        cause="An operator has paused it. The server stores the spec and sends it after the resumption; the cluster "
        "keeps the version that it has. The agent need not be searched for an error.",
        advice=(
            "maestro consumer resume {consumer} --dry-run   # what would be sent; changes nothing",
            "maestro history {consumer} --kind consumer   # who paused it, from where and why",
        ),
    ),
    _code(
        code="MW-124", name="RELEASED", severity="info", title="Released: its objects stay on the cluster.",
        cause="An operator retired the consumer and released its works. The row is gone and the source was told so; no "
        "agent confirmed a deletion. Nobody manages the objects; if the agent returns, a data-safety hold keeps them.",
        advice=(
            "maestro history {id}   # who released it, from where and why",
            "kubectl {kubectl} get {kind} {name} -n {namespace} -o yaml   # an object that stays",
        ),
        exit=Exit.NOT_FOUND,
    ),
    _code(
        code="MW-121", name="MORE MATCH", severity="info", title="More works match than are shown, or may match.",
        cause="A search shows at most 500 works, and one that no index helps ends after a part of a second.",
        advice=("Narrow it with --consumer and --source, or search everything with --search-all.",),
        exit=Exit.HEALTHY,
    ),
)  # fmt: skip
