"""HyperShift's HostedCluster: which expected condition deviates first, and whose matter it is."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import decode, expected, reading, views
from maestropy.trace.hcp.decode import Condition
from maestropy.trace.hcp.hops import control_plane
from maestropy.trace.hcp.identity import ID_LABEL, Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State, since_text
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.hcp.views import Hosted
from maestropy.trace.output import Evidence

NAME = "hosted-cluster"
_CODES = {"platform": "HCP-701", "input": "HCP-702", "cloud": "HCP-703"}
_USUAL_MINUTES = 30
"""A creation is through in ten; after thirty it is not going to be."""


def asks(known: Known) -> Iterable[Question]:
    """Ask for it by name where that is known, else by label."""
    if known.namespace and known.prefix:
        yield Question(topic=Topic.HOSTED_CLUSTER, namespace=known.namespace, name=known.prefix)
    elif known.cid:
        yield Question(topic=Topic.HOSTED_CLUSTER, cid=known.cid)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn its id, name and namespace."""
    for topic, each in documents:
        if topic is Topic.HOSTED_CLUSTER:
            known = known.with_gaps_filled(
                cid=reading.label(each.value, ID_LABEL),
                prefix=reading.name(each.value),
                entry_namespace=reading.namespace(each.value),
            )
    return known


def judge(scene: Scene) -> Report:
    """Judge by the list of expected conditions, and nothing else."""
    found = views.hosted(scene)
    if found is None:
        return _without(scene)
    report = Report(
        name=NAME,
        state=State.OK,
        reason=f"HostedCluster {found.name} is as it should be",
        facts=_facts(found),
        notes=(*scene.notes(Topic.HOSTED_CLUSTER), *_told(scene, found)),
    )
    if found.document and reading.is_going(found.document.value):
        return _going(scene, report, found.document)
    if views.is_deleting(scene):
        # How it is does not matter any more; that it still is, does.
        reason = f"HostedCluster {found.name} is still there, and nobody has deleted it yet"
        return replace(report, state=State.BEHIND, code="HCP-707", reason=reason, waits=True)
    wrong = expected.HOSTED_CLUSTER.deviations(found.conditions)
    if not found.conditions:
        reason = f"HostedCluster {found.name} has no status: the HyperShift operator has not taken it"
        return replace(report, state=State.BEHIND, code="HCP-706", reason=reason)
    if not wrong:
        missing = expected.HOSTED_CLUSTER.unreported(found.conditions) if found.is_live else ()
        notes = (f"not reported: {', '.join(missing)}",) if missing else ()
        return replace(report, notes=(*report.notes, *notes))
    return _deviating(scene, report, found=found, wrong=wrong)


def _deviating(scene: Scene, report: Report, *, found: Hosted, wrong: tuple[Condition, ...]) -> Report:
    first = wrong[0]
    message = first.message or next(
        (each.message for each in wrong if each.reason == first.reason and each.message), ""
    )
    why = ": ".join(filter(None, (first.reason, message)))
    pods = control_plane.blockers(scene, condition=first.type)
    blocked = f"; {control_plane.sentence(pods)}" if pods else ""
    is_final = decode.is_true(found.conditions, "Degraded") or scene.is_older(first.since, _USUAL_MINUTES)
    evidence = [Evidence(where=found.where, says=_aged(scene, each)) for each in wrong]
    evidence += [Evidence(where=each.where, says=f"pod {each.name}: {each.says}") for each in pods]
    said = f"{first.type} is {first.status} ({why or 'no reason given'})"
    lacking = "is not available" if not found.is_available else "is available, but not as it should be"
    return replace(
        report,
        state=State.BAD if is_final else State.BEHIND,
        code=_CODES[expected.owner(first.type)],
        reason=f"HostedCluster {found.name} {lacking}: {said}{blocked}",
        evidence=tuple(evidence),
    )


def _aged(scene: Scene, condition: Condition) -> str:
    age = since_text(scene.age(condition.since))
    return f"{condition}, for {age}" if age else str(condition)


def _going(scene: Scene, report: Report, found: Document) -> Report:
    since = reading.moment(found.value, "metadata", "deletionTimestamp")
    finalizers = reading.finalizers(found.value)
    conditions = decode.conditions(reading.objects(found.value, "status", "conditions"))
    destroyed = decode.named(conditions, "CloudResourcesDestroyed")
    cloud = f"; {destroyed}" if destroyed and destroyed.status != "True" else ""
    age = since_text(scene.age(since))
    reason = f"HostedCluster {reading.name(found.value)} is being deleted for {age} and held by {finalizers}{cloud}"
    state = State.BAD if scene.is_older(since, _USUAL_MINUTES) else State.BEHIND
    evidence = (Evidence(where=found.where, says=f"metadata.finalizers = {finalizers}"),)
    return replace(report, state=state, code="HCP-705", reason=reason, evidence=evidence)


def _without(scene: Scene) -> Report:
    if scene.outcome(Topic.HOSTED_CLUSTER) is not Outcome.ABSENT:
        why = scene.why(Topic.HOSTED_CLUSTER, unasked="neither its namespace nor the Clusters Service id is known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    if views.is_deleting(scene):
        return Report(name=NAME, state=State.OK, reason="it is gone, as a deletion wants it")
    reason = f"there is no HostedCluster in {scene.known.namespace or 'any namespace'}"
    has_works = bool(scene.documents(Topic.WORK))
    return Report(name=NAME, state=State.BEHIND, code="HCP-704", reason=reason, waits=not has_works)


def _told(scene: Scene, found: Hosted) -> tuple[str, ...]:
    if found.is_live:
        return ()
    age = since_text(scene.age(found.told_at))
    return (f"it could not be seen itself; this is what Maestro was told {age} ago" if age else "as Maestro was told",)


def _facts(found: Hosted) -> tuple[Fact, ...]:
    facts = [Fact(name="name", value=f"{found.namespace}/{found.name}", where=found.where)]
    if found.document:
        status = reading.mapping(found.document.value, "status")
        history = reading.objects(status, "version", "history")
        endpoint = reading.text(status, "controlPlaneEndpoint", "host") or "(none)"
        facts.append(Fact(name="controlPlaneEndpoint", value=endpoint, where=found.where))
        facts += [
            Fact(
                name="version",
                value=f"{reading.text(each, 'version')} {reading.text(each, 'state')}",
                since=reading.moment(each, "completionTime") or reading.moment(each, "startedTime"),
                where=found.where,
            )
            for each in history[:1]
        ]
    facts += [Fact(name=each.type, value=str(each), since=each.since, where=found.where) for each in found.conditions]
    return tuple(facts)
