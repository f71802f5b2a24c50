"""Check before a roll-out whether an agent with these settings would work: `maestro check agent`. Changes nothing.

Every check has a time limit, and says what it could not see. Access reviews are requests that store nothing. To see
whether the server accepts this agent, and knows its consumer, a marked gRPC subscription is asked for: a server of this
project sends nothing over it and records nothing. Another server opens it for a moment; what it sends over it is sent
again to the agent that connects later.
"""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from maestropy.agent.runtime import leadership
from maestropy.agent.settings import AgentSettings, HubSettings
from maestropy.agent.state.applied_manifest_works import APPLIED_MANIFEST_WORKS
from maestropy.aio import checks
from maestropy.aio import clock as clocks
from maestropy.flags import SettingsError
from maestropy.kube import errors, request
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as kube_config
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.rate_limit import RetryLimits
from maestropy.kube.request import ListPage, ResourceType
from maestropy.transport.grpc import config as grpc_config
from maestropy.transport.grpc import inspection as grpc_inspection
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt import inspection as mqtt_inspection
from maestropy.wire import json_types

SECONDS: Final = 10.0
"""The time limit of each group of checks."""
MAX_SKEW_SECONDS: Final = 5.0

_FLAG: Final = "--workload-source-config"
_REVIEWS: Final = ResourceType(
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    kind="SelfSubjectAccessReview",
    namespaced=False,
)
_WORK_GROUP: Final = "work.open-cluster-management.io"
_EVERY_VERB: Final = ("get", "list", "watch", "create", "update", "patch", "delete")


async def run(settings: AgentSettings, *, clock: clocks.Clock) -> list[checks.Check]:
    """Check the cluster and the connection to the server at the same time, and return the results in this order."""
    groups = await asyncio.gather(
        checks.bounded(
            "cluster",
            lambda: _cluster(settings, clock=clock),
            seconds=SECONDS,
            remedy="check --kubeconfig, or the network of the pod",
        ),
        checks.bounded("server", lambda: _server(settings, clock=clock), seconds=SECONDS, remedy="check the address"),
    )
    return [check for group in groups for check in group]


async def _cluster(settings: AgentSettings, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    try:
        address = kube_config.locate(str(settings.cluster.kubeconfig or ""), environ=os.environ, home=Path.home())
    except errors.BadConfig as error:
        return [checks.failed("cluster", str(error))]
    limits = ClientSettings(timeout=SECONDS / 2, connect_timeout=SECONDS / 2, retries=RetryLimits(attempts=1))
    try:
        async with KubeClient(address, settings=limits, clock=clock) as client:
            denied = await _denied(client, _wanted(settings, address))
            return [
                checks.ok("cluster", f"{address.server} answers"),
                _permissions(denied),
                await _definition(client, may_install=settings.cluster.install_crds),
                _clock(client),
                checks.not_seen("cluster-permissions of works", "they depend on the kinds in your works"),
            ]
    except errors.KubeError as error:
        return [checks.failed("cluster", str(error), remedy="check --kubeconfig, or the service account of the pod")]


Permission = tuple[str, str, str, str]
"""Verb, group, resource with subresource, and namespace."""


def _wanted(settings: AgentSettings, address: ClusterAddress) -> list[Permission]:
    wanted: list[Permission] = [(verb, _WORK_GROUP, "appliedmanifestworks", "") for verb in _EVERY_VERB]
    wanted.append(("patch", _WORK_GROUP, "appliedmanifestworks/status", ""))
    wanted.append(("create", "authorization.k8s.io", "subjectaccessreviews", ""))
    if settings.process.listen is not None and not settings.process.listen.is_loopback:
        wanted.append(("create", "authentication.k8s.io", "tokenreviews", ""))
    terms = leadership.election(settings, address, identity="check").terms
    if terms is not None:
        wanted += [(verb, "coordination.k8s.io", "leases", terms.namespace) for verb in ("get", "create", "update")]
    return wanted


async def _denied(client: KubeClient, wanted: Sequence[Permission]) -> list[Permission]:
    allowed = await asyncio.gather(*(_may(client, permission) for permission in wanted))
    return [permission for permission, is_allowed in zip(wanted, allowed, strict=True) if not is_allowed]


async def _may(client: KubeClient, permission: Permission) -> bool:
    verb, group, resource, namespace = permission
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace}
    spec = {"resourceAttributes": {name: value for name, value in attributes.items() if value}}
    manifest = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind, "spec": spec}
    answer = await client.create(_REVIEWS, manifest)
    return json_types.boolean_at(json_types.object_at(answer, "status"), "allowed")


