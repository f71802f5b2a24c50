"""ACM's ManagedCluster: whether the hub accepted it and its klusterlet joined."""

from collections.abc import Iterable
from dataclasses import replace

from maestropy.trace.hcp import decode, expected, reading, views
from maestropy.trace.hcp.decode import Condition
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "managed-cluster"


def asks(known: Known) -> Iterable[Question]:
    """Ask for the one that is named after the Clusters Service id."""
    if known.cid:
        yield Question(topic=Topic.MANAGED_CLUSTER, name=known.cid, cid=known.cid)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn nothing."""
    del documents
    return known


def judge(scene: Scene) -> Report:
    """Judge by its three expected conditions. Before the control plane serves, its klusterlet cannot join."""
    waits = not views.is_available(scene)
    live = next(iter(scene.documents(Topic.MANAGED_CLUSTER)), None)
    if live is None and scene.outcome(Topic.MANAGED_CLUSTER) is Outcome.ABSENT:
        if views.is_deleting(scene):
            return Report(name=NAME, state=State.OK, reason="it is gone, as a deletion wants it")
        reason = f"there is no ManagedCluster {scene.known.cid}"
        return Report(name=NAME, state=State.BEHIND, code="HCP-614", reason=reason, waits=waits)
    conditions, where = _seen(scene, live)
    if not conditions and live is None:
        why = scene.why(Topic.MANAGED_CLUSTER, unasked="the Clusters Service id is not known")
        return Report(name=NAME, state=State.UNKNOWN, reason=why)
    report = Report(
        name=NAME,
        state=State.OK,
        reason="accepted, joined and available",
        facts=tuple(Fact(name=each.type, value=str(each), since=each.since, where=where) for each in conditions),
        notes=scene.notes(Topic.MANAGED_CLUSTER),
    )
    wrong = expected.MANAGED_CLUSTER.deviations(conditions)
    missing = expected.MANAGED_CLUSTER.unreported(conditions)
    evidence = tuple(Evidence(where=where, says=str(each)) for each in wrong)
    detaching = decode.named(conditions, "ManagedClusterImportSucceeded")
    if detaching and detaching.reason == "ManagedClusterForceDetaching":
        reason = f"it is being detached by force: {detaching}"
        return replace(report, state=State.BAD, code="HCP-613", reason=reason, evidence=evidence)
    if live and reading.is_going(live.value):
        finalizers = reading.finalizers(live.value)
        reason = f"it is being deleted and held by {finalizers}"
        return replace(report, state=State.BEHIND, code="HCP-615", reason=reason, waits=False)
    if views.is_deleting(scene):
        reason = "it is still there, and nobody has deleted it yet"
        return replace(report, state=State.BEHIND, code="HCP-616", reason=reason, waits=True)
    if wrong or missing:
        code = "HCP-612" if any(each.type == expected.MANAGED_CLUSTER_TRUE[2] for each in wrong) else "HCP-611"
        said = str(wrong[0]) if wrong else f"{missing[0]} is not reported yet"
        return replace(report, state=State.BEHIND, code=code, reason=said, waits=waits, evidence=evidence)
    return report


def _seen(scene: Scene, live: Document | None) -> tuple[tuple[Condition, ...], str]:
    if live is not None:
        return decode.conditions(reading.objects(live.value, "status", "conditions")), live.where
    for bundle, seen in views.reported(scene, "ManagedCluster"):
        if seen.own:
            return seen.own, f"feedback in bundle {bundle.id}"
    return (), ""
