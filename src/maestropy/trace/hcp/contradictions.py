"""What cannot be true at two hops at once. Pure: each rule reads the scene and says nothing, or one sentence."""

from collections.abc import Callable, Iterable, Sequence

from maestropy.trace.hcp import decode, identity, reading, views
from maestropy.trace.hcp.model import Contradiction, Scene
from maestropy.trace.hcp.question import Document, Outcome, Topic
from maestropy.trace.output import Evidence

FOUR_SOURCES = "the HostedCluster (by its ReadDesire), .api.url, Clusters Service's status, and the serving CA bundle"
"""ARM shows the worst of these while a cluster is created."""


def find(scene: Scene) -> tuple[Contradiction, ...]:
    """Return all contradictions."""
    return tuple(found for rule in _RULES for found in rule(scene))


def _arm_and_cs(scene: Scene) -> Iterable[Contradiction]:
    arm, state = views.arm_state(scene), views.cluster_state(scene)
    if state == "ready" and arm in {"Accepted", "Provisioning", "Updating", "Failed"}:
        says = f"Clusters Service says ready, ARM says {arm}: ARM shows the worst of {FOUR_SOURCES}"
        yield Contradiction(code="HCP-011", says=says, between=("frontend", "clusters-service"))
    if arm == "Succeeded" and state not in {"", "ready", "updating"}:
        says = f"ARM says Succeeded, Clusters Service says {state}"
        yield Contradiction(code="HCP-011", says=says, between=("frontend", "clusters-service"))
    if scene.outcome(Topic.ARM_CLUSTER) is Outcome.ABSENT and state:
        says = f"ARM does not know it, Clusters Service does ({state}): its document went first"
        yield Contradiction(code="HCP-012", says=says, between=("frontend", "clusters-service"))


def _cs_and_hosted(scene: Scene) -> Iterable[Contradiction]:
    state, hosted = views.cluster_state(scene), views.hosted(scene)
    if hosted is None or not hosted.conditions:
        return
    evidence = tuple(
        Evidence(where=hosted.where, says=str(each)) for each in hosted.conditions if each.type == "Available"
    )
    if state == "ready" and not hosted.is_available:
        says = "Clusters Service says ready, the HostedCluster is not available"
    elif state in {"installing", "pending", "validating"} and hosted.is_available:
        says = f"Clusters Service says {state}, the HostedCluster is available"
    elif views.arm_state(scene) == "Succeeded" and not hosted.is_available:
        says = "ARM says Succeeded, the HostedCluster is not available"
    else:
        return
    between = ("frontend" if says.startswith("ARM") else "clusters-service", "hosted-cluster")
    yield Contradiction(code="HCP-013", says=says, between=between, evidence=evidence)


def _feedback(scene: Scene) -> Iterable[Contradiction]:
    """Compare what Maestro was told with what is."""
    hosted, told = views.hosted(scene), views.told_hosted(scene)
    if hosted is None or told is None or not hosted.is_live:
        return
    for condition in told.conditions:
        live = decode.named(hosted.conditions, condition.type)
        if live and (live.status, live.reason) != (condition.status, condition.reason):
            says = f"Maestro was told {condition}, the HostedCluster says {live}: the feedback is old"
            evidence = (Evidence(where=told.where, says=str(condition)), Evidence(where=hosted.where, says=str(live)))
            yield Contradiction(code="HCP-014", says=says, between=("maestro", "hosted-cluster"), evidence=evidence)


def _layers_of_applied(scene: Scene) -> Iterable[Contradiction]:
    for bundle in views.bundles(scene):
        for outer in bundle.observed:
            inner = decode.named(outer.own, "Applied")
            if decode.is_true(outer.applied, "Applied") and inner and inner.status != "True":
                says = f"{outer.title} is applied by Maestro's agent, but what is inside is not: {inner}"
                yield Contradiction(code="HCP-015", says=says, between=("maestro", "works"))


def _deleted_and_present(scene: Scene) -> Iterable[Contradiction]:
    works = {f"ManifestWork {reading.namespace(each.value)}/{reading.name(each.value)}": each for each in _works(scene)}
    for bundle in views.bundles(scene):
        work = works.get(bundle.title)
        if bundle.deleted and work and not reading.is_going(work.value):
            says = f"bundle {bundle.id} is deleted, {bundle.title} is on the cluster and nobody deletes it"
            yield Contradiction(code="HCP-016", says=says, between=("maestro", "agent"))


def _orphans(scene: Scene) -> Iterable[Contradiction]:
    bundles = views.bundles(scene)
    if scene.outcome(Topic.BUNDLE) is Outcome.ABSENT and _works(scene):
        names = ", ".join(reading.name(each.value) for each in _works(scene)[:3])
        says = f"ManifestWorks are on the cluster ({names}), Maestro has no bundle of them: nobody will remove them"
        yield Contradiction(code="HCP-017", says=says, between=("maestro", "works"))
    if scene.outcome(Topic.CS_CLUSTER) is Outcome.ABSENT and bundles:
        left = ", ".join(each.title for each in bundles[:3])
        says = f"Clusters Service does not know the cluster, Maestro has {len(bundles)} bundles of it ({left})"
        yield Contradiction(code="HCP-018", says=says, between=("clusters-service", "maestro"))


def _consumers(scene: Scene) -> Iterable[Contradiction]:
    shard = next(iter(scene.documents(Topic.SHARD)), None)
    wanted = reading.text(shard.value, "maestro_config", "consumer_name") if shard else ""
    others = sorted({each.consumer for each in views.bundles(scene) if each.consumer} - {wanted})
    if wanted and others:
        says = f"the shard's consumer is {wanted}, bundles are sent to {', '.join(others)}"
        yield Contradiction(code="HCP-019", says=says, between=("shard", "maestro"))
    management = identity.management_cluster(shard.value) if shard else None
    if management and management.disagreement:
        says = f"the shard names several stamps: {management.disagreement}"
        yield Contradiction(code="HCP-020", says=says, between=("shard",))


def _endpoint(scene: Scene) -> Iterable[Contradiction]:
    arm = next(iter(scene.documents(Topic.ARM_CLUSTER)), None)
    hosted = next(iter(scene.documents(Topic.HOSTED_CLUSTER)), None)
    if arm is None or hosted is None:
        return
    host = reading.text(hosted.value, "status", "controlPlaneEndpoint", "host")
    if host and not reading.text(arm.value, "properties", "api", "url"):
        says = f"the HostedCluster serves at {host}, ARM's api.url is empty: this alone keeps ARM at Provisioning"
        yield Contradiction(code="HCP-021", says=says, between=("frontend", "hosted-cluster"))


def _documents(scene: Scene) -> Iterable[Contradiction]:
    for topic in Topic:
        for says in dict.fromkeys(each for answer in scene.about(topic) for each in answer.disagreements):
            yield Contradiction(code="HCP-022", says=says, between=(topic.place.value,))


def _works(scene: Scene) -> Sequence[Document]:
    return scene.documents(Topic.WORK)


_RULES: Sequence[Callable[[Scene], Iterable[Contradiction]]] = (
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
