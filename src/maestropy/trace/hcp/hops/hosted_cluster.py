"""HostedCluster of HyperShift: find the first expected condition that deviates, and who is responsible."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.decode import ObjectCondition
from maestropy.trace.hcp.hops import control_plane, expected_conditions, views
from maestropy.trace.hcp.hops.views import HostedClusterView
from maestropy.trace.hcp.identity import ID_LABEL, KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, HopState, WalkContext, since_text
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "hosted-cluster"
_CODES = {"platform": "HCP-701", "input": "HCP-702", "cloud": "HCP-703"}
_USUAL_MINUTES = 30
"""A creation is through in ten; after thirty it is not going to be."""


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query it by name if that is known, else by label."""
    if known.namespace and known.prefix:
        yield HopQuery(topic=Topic.HOSTED_CLUSTER, namespace=known.namespace, name=known.prefix)
    elif known.cid:
        yield HopQuery(topic=Topic.HOSTED_CLUSTER, cid=known.cid)


def learn(known: KnownIds, documents: Iterable[tuple[Topic, Document]]) -> KnownIds:
    """Learn its id, name and namespace."""
    for topic, document in documents:
        if topic is Topic.HOSTED_CLUSTER:
            known = known.with_gaps_filled(
                cid=lookup.label(document.value, ID_LABEL),
                prefix=lookup.name(document.value),
                entry_namespace=lookup.namespace(document.value),
            )
    return known


def judge(context: WalkContext) -> HopReport:
    """Judge by the list of expected conditions, and nothing else."""
    hosted = views.hosted(context)
    if hosted is None:
        return _without(context)
    report = HopReport(
        name=NAME,
        reason=f"HostedCluster {hosted.name} is as it should be",
        facts=_facts(hosted),
        notes=(*context.notes(Topic.HOSTED_CLUSTER), *_reported_notes(context, hosted)),
    )
    if hosted.document and lookup.is_deleting(hosted.document.value):
        return _deleting(context, report, hosted.document)
    if views.is_deleting(context):
        # How it is does not matter any more; that it still is, does.
        reason = f"HostedCluster {hosted.name} still exists and is not being deleted"
        return report.behind("HCP-707", reason, waits=True)
    wrong = expected_conditions.HOSTED_CLUSTER.deviations(hosted.conditions)
    if not hosted.conditions:
        reason = f"HostedCluster {hosted.name} has no status: the HyperShift operator has not taken it"
        return report.behind("HCP-706", reason)
    if not wrong:
        missing = expected_conditions.HOSTED_CLUSTER.unreported(hosted.conditions) if hosted.is_live else ()
        notes = (f"not reported: {', '.join(missing)}",) if missing else ()
        return replace(report, notes=(*report.notes, *notes))
    return _deviating(context, report, hosted=hosted, wrong=wrong)


def _deviating(
    context: WalkContext, report: HopReport, *, hosted: HostedClusterView, wrong: tuple[ObjectCondition, ...]
) -> HopReport:
    first = wrong[0]
    message = first.message or next(
        (condition.message for condition in wrong if condition.reason == first.reason and condition.message), ""
    )
    why = ": ".join(filter(None, (first.reason, message)))
    pods = control_plane.unready_pods(context, condition=first.type)
    blocked = f"; {control_plane.sentence(pods)}" if pods else ""
    is_final = decode.is_true(hosted.conditions, "Degraded") or context.is_older(first.since, _USUAL_MINUTES)
    evidence = [Evidence(hosted.where, _aged(context, condition)) for condition in wrong]
    evidence += [Evidence(pod.where, f"pod {pod.name}: {pod.says}") for pod in pods]
    deviation = f"{first.type} is {first.status} ({why or 'no reason given'})"
    lacking = "is not available" if not hosted.is_available else "is available, but not as it should be"
    return replace(
        report,
        state=HopState.BAD if is_final else HopState.BEHIND,
        code=_CODES[expected_conditions.owner(first.type)],
        reason=f"HostedCluster {hosted.name} {lacking}: {deviation}{blocked}",
        evidence=tuple(evidence),
    )


def _aged(context: WalkContext, condition: ObjectCondition) -> str:
    age = since_text(context.age(condition.since))
    return f"{condition}, for {age}" if age else str(condition)


def _deleting(context: WalkContext, report: HopReport, hosted: Document) -> HopReport:
    since = lookup.moment(hosted.value, "metadata", "deletionTimestamp")
    finalizers = lookup.finalizers(hosted.value)
    conditions = decode.conditions(lookup.objects(hosted.value, "status", "conditions"))
    destroyed = decode.named(conditions, "CloudResourcesDestroyed")
    cloud = f"; {destroyed}" if destroyed and destroyed.status != "True" else ""
    age = since_text(context.age(since))
    reason = f"HostedCluster {lookup.name(hosted.value)} is being deleted for {age} and held by {finalizers}{cloud}"
    state = HopState.BAD if context.is_older(since, _USUAL_MINUTES) else HopState.BEHIND
    evidence = (Evidence(hosted.where, f"metadata.finalizers = {finalizers}"),)
    return replace(report, state=state, code="HCP-705", reason=reason, evidence=evidence)


def _without(context: WalkContext) -> HopReport:
    if context.outcome(Topic.HOSTED_CLUSTER) is not QueryOutcome.ABSENT:
        why = context.why(Topic.HOSTED_CLUSTER, unasked="neither its namespace nor the Clusters Service id is known")
        return HopReport(name=NAME).unknown(why)
    if views.is_deleting(context):
        return HopReport(name=NAME, reason="it is gone, as a deletion wants it")
    reason = f"there is no HostedCluster in {context.known.namespace or 'any namespace'}"
    has_works = bool(context.documents(Topic.WORK))
    return HopReport(name=NAME).behind("HCP-704", reason, waits=not has_works)


def _reported_notes(context: WalkContext, hosted: HostedClusterView) -> tuple[str, ...]:
    if hosted.is_live:
        return ()
    age = since_text(context.age(hosted.reported_at))
    return (
        f"it could not be read; this is its last status in Maestro, from {age} ago"
        if age
        else "as reported to Maestro",
    )


def _facts(hosted: HostedClusterView) -> tuple[Fact, ...]:
    facts = [Fact("name", f"{hosted.namespace}/{hosted.name}", where=hosted.where)]
    if hosted.document:
        status = lookup.mapping(hosted.document.value, "status")
        history = lookup.objects(status, "version", "history")
        endpoint = lookup.text(status, "controlPlaneEndpoint", "host") or "(none)"
        facts.append(Fact("controlPlaneEndpoint", endpoint, where=hosted.where))
        facts += [
            Fact(
                "version",
                f"{lookup.text(version, 'version')} {lookup.text(version, 'state')}",
                since=lookup.moment(version, "completionTime") or lookup.moment(version, "startedTime"),
                where=hosted.where,
            )
            for version in history[:1]
        ]
    facts += [
        Fact(condition.type, str(condition), since=condition.since, where=hosted.where)
        for condition in hosted.conditions
    ]
    return tuple(facts)
