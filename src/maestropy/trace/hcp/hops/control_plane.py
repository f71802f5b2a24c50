"""The control plane's namespace: which pods do not run, and what keeps the namespace from going."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from maestropy.trace.hcp import decode, reading, views
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Fact, Report, Scene, State
from maestropy.trace.hcp.question import Document, Outcome, Question, Topic
from maestropy.trace.output import Evidence

NAME = "control-plane"
_HOPELESS = frozenset(
    {
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CreateContainerError",
        "Unschedulable",
        "Evicted",
    }
)
_PODS_BEHIND = {
    "EtcdAvailable": ("etcd",),
    "KubeAPIServerAvailable": ("kube-apiserver",),
    "IgnitionEndpointAvailable": ("ignition-server",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """A pod that is not ready."""

    name: str
    says: str
    reason: str
    where: str


def asks(known: Known) -> Iterable[Question]:
    """Ask for both namespaces and the pods."""
    if known.namespace:
        yield Question(topic=Topic.NAMESPACE, name=known.namespace)
    if known.control_plane:
        yield Question(topic=Topic.NAMESPACE, name=known.control_plane)
        yield Question(topic=Topic.POD, namespace=known.control_plane)


def learns(known: Known, documents: Iterable[tuple[Topic, Document]]) -> Known:
    """Learn nothing."""
    del documents
    return known


def judge(scene: Scene) -> Report:
    """Judge by namespaces that do not go, then by pods."""
    namespaces = scene.documents(Topic.NAMESPACE)
    pods = scene.documents(Topic.POD)
    facts = (*map(_namespace_fact, namespaces), *map(_pod_fact, pods))
    report = Report(name=NAME, state=State.OK, reason="", facts=facts, notes=scene.notes(Topic.POD, Topic.NAMESPACE))
    stuck = [each for each in namespaces if reading.text(each.value, "status", "phase") == "Terminating"]
    if stuck:
        says = _remaining(stuck[0])
        reason = f"namespace {reading.name(stuck[0].value)} is Terminating: {says}"
        return replace(
            report,
            state=State.BEHIND,
            code="HCP-802",
            reason=reason,
            evidence=(Evidence(where=stuck[0].where, says=says),),
        )
    if pods and views.is_deleting(scene):
        reason = f"{len(pods)} pods are still there"
        return replace(report, state=State.BEHIND, code="HCP-804", reason=reason, waits=True)
    waiting = blockers(scene)
    if waiting:
        hopeless = any(each.reason in _HOPELESS for each in waiting)
        evidence = tuple(Evidence(where=each.where, says=f"pod {each.name}: {each.says}") for each in waiting)
        state = State.BAD if hopeless else State.BEHIND
        return replace(report, state=state, code="HCP-801", reason=sentence(waiting), evidence=evidence)
    if pods:
        return replace(report, reason=f"{len(pods)} of {len(pods)} pods are ready")
    return _without(scene, report)


def blockers(scene: Scene, *, condition: str = "") -> tuple[Blocker, ...]:
    """Return the pods that are not ready; only those a condition speaks about, if there are such."""
    waiting = [found for each in scene.documents(Topic.POD) if (found := _blocker(each))]
    apps = _PODS_BEHIND.get(condition, ())
    matching = [each for each in waiting if each.name.startswith(apps)] if apps else []
    return tuple(matching or waiting)


def sentence(waiting: Sequence[Blocker]) -> str:
    """Say which pods wait, for what."""
    names = [each.name for each in waiting]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    same = dict.fromkeys(each.says for each in waiting)
    noun, verb = ("pod", "is") if len(names) == 1 else ("pods", "are")
    return f"{noun} {shown} {verb} not ready ({'; '.join(list(same)[:3])})"


def _blocker(each: Document) -> Blocker | None:
    status = reading.mapping(each.value, "status")
    phase = reading.text(status, "phase")
    containers = [*reading.objects(status, "initContainerStatuses"), *reading.objects(status, "containerStatuses")]
    if phase == "Succeeded" or (phase == "Running" and all(_is_fine(one) for one in containers)):
        return None
    scheduled = decode.named(decode.conditions(reading.objects(status, "conditions")), "PodScheduled")
    reason = reading.text(status, "reason")
    message = reading.text(status, "message")
    if scheduled and scheduled.status == "False":
        reason, message = scheduled.reason, scheduled.message
    for one in containers:
        for state in ("waiting", "terminated"):
            found = reading.mapping(one, "state", state)
            if not reason and not _is_fine(one) and reading.text(found, "reason"):
                reason, message = reading.text(found, "reason"), reading.text(found, "message")
    restarts = sum(reading.number(one, "restartCount") or 0 for one in containers)
    ready = sum(one.get("ready") is True for one in containers)
    unready = f"{ready} of {len(containers)} containers ready" if phase == "Running" and not reason else ""
    words = [phase or "without a phase", unready, reason, message, f"{restarts} restarts" if restarts else ""]
    name = reading.name(each.value)
    return Blocker(name=name, says=", ".join(filter(None, words)), reason=reason, where=each.where)


def _is_fine(container: reading.Json) -> bool:
    if container.get("ready") is True:
        return True
    # An init container that ended well is never ready again.
    return reading.number(container, "state", "terminated", "exitCode") == 0


def _without(scene: Scene, report: Report) -> Report:
    if scene.outcome(Topic.POD) is not Outcome.ABSENT:
        why = scene.why(Topic.POD, unasked="the namespace of the control plane is not known")
        return replace(report, state=State.UNKNOWN, reason=why)
    if views.is_deleting(scene):
        return replace(report, reason="no pod is left, as a deletion wants it")
    reason = f"no pod is in {scene.known.control_plane}"
    return replace(report, state=State.BEHIND, code="HCP-803", reason=reason, waits=not views.hosted(scene))


def _remaining(each: Document) -> str:
    found = decode.conditions(reading.objects(each.value, "status", "conditions"))
    said = [
        condition.message
        for name in ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure")
        if (condition := decode.named(found, name)) and condition.status == "True"
    ]
    return " ".join(said) or "it does not say what remains"


def _namespace_fact(each: Document) -> Fact:
    since = reading.moment(each.value, "metadata", "deletionTimestamp") or reading.moment(
        each.value, "metadata", "creationTimestamp"
    )
    phase = reading.text(each.value, "status", "phase")
    return Fact(name=f"namespace {reading.name(each.value)}", value=phase or "exists", since=since, where=each.where)


def _pod_fact(each: Document) -> Fact:
    blocker = _blocker(each)
    since = reading.moment(each.value, "status", "startTime")
    value = blocker.says if blocker else reading.text(each.value, "status", "phase")
    return Fact(name=f"pod {reading.name(each.value)}", value=value, since=since, where=each.where)