def _permissions(denied: Sequence[Permission]) -> checks.Check:
    if not denied:
        return checks.ok("cluster-permissions", "all that the agent itself needs")
    by_resource: dict[str, list[str]] = {}
    for verb, group, resource, namespace in denied:
        place = f" in {namespace}" if namespace else ""
        by_resource.setdefault(f"{resource}.{group}{place}", []).append(verb)
    listed = "; ".join(f"{', '.join(verbs)} {resource}" for resource, verbs in by_resource.items())
    remedy = "bind the roles maestro-agent:agent of charts/maestro-agent to the account of the agent"
    return checks.failed("cluster-permissions", f"the account may not {listed}", remedy=remedy)


async def _definition(client: KubeClient, *, may_install: bool) -> checks.Check:
    name = "cluster-definition"
    try:
        await client.send(request.list_objects(APPLIED_MANIFEST_WORKS, page=ListPage(limit=1)))
    except errors.NotFound:
        if may_install:
            return checks.ok(name, "AppliedManifestWork is not defined; the agent installs it (--install-crds)")
        remedy = "apply charts/maestro-agent/files/appliedmanifestworks.yaml, or start the agent with --install-crds"
        return checks.failed(name, "AppliedManifestWork is not defined", remedy=remedy)
    except errors.Forbidden:
        return checks.not_seen(name, "this account may not list AppliedManifestWorks")
    return checks.ok(name, "AppliedManifestWork is defined")


def _clock(client: KubeClient) -> checks.Check:
    ahead = client.clock_skew_seconds
    if ahead is None:
        return checks.not_seen("clock", "the API server says no time")
    detail = f"this host is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the API server"
    if abs(ahead) <= MAX_SKEW_SECONDS:
        return checks.ok("clock", detail)
    return checks.warning("clock", detail, remedy="synchronise the clock of this host (NTP)")


async def _server(settings: AgentSettings, *, clock: clocks.Clock) -> Sequence[checks.Check]:
    hub = settings.hub
    if hub.driver == "pubsub":
        reason = "Pub/Sub: a subscription of this check would take messages from a running agent"
        return [checks.not_seen("server", reason)]
    if hub.driver == "mqtt" and hub.config_file is not None:
        return await _mqtt_broker(hub.config_file, hub, now=clock.now())
    try:
        if hub.config_file is not None:
            grpc_endpoint = grpc_config.read(hub.config_file, flag=_FLAG).endpoint
        else:
            grpc_endpoint = grpc_config.plain(hub.grpc_url or "", flag="--grpc-url").endpoint
    except SettingsError as error:
        return [checks.failed("server-config", str(error))]
    return await grpc_inspection.inspect(
        grpc_endpoint, consumer=hub.consumer_name, flag=_FLAG, now=clock.now(), seconds=SECONDS / 2
    )


async def _mqtt_broker(config_file: Path, hub: HubSettings, *, now: datetime) -> Sequence[checks.Check]:
    try:
        broker = mqtt_config.read_for_agent(config_file, flag=_FLAG, consumer=hub.consumer_name)
    except SettingsError as error:
        return [checks.failed("message-broker-config", str(error))]
    found = await mqtt_inspection.inspect(broker.endpoint, client_id=hub.client_id, flag=_FLAG, now=now)
    return [*(checks.warning("message-broker-config", note) for note in broker.notes), *found]
