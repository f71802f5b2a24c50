"""Control plane namespace: check its pods, and what blocks the deletion of the namespace."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.identity import KnownIds
from maestropy.trace.hcp.model import Fact, HopReport, HopState, WalkContext
from maestropy.trace.hcp.query import Document, HopQuery, QueryOutcome, Topic
from maestropy.trace.output import Evidence

NAME = "control-plane"
_PERMANENT_REASONS = frozenset(
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
class UnreadyPod:
    """A pod that is not ready."""

    name: str
    says: str
    reason: str
    where: str


def queries(known: KnownIds) -> Iterable[HopQuery]:
    """Query both namespaces and the pods."""
    if known.namespace:
        yield HopQuery(topic=Topic.NAMESPACE, name=known.namespace)
    if known.control_plane:
        yield HopQuery(topic=Topic.NAMESPACE, name=known.control_plane)
        yield HopQuery(topic=Topic.POD, namespace=known.control_plane)


def judge(context: WalkContext) -> HopReport:
    """Judge by namespaces that do not go, then by pods."""
    namespaces = context.documents(Topic.NAMESPACE)
    pods = context.documents(Topic.POD)
    facts = (*map(_namespace_fact, namespaces), *map(_pod_fact, pods))
    report = HopReport(name=NAME, facts=facts, notes=context.notes(Topic.POD, Topic.NAMESPACE))
    stuck = [namespace for namespace in namespaces if lookup.text(namespace.value, "status", "phase") == "Terminating"]
    if stuck:
        says = _remaining(stuck[0])
        reason = f"namespace {lookup.name(stuck[0].value)} is Terminating: {says}"
        return report.behind("HCP-802", reason, evidence=(Evidence(stuck[0].where, says),))
    if pods and views.is_deleting(context):
        reason = f"{len(pods)} pods are still there"
        return report.behind("HCP-804", reason, waits=True)
    waiting = unready_pods(context)
    if waiting:
        is_permanent = any(unready_pod.reason in _PERMANENT_REASONS for unready_pod in waiting)
        evidence = tuple(
            Evidence(unready_pod.where, f"pod {unready_pod.name}: {unready_pod.says}") for unready_pod in waiting
        )
        state = HopState.BAD if is_permanent else HopState.BEHIND
        return replace(report, state=state, code="HCP-801", reason=sentence(waiting), evidence=evidence)
    if pods:
        return replace(report, reason=f"{len(pods)} of {len(pods)} pods are ready")
    return _without(context, report)


def unready_pods(context: WalkContext, *, condition: str = "") -> tuple[UnreadyPod, ...]:
    """Return the pods that are not ready; only those behind a condition, if there are any."""
    waiting = [unready for pod in context.documents(Topic.POD) if (unready := _unready_pod(pod))]
    apps = _PODS_BEHIND.get(condition, ())
    matching = [unready_pod for unready_pod in waiting if unready_pod.name.startswith(apps)] if apps else []
    return tuple(matching or waiting)


def sentence(waiting: Sequence[UnreadyPod]) -> str:
    """Name the pods that are not ready, with the reason."""
    names = [unready_pod.name for unready_pod in waiting]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    same = dict.fromkeys(unready_pod.says for unready_pod in waiting)
    noun, verb = ("pod", "is") if len(names) == 1 else ("pods", "are")
    return f"{noun} {shown} {verb} not ready ({'; '.join(list(same)[:3])})"


def _unready_pod(pod: Document) -> UnreadyPod | None:
    status = lookup.mapping(pod.value, "status")
    phase = lookup.text(status, "phase")
    containers = [*lookup.objects(status, "initContainerStatuses"), *lookup.objects(status, "containerStatuses")]
    if phase == "Succeeded" or (phase == "Running" and all(_is_fine(one) for one in containers)):
        return None
    scheduled = decode.named(decode.conditions(lookup.objects(status, "conditions")), "PodScheduled")
    reason = lookup.text(status, "reason")
    message = lookup.text(status, "message")
    if scheduled and scheduled.status == "False":
        reason, message = scheduled.reason, scheduled.message
    for one in containers:
        for state in ("waiting", "terminated"):
            details = lookup.mapping(one, "state", state)
            if not reason and not _is_fine(one) and lookup.text(details, "reason"):
                reason, message = lookup.text(details, "reason"), lookup.text(details, "message")
    restarts = sum(lookup.number(one, "restartCount") or 0 for one in containers)
    ready = sum(one.get("ready") is True for one in containers)
    unready = f"{ready} of {len(containers)} containers ready" if phase == "Running" and not reason else ""
    parts = [phase or "without a phase", unready, reason, message, f"{restarts} restarts" if restarts else ""]
    name = lookup.name(pod.value)
    return UnreadyPod(name=name, says=", ".join(filter(None, parts)), reason=reason, where=pod.where)


def _is_fine(container: lookup.Json) -> bool:
    if container.get("ready") is True:
        return True
    # An init container that ended well is never ready again.
    return lookup.number(container, "state", "terminated", "exitCode") == 0


def _without(context: WalkContext, report: HopReport) -> HopReport:
    if context.outcome(Topic.POD) is not QueryOutcome.ABSENT:
        why = context.why(Topic.POD, unasked="the namespace of the control plane is not known")
        return report.unknown(why)
    if views.is_deleting(context):
        return replace(report, reason="no pod remains, as expected for a deletion")
    reason = f"no pod is in {context.known.control_plane}"
    return report.behind("HCP-803", reason, waits=not views.hosted(context))


def _remaining(namespace: Document) -> str:
    conditions = decode.conditions(lookup.objects(namespace.value, "status", "conditions"))
    messages = [
        condition.message
        for name in ("NamespaceContentRemaining", "NamespaceFinalizersRemaining", "NamespaceDeletionContentFailure")
        if (condition := decode.named(conditions, name)) and condition.status == "True"
    ]
    return " ".join(messages) or "it does not say what remains"


def _namespace_fact(namespace: Document) -> Fact:
    since = lookup.moment(namespace.value, "metadata", "deletionTimestamp") or lookup.moment(
        namespace.value, "metadata", "creationTimestamp"
    )
    phase = lookup.text(namespace.value, "status", "phase")
    return Fact(f"namespace {lookup.name(namespace.value)}", phase or "exists", since=since, where=namespace.where)


def _pod_fact(pod: Document) -> Fact:
    unready_pod = _unready_pod(pod)
    since = lookup.moment(pod.value, "status", "startTime")
    value = unready_pod.says if unready_pod else lookup.text(pod.value, "status", "phase")
    return Fact(f"pod {lookup.name(pod.value)}", value, since=since, where=pod.where)
