"""Suggest next commands with the identifiers filled in. Pure.

No command changes anything. What would change something is written as a sentence, for a person to decide.
"""

import shlex
from collections.abc import Iterable

from maestropy.trace.hcp import identity
from maestropy.trace.hcp.documents.decode import Bundle
from maestropy.trace.hcp.hops import control_plane, views
from maestropy.trace.hcp.model import HopReport, WalkContext
from maestropy.trace.hcp.query import System, Topic

_SERVICES = {
    System.CLUSTERS_SERVICE: "port-forward -n clusters-service svc/clusters-service 8001:8000",
    System.FRONTEND: "port-forward -n aro-hcp svc/aro-hcp-frontend 8443:8443",
    System.MAESTRO: "port-forward -n maestro svc/maestro 8002:8000",
}
_LOGS = "maestro-logs"


def commands(context: WalkContext, blocking_hop: HopReport | None) -> tuple[str, ...]:
    """Return the next commands, the most telling first."""
    hop = blocking_hop.name if blocking_hop else ""
    all_commands = [*_about_hop(context, hop), *_about_bundle(context, blocking_hop), *_missing(context, hop)]
    return tuple(dict.fromkeys(all_commands))


def _about_hop(context: WalkContext, hop: str) -> Iterable[str]:
    known, kubectl = context.known, _kubectl(context)
    if hop in {"hosted-cluster", "control-plane"} and known.control_plane:
        for pod in control_plane.unready_pods(context, condition=_first_condition(context))[:2]:
            yield f"{kubectl} -n {known.control_plane} describe pod {pod.name}"
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
        service = _service_kubectl(context)
        yield f"{service} -n clusters-service logs deployment/clusters-service --since=1h | grep {known.cid}"


def _first_condition(context: WalkContext) -> str:
    hosted = views.hosted(context)
    bad = [condition.type for condition in hosted.conditions if condition.status != "True"] if hosted else []
    return "EtcdAvailable" if "EtcdAvailable" in bad else next(iter(bad), "")


def _about_bundle(context: WalkContext, blocking_hop: HopReport | None) -> Iterable[str]:
    bundle = _bundle(context, blocking_hop)
    if bundle is None:
        return
    if context.flags.work:
        yield f"maestro trace work --resource-id {bundle.id} {context.flags.work}"
    request = f"maestro trace request --resource-id {bundle.id}"
    if context.flags.logs:
        yield f"maestro trace logs collect {context.flags.logs} --out {_LOGS}"
        yield f"{request} {_LOGS}"
    else:
        yield f"with the logs of server and agent in a directory LOGS: {request} LOGS"


def _bundle(context: WalkContext, blocking_hop: HopReport | None) -> Bundle | None:
    """Return the bundle to inspect: the one that the reason names, else the one that contains the HostedCluster."""
    bundles = views.bundles(context)
    named = [bundle for bundle in bundles if blocking_hop and bundle.id in blocking_hop.reason]
    holding = [bundle for bundle, _ in views.reported(context, "HostedCluster") if not bundle.read_only]
    return next(iter((*named, *holding, *bundles)), None)


def _missing(context: WalkContext, hop: str) -> Iterable[str]:
    """Return how to open what could not be seen."""
    blind = {
        query.topic.system
        for query, result in context.results.items()
        if result.outcome == "unknown" and not context.documents(query.topic)
    }
    readable = {query.topic.system for query in context.results if context.documents(query.topic)}
    for system, command in _SERVICES.items():
        if system in blind and system not in readable:
            yield f"{_service_kubectl(context)} {command}"
    if not hop and System.MANAGEMENT in blind - readable and context.known.cid:
        yield f"{_kubectl(context)} get hostedclusters -A -l {identity.ID_LABEL}={context.known.cid}"


def _service_kubectl(context: WalkContext) -> str:
    return f"kubectl {context.flags.service}".rstrip()


def _kubectl(context: WalkContext) -> str:
    if context.flags.management:
        return f"kubectl {context.flags.management}"
    shard = next(iter(context.documents(Topic.SHARD)), None)
    management = identity.management_cluster(shard.value) if shard else None
    return f"kubectl --context {shlex.quote(management.name)}" if management and management.resource_id else "kubectl"
