"""Maestro: whether each bundle was delivered, reported about, and about the spec of now."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from maestropy.trace.hcp import decode, views
from maestropy.trace.hcp.decode import Bundle
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State, since_text
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "maestro"
PATIENCE_MINUTES = 10
"""After that Maestro itself takes a bundle for undelivered and sends it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What is wrong with one bundle."""

    state: State
    code: str
    says: str
    waits: bool = False


def asks(known: Known) -> Iterable[Question]:
    """Ask for the bundles by label, for the one the walk was entered by, and for the consumer."""
    if known.bundle_id:
        yield Question(topic=Topic.BUNDLE, name=known.bundle_id)
    if known.cid:
        yield Question(topic=Topic.BUNDLE, cid=known.cid)
    if known.consumer:
        yield Question(topic=Topic.CONSUMER, name=known.consumer)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn ids, environment and consumer; and the name of the HostedCluster, which is the domain prefix."""
    for topic, each in documents:
        if topic is Topic.BUNDLE:
            found = decode.bundle(each.value, where=each.where)
            known = replace(known, bundle_ids=known.bundle_ids | {found.id})
            known = known.with_gaps_filled(cid=found.cid, environment=found.environment, consumer=found.consumer)
            for seen in decode.every(found.observed):
                if seen.kind == "HostedCluster":
                    known = known.with_gaps_filled(prefix=seen.name, entry_namespace=seen.namespace)
    return known


def judge(scene: Scene) -> Report:
    """Judge by the worst bundle."""
    found = views.bundles(scene)
    if not found:
        return _without(scene)
    troubles = [(each, trouble) for each in found if (trouble := _trouble(scene, each))]
    report = Report(
        name=NAME,
        state=State.OK,
        reason=f"{len(found)} of {len(found)} bundles are delivered, applied and reported",
        facts=tuple(fact for each in found for fact in (_fact(each), *_feedback(each))),
        notes=(*scene.notes(Topic.BUNDLE, Topic.CONSUMER), *_unsynced(found), *_hidden_feedback(found)),
    )
    if not troubles:
        return report
    bundle, worst = min(troubles, key=lambda each: (each[1].waits, each[1].state is not State.BAD))
    more = f" (and {len(troubles) - 1} more)" if len(troubles) > 1 else ""
    evidence = tuple(Evidence(where=each.where, says=f"{each.title}: {trouble.says}") for each, trouble in troubles)
    reason = f"bundle {bundle.id} ({bundle.title}) {worst.says}{more}"
    return replace(report, state=worst.state, code=worst.code, waits=worst.waits, reason=reason, evidence=evidence)


def _trouble(scene: Scene, found: Bundle) -> Trouble | None:
    if found.deleted:
        return _deletion(scene, found)
    if scene.outcome(Topic.CS_CLUSTER) is Outcome.ABSENT and not found.read_only:
        says = "is left behind: Clusters Service has forgotten its cluster, and nobody will delete it"
        return Trouble(state=State.BAD, code="HCP-408", says=says)
    if not found.has_status:
        late = scene.is_older(found.created, PATIENCE_MINUTES)
        age = since_text(scene.age(found.created))
        return Trouble(
            state=State.BAD if late else State.BEHIND,
            code="HCP-402",
            says=f"was never reported on in {age}: not delivered, or the agent is down",
        )
    if (found.observed_version or 0) < found.version:
        late = scene.is_older(found.updated, PATIENCE_MINUTES)
        return Trouble(
            state=State.BAD if late else State.BEHIND,
            code="HCP-403",
            says=f"is at version {found.version}, its status speaks about {found.observed_version}",
        )
    applied = decode.named(found.conditions, "Applied")
    if applied and applied.status != "True":
        return Trouble(state=State.BAD, code="HCP-404", says=f"was not applied by the agent: {applied}")
    return None


def _deletion(scene: Scene, found: Bundle) -> Trouble:
    age = since_text(scene.age(found.deleted))
    is_work_gone = scene.outcome(Topic.WORK) is Outcome.ABSENT
    if is_work_gone and scene.is_older(found.deleted, PATIENCE_MINUTES):
        says = f"is deleted for {age} and still here, although its object is gone: the agent's word never came"
        return Trouble(state=State.BAD, code="HCP-406", says=says)
    says = f"is deleted for {age} and waits for the agent to say that its object is gone"
    return Trouble(state=State.BEHIND, code="HCP-406", says=says, waits=True)


def _without(scene: Scene) -> Report:
    consumer = scene.known.consumer
    if scene.outcome(Topic.BUNDLE) is not Outcome.ABSENT:
        why = scene.why(Topic.BUNDLE, unasked="the Clusters Service id is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    if consumer and scene.outcome(Topic.CONSUMER) is Outcome.ABSENT:
        reason = f"there is no bundle, and no consumer {consumer} to send one to: register it"
        return Report(name=NAME, state=State.BAD, code="HCP-401", reason=reason)
    if views.is_deleting(scene):
        return Report(name=NAME, state=State.OK, reason="no bundle is left, as a deletion wants it")
    reason = "there is no bundle with this id label: Clusters Service has not sent any"
    return Report(name=NAME, state=State.BEHIND, code="HCP-407", reason=reason)


def _unsynced(found: Iterable[Bundle]) -> Iterable[str]:
    for bundle in found:
        for seen in decode.every(bundle.observed):
            synced = decode.named(seen.applied, "StatusFeedbackSynced")
            if synced and synced.status != "True" and synced.reason != "NoStatusFeedbackSynced":
                yield f"feedback of {seen.title} is not synced, so an old value may still show: {synced}"


def _hidden_feedback(found: Iterable[Bundle]) -> Iterable[str]:
    for bundle in found:
        for seen in decode.every(bundle.observed):
            if seen.kind == "ManifestWork" and bundle.has_status and not seen.has_feedback:
                yield f"bundle {bundle.id} brings no feedback of {seen.title}: what is inside cannot be seen from here"


def _feedback(found: Bundle) -> Iterable[Fact]:
    """Yield what the bundle tells about objects, unwrapped to the innermost."""
    for seen in decode.every(found.observed):
        said = [f"{each.type}={each.status}" + (f" ({each.reason})" if each.reason else "") for each in seen.own]
        said += [f"{name}={value}" for name, value in seen.values.items() if isinstance(value, str | int | float)]
        if said:
            since = max((each.since for each in seen.own if each.since), default=None)
            yield Fact(name=f"  tells {seen.title}", value=", ".join(said), since=since, where=found.where)


def _fact(found: Bundle) -> Fact:
    spec = (
        f"v{found.version}"
        if found.observed_version in (None, found.version)
        else (f"v{found.version}, status of v{found.observed_version}")
    )
    state = (
        "deleted"
        if found.deleted
        else "no status"
        if not found.has_status
        else (", ".join(f"{each.type}={each.status}" for each in found.conditions) or "no conditions")
    )
    kind = " read-only" if found.read_only else ""
    value = f"{found.title}{kind} {spec} {state}"
    return Fact(name=f"bundle {found.id}", value=value, since=found.deleted or found.updated, where=found.where)
