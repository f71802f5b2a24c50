"""ManagedCluster of ACM: check that it is accepted, joined and available."""

from collections.abc import Iterable

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.decode import ObjectCondition
from maestropy.trace.hcp.hops import expected_conditions, views
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "managed-cluster"


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the ManagedCluster that is named after the Clusters Service ID."""
    if known.cid:
        yield HopQuery(topic=Topic.MANAGED_CLUSTER, name=known.cid, cid=known.cid)


def judge(context: WalkContext) -> HopReport:
    """Judge by its three expected conditions. Before the control plane serves, its klusterlet cannot join."""
    waits = not views.is_available(context)
    live = next(iter(context.documents(Topic.MANAGED_CLUSTER)), None)
    if live is None and context.outcome(Topic.MANAGED_CLUSTER) is QueryOutcome.ABSENT:
        if views.is_deleting(context):
            return HopReport(name=NAME, reason="it is gone, as a deletion wants it")
        reason = f"there is no ManagedCluster {context.known.cid}"
        return HopReport(name=NAME).behind("HCP-614", reason, waits=waits)
    conditions, where = _conditions(context, live)
    if not conditions and live is None:
        why = context.why(Topic.MANAGED_CLUSTER, unasked="the Clusters Service id is not known")
        return HopReport(name=NAME).unknown(why)
    report = HopReport(
        name=NAME,
        reason="accepted, joined and available",
        facts=tuple(
            Fact(condition.type, str(condition), since=condition.since, where=where) for condition in conditions
        ),
        notes=context.notes(Topic.MANAGED_CLUSTER),
    )
    wrong = expected_conditions.MANAGED_CLUSTER.deviations(conditions)
    missing = expected_conditions.MANAGED_CLUSTER.unreported(conditions)
    evidence = tuple(Evidence(where, str(condition)) for condition in wrong)
    detaching = decode.named(conditions, "ManagedClusterImportSucceeded")
    if detaching and detaching.reason == "ManagedClusterForceDetaching":
        reason = f"it is being detached by force: {detaching}"
        return report.bad("HCP-613", reason, evidence=evidence)
    if live and lookup.is_deleting(live.value):
        finalizers = lookup.finalizers(live.value)
        reason = f"it is being deleted and held by {finalizers}"
        return report.behind("HCP-615", reason, waits=False)
    if views.is_deleting(context):
        reason = "it still exists and is not being deleted"
        return report.behind("HCP-616", reason, waits=True)
    if wrong or missing:
        code = (
            "HCP-612"
            if any(condition.type == expected_conditions.MANAGED_CLUSTER_TRUE[2] for condition in wrong)
            else "HCP-611"
        )
        text = str(wrong[0]) if wrong else f"{missing[0]} is not reported yet"
        return report.behind(code, text, waits=waits, evidence=evidence)
    return report


def _conditions(context: WalkContext, live: Document | None) -> tuple[tuple[ObjectCondition, ...], str]:
    if live is not None:
        return decode.conditions(lookup.objects(live.value, "status", "conditions")), live.where
    for bundle, observed in views.reported(context, "ManagedCluster"):
        if observed.own:
            return observed.own, f"feedback in bundle {bundle.id}"
    return (), ""
