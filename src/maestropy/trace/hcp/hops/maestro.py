"""Maestro server: check that each bundle was delivered, and that its status is about the current version."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.decode import Bundle
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, HopState, WalkContext, since_text
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "maestro"
GRACE_MINUTES = 10
"""The threshold after which Maestro re-publishes an undelivered bundle."""
_REPORT = HopReport(name=NAME)


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query the bundles by label, the bundle of the identifier, and the consumer."""
    if known.bundle_id:
        yield HopQuery(topic=Topic.BUNDLE, name=known.bundle_id)
    if known.cid:
        yield HopQuery(topic=Topic.BUNDLE, cid=known.cid)
    if known.consumer:
        yield HopQuery(topic=Topic.CONSUMER, name=known.consumer)


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn ids, environment and consumer; and the name of the HostedCluster, which is the domain prefix."""
    for topic, document in documents:
        if topic is Topic.BUNDLE:
            bundle = decode.bundle(document.value, where=document.where)
            known = replace(known, bundle_ids=known.bundle_ids | {bundle.id})
            known = known.with_gaps_filled(cid=bundle.cid, environment=bundle.environment, consumer=bundle.consumer)
            for observed in decode.every(bundle.observed):
                if observed.kind == "HostedCluster":
                    known = known.with_gaps_filled(prefix=observed.name, entry_namespace=observed.namespace)
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by the worst bundle."""
    bundles = views.bundles(context)
    if not bundles:
        return _without(context)
    problems = [(bundle, problem) for bundle in bundles if (problem := _problem(context, bundle))]
    report = HopReport(
        name=NAME,
        reason=f"{len(bundles)} of {len(bundles)} bundles are delivered, applied and reported",
        facts=tuple(fact for bundle in bundles for fact in (_fact(bundle), *_updated(bundle), *_feedback(bundle))),
        notes=(*context.notes(Topic.BUNDLE, Topic.CONSUMER), *_unsynced(bundles), *_hidden_feedback(bundles)),
    )
    if not problems:
        return report
    bundle, worst = min(problems, key=lambda problem: (problem[1].waits, problem[1].state is not HopState.BAD))
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    evidence = tuple(Evidence(bundle.where, f"{bundle.title}: {problem.reason}") for bundle, problem in problems)
    reason = f"bundle {bundle.id} ({bundle.title}) {worst.reason}{more}"
    return replace(report, state=worst.state, code=worst.code, waits=worst.waits, reason=reason, evidence=evidence)


def _problem(context: WalkContext, bundle: Bundle) -> HopReport | None:
    if bundle.deleted:
        return _deletion(context, bundle)
    if context.outcome(Topic.CS_CLUSTER) is QueryOutcome.ABSENT and not bundle.read_only:
        says = "remains, but Clusters Service has no cluster for it: no component will delete it"
        return _REPORT.bad("HCP-408", says)
    if not bundle.has_status:
        age = since_text(context.age(bundle.created))
        says = f"has had no status for {age}: not delivered, or the agent is down"
        return _late("HCP-402", says, is_late=context.is_older(bundle.created, GRACE_MINUTES))
    if (bundle.observed_version or 0) < bundle.version:
        says = f"is at version {bundle.version}, its status is about {bundle.observed_version}"
        return _late("HCP-403", says, is_late=context.is_older(bundle.updated, GRACE_MINUTES))
    applied = decode.named(bundle.conditions, "Applied")
    if applied and applied.status != "True":
        return _REPORT.bad("HCP-404", f"was not applied by the agent: {applied}")
    return None


def _late(code: str, says: str, *, is_late: bool) -> HopReport:
    return _REPORT.bad(code, says) if is_late else _REPORT.behind(code, says)


def _deletion(context: WalkContext, bundle: Bundle) -> HopReport:
    age = since_text(context.age(bundle.deleted))
    is_work_gone = context.outcome(Topic.WORK) is QueryOutcome.ABSENT
    if is_work_gone and context.is_older(bundle.deleted, GRACE_MINUTES):
        says = f"is deleted for {age} and still here, although its object is gone: the agent's word never came"
        return _REPORT.bad("HCP-406", says)
    says = f"is deleted for {age} and waits for the agent to confirm the deletion"
    return _REPORT.behind("HCP-406", says, waits=True)


def _without(context: WalkContext) -> HopReport:
    consumer = context.known.consumer
    if context.outcome(Topic.BUNDLE) is not QueryOutcome.ABSENT:
        why = context.why(Topic.BUNDLE, unasked="the Clusters Service id is not known")
        return _REPORT.unknown(why)
    if consumer and context.outcome(Topic.CONSUMER) is QueryOutcome.ABSENT:
        reason = f"there is no bundle, and no consumer {consumer} to send one to: register it"
        return _REPORT.bad("HCP-401", reason)
    if views.is_deleting(context):
        return HopReport(name=NAME, reason="no bundle remains, as expected for a deletion")
    reason = "there is no bundle with this id label: Clusters Service has not sent any"
    return _REPORT.behind("HCP-407", reason)


def _unsynced(bundles: Iterable[Bundle]) -> Iterable[str]:
    for bundle in bundles:
        for observed in decode.every(bundle.observed):
            synced = decode.named(observed.applied, "StatusFeedbackSynced")
            if synced and synced.status != "True" and synced.reason != "NoStatusFeedbackSynced":
                yield f"feedback of {observed.title} is not synced, so an old value may still show: {synced}"


def _hidden_feedback(bundles: Iterable[Bundle]) -> Iterable[str]:
    for bundle in bundles:
        for observed in decode.every(bundle.observed):
            if observed.kind == "ManifestWork" and bundle.has_status and not observed.has_feedback:
                yield f"bundle {bundle.id} has no feedback of {observed.title}: its contents cannot be seen here"


def _feedback(bundle: Bundle) -> Iterable[Fact]:
    """Yield the feedback of the bundle about its objects, including nested ones."""
    for observed in decode.every(bundle.observed):
        parts = [
            f"{condition.type}={condition.status}" + (f" ({condition.reason})" if condition.reason else "")
            for condition in observed.own
        ]
        parts += [f"{name}={value}" for name, value in observed.values.items() if isinstance(value, str | int | float)]
        if parts:
            since = max((condition.since for condition in observed.own if condition.since), default=None)
            yield Fact(f"  feedback {observed.title}", ", ".join(parts), since=since, where=bundle.where)


def _updated(bundle: Bundle) -> Iterable[Fact]:
    """Yield when the bundle received its last update, of spec or status."""
    if bundle.updated:
        value = f"{bundle.updated:%Y-%m-%dT%H:%M:%SZ}"
        yield Fact("  updated_at", value, since=bundle.updated, where=bundle.where)


def _fact(bundle: Bundle) -> Fact:
    spec = (
        f"v{bundle.version}"
        if bundle.observed_version in (None, bundle.version)
        else (f"v{bundle.version}, status of v{bundle.observed_version}")
    )
    state = (
        "deleted"
        if bundle.deleted
        else "no status"
        if not bundle.has_status
        else (", ".join(f"{condition.type}={condition.status}" for condition in bundle.conditions) or "no conditions")
    )
    kind = " read-only" if bundle.read_only else ""
    value = f"{bundle.title}{kind} {spec} {state}"
    return Fact(f"bundle {bundle.id}", value, since=bundle.deleted or bundle.updated, where=bundle.where)
