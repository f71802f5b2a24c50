"""ACM's work agent: whether what is inside the ManifestWorks of `local-cluster` was applied."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from maestropy.trace.hcp import decode, reading, views
from maestropy.trace.hcp.decode import Condition, Observed
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State, since_text
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "works"
NAMESPACE = "local-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A ManifestWork: as it is, or as Maestro was told."""

    name: str
    conditions: tuple[Condition, ...]
    inner: tuple[Observed, ...]
    where: str
    document: Document | None = None


def asks(known: Known) -> Iterable[Question]:
    """Ask for the ManifestWorks by label."""
    if known.cid:
        yield Question(topic=Topic.WORK, cid=known.cid, namespace=NAMESPACE)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn the environment from labels, and the HostedCluster's name from what is inside."""
    for topic, each in documents:
        if topic is Topic.WORK:
            known = known.with_gaps_filled(environment=reading.label(each.value, "api.openshift.com/environment"))
            for manifest in reading.objects(each.value, "spec", "workload", "manifests"):
                if reading.text(manifest, "kind") == "HostedCluster":
                    known = known.with_gaps_filled(
                        prefix=reading.name(manifest), entry_namespace=reading.namespace(manifest)
                    )
    return known


def judge(scene: Scene) -> Report:
    """Judge by what is not applied, then by what is not available, then by what does not go away."""
    live = [_live(each) for each in scene.documents(Topic.WORK)]
    if not live and scene.outcome(Topic.WORK) is Outcome.ABSENT:
        return _absent(scene)
    seen = live or [_told(bundle.id, work) for bundle, work in views.reported(scene, "ManifestWork") if work.own]
    if not seen:
        why = scene.why(Topic.WORK, unasked="the Clusters Service id is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    how = "" if live else ", as Maestro was told"
    report = Report(
        name=NAME,
        state=State.OK,
        reason=f"{len(seen)} of {len(seen)} ManifestWorks are applied{how}",
        facts=tuple(_fact(each) for each in seen),
        notes=scene.notes(Topic.WORK),
    )
    return _going(scene, report, live) or _failing(report, seen) or report


def _going(scene: Scene, report: Report, live: Iterable[Seen]) -> Report | None:
    held = [each for each in live if each.document and reading.is_going(each.document.value)]
    if not held:
        return None
    says = [_held(scene, each) for each in held]
    evidence = tuple(Evidence(where=each.where, says=text) for each, text in zip(held, says, strict=True))
    return replace(report, state=State.BEHIND, code="HCP-605", reason=says[0], waits=True, evidence=evidence)


def _held(scene: Scene, each: Seen) -> str:
    assert each.document
    since = reading.moment(each.document.value, "metadata", "deletionTimestamp")
    age = since_text(scene.age(since))
    return f"ManifestWork {each.name} is being deleted for {age} and waits until what it applied is gone"


def _failing(report: Report, seen: Iterable[Seen]) -> Report | None:
    wrong = [
        (each, condition)
        for name in ("Applied", "Available")
        for each in seen
        if (condition := decode.named(each.conditions, name)) and condition.status != "True"
    ]
    silent = [each for each in seen if not each.conditions]
    if wrong:
        each, condition = wrong[0]
        inner = [_inner(one) for one in each.inner if not decode.is_true(one.applied, condition.type)]
        why = f": {inner[0]}" if inner else ""
        is_applied = condition.type != "Applied"
        evidence = tuple(Evidence(where=one.where, says=f"{one.name}: {what}") for one, what in wrong)
        return replace(
            report,
            state=State.BEHIND if is_applied else State.BAD,
            code="HCP-603" if is_applied else "HCP-602",
            reason=f"ManifestWork {each.name} has {condition}{why}",
            evidence=evidence,
        )
    if silent:
        reason = f"ManifestWork {silent[0].name} has no status: ACM's work agent has not taken it"
        evidence = tuple(Evidence(where=each.where, says=f"{each.name} has no status") for each in silent)
        return replace(report, state=State.BEHIND, code="HCP-604", reason=reason, evidence=evidence)
    return None


def _inner(seen: Observed) -> str:
    applied = decode.named(seen.applied, "Applied") or decode.named(seen.applied, "Available")
    return f"{seen.title} {applied}" if applied else seen.title


def _absent(scene: Scene) -> Report:
    if views.is_deleting(scene):
        return Report(name=NAME, state=State.OK, reason="no ManifestWork is left, as a deletion wants it")
    delivered = any(each.has_status and not each.read_only for each in views.bundles(scene))
    reason = f"no ManifestWork with this id label is in {NAMESPACE}"
    return Report(name=NAME, state=State.BEHIND, code="HCP-601", reason=reason, waits=not delivered)


def _live(each: Document) -> Seen:
    meta = {"kind": "ManifestWork", "name": reading.name(each.value), "namespace": reading.namespace(each.value)}
    status = reading.mapping(each.value, "status")
    wrapped = {
        "resourceMeta": meta,
        "statusFeedback": {"values": [{"name": "status", "fieldValue": {"jsonRaw": status}}]},
    }
    seen = decode.observed(wrapped)
    return Seen(name=seen.name, conditions=seen.own, inner=seen.inner, where=each.where, document=each)


def _told(bundle_id: str, seen: Observed) -> Seen:
    return Seen(name=seen.name, conditions=seen.own, inner=seen.inner, where=f"feedback in bundle {bundle_id}")


def _fact(each: Seen) -> Fact:
    holds = ", ".join(one.title for one in each.inner)
    said = ", ".join(f"{one.type}={one.status}" for one in each.conditions) or "no status"
    since = max((one.since for one in each.conditions if one.since), default=None)
    return Fact(name=each.name, value=f"{said}; holds {holds or 'nothing reported'}", since=since, where=each.where)
