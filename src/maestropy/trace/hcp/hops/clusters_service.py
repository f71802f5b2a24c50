"""Clusters Service: check the state of the cluster, its errors and its inflight checks."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.identity import ArmId, KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "clusters-service"
_AZURE = ("subscription_id", "resource_group_name", "resource_name", "managed_resource_group_name", "tenant_id")


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the cluster by ID, or by its Azure names; then its status, checks and node pools."""
    if known.cid:
        yield HopQuery(topic=Topic.CS_CLUSTER, cid=known.cid)
        for topic in (Topic.CS_STATUS, Topic.CS_CHECKS, Topic.CS_NODE_POOLS):
            yield HopQuery(topic=topic, cid=known.cid)
    elif known.arm:
        yield HopQuery(topic=Topic.CS_CLUSTER, arm=str(known.arm))


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn the id, the prefix and the ARM ID; nothing, if there is more than one cluster."""
    clusters = [document for topic, document in documents if topic is Topic.CS_CLUSTER]
    if len({lookup.text(cluster.value, "id") for cluster in clusters}) != 1:
        return known
    value = clusters[0].value
    azure = [lookup.text(value, "azure", key) for key in ("subscription_id", "resource_group_name", "resource_name")]
    arm = ArmId(subscription=azure[0], group=azure[1], name=azure[2]) if all(azure) else None
    return known.with_gaps_filled(cid=lookup.text(value, "id"), prefix=lookup.text(value, "domain_prefix"), arm=arm)


def judge(context: WalkContext) -> HopReport:
    """Judge by the state, with the checks where they decide."""
    cluster = views.cluster(context)
    if cluster is None:
        return _without(context)
    state = views.cluster_state(context)
    failed = [check for check in context.documents(Topic.CS_CHECKS) if lookup.text(check.value, "state") == "failed"]
    report = HopReport(
        name=NAME,
        reason=f"the cluster is {state}",
        facts=_facts(context, cluster),
        evidence=(Evidence(cluster.where, f"state = {state}"),),
        notes=context.notes(Topic.CS_CLUSTER, Topic.CS_STATUS, Topic.CS_CHECKS),
    )
    checks = tuple(Evidence(check.where, _check(check)) for check in failed)
    if failed and state in {"validating", "error"}:
        reason = f"inflight checks failed: {'; '.join(check.says for check in checks)}"
        return report.bad("HCP-301", reason, evidence=checks)
    if failed:
        passed = "although the cluster went on to"
        report = replace(report, notes=(*report.notes, *(f"{check.says}, {passed} {state}" for check in checks)))
    return _by_state(context, report, state=state, cluster=cluster)


def _by_state(context: WalkContext, report: HopReport, *, state: str, cluster: Document) -> HopReport:
    if state == "ready":
        return report
    if state == "error":
        errors = " ".join(_errors(context, cluster)) or "no reason is given"
        return report.bad("HCP-303", f"the cluster is in error: {errors}")
    if state in _OWN_WORK:
        code, reason = _OWN_WORK[state]
    elif own := _own_omission(context, state):
        code, reason = own
    elif state in {"installing", "updating", "uninstalling"}:
        reason = f"the cluster is {state}: it waits for the hops below"
        return report.behind("HCP-305", reason, waits=True)
    else:
        code = "HCP-309"
        reason = f"the cluster is {state or 'without a state'}, which the resource provider does not handle"
    return report.behind(code, reason)


_OWN_WORK = {
    "validating": ("HCP-308", "it still runs its inflight checks (validating)"),
    "pending": ("HCP-302", "it still prepares Azure and the manifests (pending): its log names the provision step"),
}


def _own_omission(context: WalkContext, state: str) -> tuple[str, str] | None:
    """Return what it has not done, where it seems to wait for others."""
    bundles = views.bundles(context)
    if state == "installing" and context.outcome(Topic.BUNDLE) is QueryOutcome.ABSENT:
        return "HCP-304", "it says installing, but Maestro has no bundle of it: nothing was sent"
    if state == "installing" and views.is_available(context):
        return "HCP-306", "it says installing, but the HostedCluster is available: it has not taken note"
    if state == "uninstalling" and bundles and not any(bundle.deleted for bundle in bundles):
        return "HCP-310", "it is uninstalling and has deleted no bundle yet: its log names the destructor not through"
    return None


def _without(context: WalkContext) -> HopReport:
    if context.outcome(Topic.CS_CLUSTER) is not QueryOutcome.ABSENT:
        why = context.why(Topic.CS_CLUSTER, unasked="neither its id nor its ARM resource ID is known")
        return HopReport(name=NAME).unknown(why)
    absence = context.why(Topic.CS_CLUSTER, unasked="")
    if views.arm_state(context) in {"Accepted", "Provisioning"}:
        return HopReport(name=NAME).behind("HCP-307", f"it does not know the cluster yet ({absence})", waits=True)
    if views.is_deleting(context):
        return HopReport(name=NAME, reason=f"the cluster is deleted, as expected ({absence})")
    return HopReport(name=NAME).bad("HCP-307", f"it does not know the cluster ({absence})")


def _check(check: Document) -> str:
    why = lookup.text(check.value, "details", "error") or "no error is given"
    return f"{lookup.text(check.value, 'name')} failed: {why}"


def _errors(context: WalkContext, cluster: Document) -> list[str]:
    statuses = [
        *(status.value for status in context.documents(Topic.CS_STATUS)),
        lookup.mapping(cluster.value, "status"),
    ]
    names = ("provision_error_code", "provision_error_message", "description")
    messages = [lookup.text(status, name) for status in statuses for name in names]
    return list(dict.fromkeys(filter(None, messages)))


def _facts(context: WalkContext, cluster: Document) -> tuple[Fact, ...]:
    value, where = cluster.value, cluster.where
    created = lookup.moment(value, "creation_timestamp")
    facts = [
        Fact("id", lookup.text(value, "id"), since=created, where=where),
        Fact("href", lookup.text(value, "href"), where=where),
        *(Fact(f"azure.{name}", lookup.text(value, "azure", name), where=where) for name in _AZURE),
        Fact("state", views.cluster_state(context), where=where),
        Fact("domain_prefix", lookup.text(value, "domain_prefix"), where=where),
        Fact("version", lookup.text(value, "version", "id"), where=where),
        Fact("dns_ready", lookup.text(value, "status", "dns_ready"), where=where),
        Fact("oidc_ready", lookup.text(value, "status", "oidc_ready"), where=where),
        Fact("error", " ".join(_errors(context, cluster)), where=where),
    ]
    facts += [
        Fact(
            f"check {lookup.text(check.value, 'name')}",
            lookup.text(check.value, "state"),
            since=lookup.moment(check.value, "ended_at") or lookup.moment(check.value, "started_at"),
            where=check.where,
        )
        for check in context.documents(Topic.CS_CHECKS)
    ]
    facts += [
        Fact(
            f"node pool {lookup.text(pool.value, 'id')}",
            lookup.text(pool.value, "status", "state", "value") or lookup.text(pool.value, "state") or "listed",
            where=pool.where,
        )
        for pool in context.documents(Topic.CS_NODE_POOLS)
    ]
    return tuple(fact for fact in facts if fact.value)
