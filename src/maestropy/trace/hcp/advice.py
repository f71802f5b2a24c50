"""What to do next: commands with the identifiers filled in. Pure.

None of them changes anything; what would change something is said as a sentence, for a person to decide.
"""

import shlex
from collections.abc import Iterable

from maestropy.trace.hcp import identity, views
from maestropy.trace.hcp.decode import Bundle
from maestropy.trace.hcp.hops import control_plane
from maestropy.trace.hcp.model import Report, Scene
from maestropy.trace.hcp.question import Place, Topic

_SERVICES = {
    Place.CLUSTERS_SERVICE: "kubectl port-forward -n clusters-service svc/clusters-service 8001:8000",
    Place.FRONTEND: "kubectl port-forward -n aro-hcp svc/aro-hcp-frontend 8443:8443",
    Place.MAESTRO: "kubectl port-forward -n maestro svc/maestro 8002:8000",
}


def commands(scene: Scene, culprit: Report | None) -> tuple[str, ...]:
    """Return the next commands, the most telling first."""
    hop = culprit.name if culprit else ""
    found = [*_about_hop(scene, hop), *_about_bundle(scene, culprit), *_missing(scene, hop)]
    return tuple(dict.fromkeys(found))


def _about_hop(scene: Scene, hop: str) -> Iterable[str]:
    known, kubectl = scene.known, _kubectl(scene)
    if hop in {"hosted-cluster", "control-plane"} and known.control_plane:
        for each in control_plane.blockers(scene, condition=_first_condition(scene))[:2]:
            yield f"{kubectl} -n {known.control_plane} describe pod {each.name}"
        yield f"{kubectl} -n {known.control_plane} get events --sort-by=.lastTimestamp"
    if hop == "hosted-cluster" and known.namespace and known.prefix:
        yield f"{kubectl} -n {known.namespace} get hostedcluster {known.prefix} -o yaml"
    if hop == "node-pools" and known.namespace:
        yield f"{kubectl} -n {known.namespace} get nodepools,machines,azuremachines"
    if hop == "managed-cluster" and known.cid:
        yield f"{kubectl} get managedcluster {known.cid} -o yaml"
        yield f"{kubectl} -n klusterlet-{known.cid} get pods"
    if hop in {"works", "agent"} and known.cid:
        yield f"{kubectl} -n local-cluster get manifestwork -l {identity.ID_LABEL}={known.cid} -o yaml"
    if hop in {"maestro", "agent"}:
        yield f"{kubectl} -n maestro logs deployment/maestro-agent -c maestro-agent --since=1h"
    if hop == "clusters-service" and known.cid:
        yield "kubectl -n clusters-service logs deployment/clusters-service --since=1h | grep " + known.cid


def _first_condition(scene: Scene) -> str:
    found = views.hosted(scene)
    bad = [each.type for each in found.conditions if each.status != "True"] if found else []
    return "EtcdAvailable" if "EtcdAvailable" in bad else next(iter(bad), "")


def _about_bundle(scene: Scene, culprit: Report | None) -> Iterable[str]:
    bundle = _bundle(scene, culprit)
    if bundle:
        yield f"maestro trace work --resource-id {bundle.id}"
        yield f"maestro trace request --resource-id {bundle.id} LOGS"


def _bundle(scene: Scene, culprit: Report | None) -> Bundle | None:
    """Return the bundle to look at: the one the reason names, else the one that holds the HostedCluster."""
    found = views.bundles(scene)
    named = [each for each in found if culprit and each.id in culprit.reason]
    holding = [bundle for bundle, _ in views.reported(scene, "HostedCluster") if not bundle.read_only]
    return next(iter((*named, *holding, *found)), None)


def _missing(scene: Scene, hop: str) -> Iterable[str]:
    """Return how to open what could not be seen."""
    blind = {
        question.topic.place
        for question, answer in scene.answers.items()
        if answer.outcome == "unknown" and not scene.documents(question.topic)
    }
    seen = {question.topic.place for question in scene.answers if scene.documents(question.topic)}
    for place, command in _SERVICES.items():
        if place in blind and place not in seen:
            yield command
    if not hop and Place.MANAGEMENT in blind - seen and scene.known.cid:
        yield f"{_kubectl(scene)} get hostedclusters -A -l {identity.ID_LABEL}={scene.known.cid}"


def _kubectl(scene: Scene) -> str:
    shard = next(iter(scene.documents(Topic.SHARD)), None)
    management = identity.management_cluster(shard.value) if shard else None
    return f"kubectl --context {shlex.quote(management.name)}" if management and management.resource_id else "kubectl"
