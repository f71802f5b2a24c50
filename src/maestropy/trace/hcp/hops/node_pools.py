"""NodePools: whether the workers that were asked for are there."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import decode, expected, reading, views
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "node-pools"


def asks(known: Known) -> Iterable[Question]:
    """Ask for those beside the HostedCluster."""
    if known.namespace:
        yield Question(topic=Topic.NODE_POOL, namespace=known.namespace)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn nothing."""
    del documents
    return known


def judge(scene: Scene) -> Report:
    """Judge by replicas and the list of expected conditions. Nodes cannot come before the control plane serves."""
    found = scene.documents(Topic.NODE_POOL)
    if not found:
        if scene.outcome(Topic.NODE_POOL) is Outcome.ABSENT:
            return Report(name=NAME, state=State.OK, reason="there are none")
        why = scene.why(Topic.NODE_POOL, unasked="the namespace of the HostedCluster is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    report = Report(
        name=NAME,
        state=State.OK,
        reason=f"{len(found)} of {len(found)} are as they should be",
        facts=tuple(fact for each in found for fact in _facts(each)),
        notes=scene.notes(Topic.NODE_POOL),
    )
    still = "is still there, and nobody has deleted it yet" if views.is_deleting(scene) else ""
    troubles = [(each, said) for each in found if (said := _trouble(each, still=still))]
    if not troubles:
        return report
    evidence = tuple(Evidence(where=each.where, says=f"{reading.name(each.value)}: {said}") for each, said in troubles)
    each, said = troubles[0]
    reason = f"NodePool {reading.name(each.value)} {said}"
    waits = views.is_deleting(scene) or not views.is_available(scene)
    return replace(report, state=State.BEHIND, code="HCP-901", reason=reason, waits=waits, evidence=evidence)


def _trouble(each: Document, *, still: str) -> str:
    value = each.value
    if reading.is_going(value):
        finalizers = reading.finalizers(value)
        return f"is being deleted and held by {finalizers}"
    if still:
        return still
    wanted, have = reading.number(value, "spec", "replicas"), reading.number(value, "status", "replicas") or 0
    wrong = expected.NODE_POOL.deviations(decode.conditions(reading.objects(value, "status", "conditions")))
    parts = [f"has {have} of {wanted} replicas"] if wanted is not None and wanted != have else []
    parts += [str(wrong[0])] if wrong else []
    return ", ".join(parts)


def _facts(each: Document) -> Iterable[Fact]:
    name = reading.name(each.value)
    wanted, have = reading.text(each.value, "spec", "replicas"), reading.text(each.value, "status", "replicas")
    yield Fact(name=name, value=f"{have or 0} of {wanted or 'autoscaled'} replicas", where=each.where)
    for condition in decode.conditions(reading.objects(each.value, "status", "conditions")):
        yield Fact(name=f"{name} {condition.type}", value=str(condition), since=condition.since, where=each.where)
