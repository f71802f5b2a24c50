"""ACM work agent: check that the contents of the ManifestWorks in `local-cluster` are applied."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.decode import ObjectCondition, Observed
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, HopState, WalkContext, since_text
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "works"
NAMESPACE = "local-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkState:
    """A ManifestWork: live, or as reported to Maestro."""

    name: str
    conditions: tuple[ObjectCondition, ...]
    inner: tuple[Observed, ...]
    where: str
    document: Document | None = None


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the ManifestWorks by label."""
    if known.cid:
        yield HopQuery(topic=Topic.WORK, cid=known.cid, namespace=NAMESPACE)


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn the environment from labels, and the HostedCluster's name from what is inside."""
    for topic, document in documents:
        if topic is Topic.WORK:
            known = known.with_gaps_filled(environment=lookup.label(document.value, "api.openshift.com/environment"))
            for manifest in lookup.objects(document.value, "spec", "workload", "manifests"):
                if lookup.text(manifest, "kind") == "HostedCluster":
                    known = known.with_gaps_filled(
                        prefix=lookup.name(manifest), entry_namespace=lookup.namespace(manifest)
                    )
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by what is not applied, then by what is not available, then by what does not go away."""
    live = [_live(work) for work in context.documents(Topic.WORK)]
    if not live and context.outcome(Topic.WORK) is QueryOutcome.ABSENT:
        return _absent(context)
    works = live or [_reported(bundle.id, work) for bundle, work in views.reported(context, "ManifestWork") if work.own]
    if not works:
        why = context.why(Topic.WORK, unasked="the Clusters Service id is not known")
        return HopReport(name=NAME).unknown(why)
    how = "" if live else ", as reported to Maestro"
    report = HopReport(
        name=NAME,
        reason=f"{len(works)} of {len(works)} ManifestWorks are applied{how}",
        facts=tuple(_fact(work) for work in works),
        notes=context.notes(Topic.WORK),
    )
    return _deleting(context, report, live) or _failing(report, works) or report


def _deleting(context: WalkContext, report: HopReport, live: Iterable[WorkState]) -> HopReport | None:
    deleting = [work for work in live if work.document and lookup.is_deleting(work.document.value)]
    if not deleting:
        return None
    says = [_deletion_text(context, work) for work in deleting]
    evidence = tuple(Evidence(work.where, text) for work, text in zip(deleting, says, strict=True))
    return report.behind("HCP-605", says[0], waits=True, evidence=evidence)


def _deletion_text(context: WalkContext, work: WorkState) -> str:
    assert work.document
    since = lookup.moment(work.document.value, "metadata", "deletionTimestamp")
    age = since_text(context.age(since))
    return f"ManifestWork {work.name} is being deleted for {age} and waits until its objects are deleted"


def _failing(report: HopReport, works: Iterable[WorkState]) -> HopReport | None:
    wrong = [
        (work, condition)
        for name in ("Applied", "Available")
        for work in works
        if (condition := decode.named(work.conditions, name)) and condition.status != "True"
    ]
    silent = [work for work in works if not work.conditions]
    if wrong:
        first, condition = wrong[0]
        inner = [_inner(one) for one in first.inner if not decode.is_true(one.applied, condition.type)]
        why = f": {inner[0]}" if inner else ""
        is_applied = condition.type != "Applied"
        evidence = tuple(Evidence(one.where, f"{one.name}: {failed}") for one, failed in wrong)
        return replace(
            report,
            state=HopState.BEHIND if is_applied else HopState.BAD,
            code="HCP-603" if is_applied else "HCP-602",
            reason=f"ManifestWork {first.name} has {condition}{why}",
            evidence=evidence,
        )
    if silent:
        reason = f"ManifestWork {silent[0].name} has no status: ACM's work agent has not taken it"
        evidence = tuple(Evidence(work.where, f"{work.name} has no status") for work in silent)
        return report.behind("HCP-604", reason, evidence=evidence)
    return None


def _inner(observed: Observed) -> str:
    applied = decode.named(observed.applied, "Applied") or decode.named(observed.applied, "Available")
    return f"{observed.title} {applied}" if applied else observed.title


def _absent(context: WalkContext) -> HopReport:
    if views.is_deleting(context):
        return HopReport(name=NAME, reason="no ManifestWork remains, as expected for a deletion")
    delivered = any(bundle.has_status and not bundle.read_only for bundle in views.bundles(context))
    reason = f"no ManifestWork with this id label is in {NAMESPACE}"
    return HopReport(name=NAME).behind("HCP-601", reason, waits=not delivered)


def _live(document: Document) -> WorkState:
    meta = {"kind": "ManifestWork", "name": lookup.name(document.value), "namespace": lookup.namespace(document.value)}
    status = lookup.mapping(document.value, "status")
    wrapped = {
        "resourceMeta": meta,
        "statusFeedback": {"values": [{"name": "status", "fieldValue": {"jsonRaw": status}}]},
    }
    observed = decode.observed(wrapped)
    return WorkState(
        name=observed.name, conditions=observed.own, inner=observed.inner, where=document.where, document=document
    )


def _reported(bundle_id: str, observed: Observed) -> WorkState:
    return WorkState(
        name=observed.name, conditions=observed.own, inner=observed.inner, where=f"feedback in bundle {bundle_id}"
    )


def _fact(work: WorkState) -> Fact:
    holds = ", ".join(one.title for one in work.inner)
    conditions = ", ".join(f"{one.type}={one.status}" for one in work.conditions) or "no status"
    since = max((one.since for one in work.conditions if one.since), default=None)
    return Fact(work.name, f"{conditions}; holds {holds or 'nothing reported'}", since=since, where=work.where)
