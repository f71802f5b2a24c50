"""Find contradictions between hops. Pure: each rule reads the walk context and yields at most a few sentences."""

from collections.abc import Callable, Iterable, Sequence

from maestropy.trace.hcp import identity, lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.hops import views
from maestropy.trace.hcp.model import Contradiction, WalkContext
from maestropy.trace.hcp.query import Document, QueryOutcome, Topic
from maestropy.trace.output import Evidence

ARM_STATE_SOURCES = (
    "the HostedCluster (by its ReadDesire), .api.url, Clusters Service's status, and the serving CA bundle"
)
"""ARM shows the worst of these while a cluster is created."""


def find(context: WalkContext) -> tuple[Contradiction, ...]:
    """Return all contradictions."""
    return tuple(contradiction for rule in _RULES for contradiction in rule(context))


def _arm_and_cs(context: WalkContext) -> Iterable[Contradiction]:
    arm, state = views.arm_state(context), views.cluster_state(context)
    if state == "ready" and arm in {"Accepted", "Provisioning", "Updating", "Failed"}:
        says = f"Clusters Service says ready, ARM says {arm}: ARM shows the worst of {ARM_STATE_SOURCES}"
        yield Contradiction(code="HCP-011", says=says, between=("frontend", "clusters-service"))
    if arm == "Succeeded" and state not in {"", "ready", "updating"}:
        says = f"ARM says Succeeded, Clusters Service says {state}"
        yield Contradiction(code="HCP-011", says=says, between=("frontend", "clusters-service"))
    if context.outcome(Topic.ARM_CLUSTER) is QueryOutcome.ABSENT and state:
        says = f"ARM does not know it, Clusters Service does ({state}): its document went first"
        yield Contradiction(code="HCP-012", says=says, between=("frontend", "clusters-service"))


def _cs_and_hosted(context: WalkContext) -> Iterable[Contradiction]:
    state, hosted = views.cluster_state(context), views.hosted(context)
    if hosted is None or not hosted.conditions:
        return
    evidence = tuple(
        Evidence(hosted.where, str(condition)) for condition in hosted.conditions if condition.type == "Available"
    )
    if state == "ready" and not hosted.is_available:
        says = "Clusters Service says ready, the HostedCluster is not available"
    elif state in {"installing", "pending", "validating"} and hosted.is_available:
        says = f"Clusters Service says {state}, the HostedCluster is available"
    elif views.arm_state(context) == "Succeeded" and not hosted.is_available:
        says = "ARM says Succeeded, the HostedCluster is not available"
    else:
        return
    between = ("frontend" if says.startswith("ARM") else "clusters-service", "hosted-cluster")
    yield Contradiction(code="HCP-013", says=says, between=between, evidence=evidence)


def _feedback(context: WalkContext) -> Iterable[Contradiction]:
    """Compare the feedback in Maestro with the live HostedCluster."""
    hosted, reported = views.hosted(context), views.reported_hosted(context)
    if hosted is None or reported is None or not hosted.is_live:
        return
    for condition in reported.conditions:
        live = decode.named(hosted.conditions, condition.type)
        if live and (live.status, live.reason) != (condition.status, condition.reason):
            says = f"Maestro has {condition}, the HostedCluster has {live}: the feedback is old"
            evidence = (Evidence(reported.where, str(condition)), Evidence(hosted.where, str(live)))
            yield Contradiction(code="HCP-014", says=says, between=("maestro", "hosted-cluster"), evidence=evidence)


def _layers_of_applied(context: WalkContext) -> Iterable[Contradiction]:
    for bundle in views.bundles(context):
        for outer in bundle.observed:
            inner = decode.named(outer.own, "Applied")
            if decode.is_true(outer.applied, "Applied") and inner and inner.status != "True":
                says = f"{outer.title} is applied by Maestro's agent, but what is inside is not: {inner}"
                yield Contradiction(code="HCP-015", says=says, between=("maestro", "works"))


def _deleted_and_present(context: WalkContext) -> Iterable[Contradiction]:
    works = {f"ManifestWork {lookup.namespace(work.value)}/{lookup.name(work.value)}": work for work in _works(context)}
    for bundle in views.bundles(context):
        work = works.get(bundle.title)
        if bundle.deleted and work and not lookup.is_deleting(work.value):
            says = f"bundle {bundle.id} is deleted, {bundle.title} is on the cluster and not being deleted"
            yield Contradiction(code="HCP-016", says=says, between=("maestro", "agent"))


def _orphans(context: WalkContext) -> Iterable[Contradiction]:
    bundles = views.bundles(context)
    if context.outcome(Topic.BUNDLE) is QueryOutcome.ABSENT and _works(context):
        names = ", ".join(lookup.name(work.value) for work in _works(context)[:3])
        says = (
            f"ManifestWorks are on the cluster ({names}), Maestro has no bundle of them: no component will delete them"
        )
        yield Contradiction(code="HCP-017", says=says, between=("maestro", "works"))
    if context.outcome(Topic.CS_CLUSTER) is QueryOutcome.ABSENT and bundles:
        left = ", ".join(bundle.title for bundle in bundles[:3])
        says = f"Clusters Service does not know the cluster, Maestro has {len(bundles)} bundles of it ({left})"
        yield Contradiction(code="HCP-018", says=says, between=("clusters-service", "maestro"))


def _consumers(context: WalkContext) -> Iterable[Contradiction]:
    shard = next(iter(context.documents(Topic.SHARD)), None)
    consumer = lookup.text(shard.value, "maestro_config", "consumer_name") if shard else ""
    others = sorted({bundle.consumer for bundle in views.bundles(context) if bundle.consumer} - {consumer})
    if consumer and others:
        says = f"the shard's consumer is {consumer}, bundles are sent to {', '.join(others)}"
        yield Contradiction(code="HCP-019", says=says, between=("shard", "maestro"))
    management = identity.management_cluster(shard.value) if shard else None
    if management and management.disagreement:
        says = f"the shard names several stamps: {management.disagreement}"
        yield Contradiction(code="HCP-020", says=says, between=("shard",))


def _endpoint(context: WalkContext) -> Iterable[Contradiction]:
    arm = next(iter(context.documents(Topic.ARM_CLUSTER)), None)
    hosted = next(iter(context.documents(Topic.HOSTED_CLUSTER)), None)
    if arm is None or hosted is None:
        return
    host = lookup.text(hosted.value, "status", "controlPlaneEndpoint", "host")
    # While ARM deletes, an empty URL is as expected, and it does not keep ARM from anything.
    if views.arm_state(context) == "Deleting" or views.cluster_state(context) == "uninstalling":
        return
    if host and not lookup.text(arm.value, "properties", "api", "url"):
        says = f"the HostedCluster serves at {host}, ARM's api.url is empty: this alone keeps ARM at Provisioning"
        yield Contradiction(code="HCP-021", says=says, between=("frontend", "hosted-cluster"))


def _documents(context: WalkContext) -> Iterable[Contradiction]:
    for topic in Topic:
        for says in dict.fromkeys(
            disagreement for result in context.about(topic) for disagreement in result.disagreements
        ):
            yield Contradiction(code="HCP-022", says=says, between=(topic.system.value,))


def _works(context: WalkContext) -> Sequence[Document]:
    return context.documents(Topic.WORK)


_RULES: Sequence[Callable[[WalkContext], Iterable[Contradiction]]] = (
    _arm_and_cs,
    _cs_and_hosted,
    _feedback,
    _layers_of_applied,
    _deleted_and_present,
    _orphans,
    _consumers,
    _endpoint,
    _documents,
)
