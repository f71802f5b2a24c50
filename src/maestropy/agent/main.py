"""Build the agent from its settings and run it. No logic of its own."""

import functools
import gc
import os
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from prometheus_client import CollectorRegistry

from maestropy.agent.controllers.reconcile_context import ReconcileIntervals
from maestropy.agent.runtime import health, leadership
from maestropy.agent.runtime.wiring import Agent, AgentConfig, AgentDependencies
from maestropy.agent.settings import AgentSettings, ListenAddress
from maestropy.agent.telemetry.metrics import AgentMetrics
from maestropy.agent.telemetry.transport_metrics import CountedTransport
from maestropy.aio import backoff
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.journal.fields import AgentPhrase, BrokerPhrase, LogKey
from maestropy.kube import leases
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as kube_config
from maestropy.kube.config.address import ClusterAddress
from maestropy.transport import port
from maestropy.transport.grpc import config as grpc_config
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.transport.pubsub import config as pubsub_config


async def run(settings: AgentSettings) -> None:
    """Run the agent until cancelled."""
    clock = clocks.Clock()
    journal = emit.Journal(
        emit.stderr(),
        clock=clock.epoch,
        verbosity=settings.log.verbosity,
        format="json" if settings.log.format == "json" else "text",
    )
    try:
        async with AsyncExitStack() as stack:
            await _run(settings, journal=journal, clock=clock, stack=stack)
    finally:
        journal.flush()


async def _run(settings: AgentSettings, *, journal: emit.Journal, clock: clocks.Clock, stack: AsyncExitStack) -> None:
    transport = _transport(settings, journal=journal)
    address = kube_config.locate(str(settings.cluster.kubeconfig or ""), environ=os.environ, home=Path.home())
    limits = ClientSettings(qps=settings.cluster.qps, burst=settings.cluster.burst)
    metrics = AgentMetrics(CollectorRegistry())
    client = await stack.enter_async_context(
        KubeClient(address, settings=limits, clock=clock, on_response=metrics.request_answered)
    )
    agent = Agent(
        AgentDependencies(
            client=client,
            transport=CountedTransport(transport, metrics),
            journal=journal,
            jitter=backoff.jitter,
            clock=clock,
            new_id=clocks.new_id,
            meter=metrics.queue,
            on_budget_exceeded=metrics.budget_exceeded,
            on_held=metrics.works_held,
            on_status_resynced=functools.partial(metrics.status_resynced, settings.hub.consumer_name),
        ),
        _agent_config(settings),
    )
    identity = f"{socket.gethostname()}_{clocks.new_id()}"
    election = leadership.election(settings, address, identity=identity)
    _log_notes(election.notes, journal=journal)
    candidate = None
    if election.terms is not None:
        candidate = leases.LeaderElector(
            client,
            election.terms,
            clock=clock,
            jitter=backoff.jitter,
            on_error=lambda error: journal.warning(AgentPhrase.LEASE_FAILED, err=error),
        )
    app = health.create_app(
        readiness=lambda: _readiness(agent, candidate),
        metrics=metrics,
        metrics_access=await _metrics_access(settings.process.listen, address, stack=stack),
    )
    address_text = await stack.enter_async_context(
        health.serving(
            settings.process.listen,
            app,
            now=clock.now(),
            on_problem=lambda text: journal.warning(AgentPhrase.CERTIFICATE_NOT_LOADED, {LogKey.REASON: text}),
        )
    )
    gc.freeze()
    journal.info(
        AgentPhrase.STARTING, {LogKey.CONSUMER_NAME: settings.hub.consumer_name, LogKey.BIND_ADDRESS: address_text}
    )
    if candidate is None:
        await agent.run()
        return
    journal.info(AgentPhrase.WAITING_FOR_LEADERSHIP, {LogKey.LEASE: str(election.terms), LogKey.IDENTITY: identity})

    async def act() -> None:
        journal.info(AgentPhrase.LEADING, {LogKey.IDENTITY: identity})
        await agent.run()

    await leases.run_while_leading(candidate, act)


def _transport(settings: AgentSettings, *, journal: emit.Journal) -> port.Transport:
    hub, flag = settings.hub, "--workload-source-config"

    def on_problem(text: str) -> None:
        journal.warning(BrokerPhrase.INVALID_EVENT, {LogKey.REASON: text})

    if hub.driver == "mqtt" and hub.config_file is not None:
        broker = mqtt_config.read(hub.config_file, flag=flag)
        _log_notes(broker.notes, journal=journal)
        return MqttTransport(
            broker.endpoint, consumer=hub.consumer_name, client_id=hub.client_id, on_problem=on_problem
        )
    if hub.driver == "pubsub" and hub.config_file is not None:
        pubsub = pubsub_config.read(hub.config_file, flag=flag, role="agent", environ=os.environ)
        _log_notes(pubsub.notes, journal=journal)
        # Google's libraries are in an extra of their own and take long to import.
        from maestropy.transport.pubsub.agent import PubsubTransport  # noqa: PLC0415  the reason is the line above

        return PubsubTransport(
            pubsub.endpoint, consumer=hub.consumer_name, client_id=hub.client_id, on_problem=on_problem
        )
    if hub.config_file is not None:
        way = grpc_config.read(hub.config_file, flag=flag)
    else:
        way = grpc_config.plain(hub.grpc_url or "", flag="--grpc-url")
    _log_notes(way.notes, journal=journal)
    return GrpcTransport(way.endpoint, consumer=hub.consumer_name)


def _log_notes(notes: Iterable[str], *, journal: emit.Journal) -> None:
    for note in notes:
        journal.warning(note)


async def _metrics_access(
    listen: ListenAddress | None, address: ClusterAddress, *, stack: AsyncExitStack
) -> health.MetricsAccess | None:
    if listen is None or listen.is_loopback:
        return None
    return health.MetricsAccess(await stack.enter_async_context(health.reviewing(address)))


def _readiness(agent: Agent, candidate: leases.LeaderElector | None) -> health.AgentReadiness:
    if candidate is not None and not candidate.is_leading:
        leader = f", which {candidate.leader} has" if candidate.leader else ""
        return health.AgentReadiness(note=f"waiting for leadership{leader}")
    if agent.is_ready:
        # Ready also while works are held: a restart would not end the hold.
        return health.AgentReadiness(note=agent.readiness_note())
    reason = agent.connection.problem or agent.connection.last_error
    return health.AgentReadiness(
        missing=(f"the connection to the server and the list of AppliedManifestWorks{f': {reason}' if reason else ''}",)
    )


def _agent_config(settings: AgentSettings) -> AgentConfig:
    works = settings.work
    return AgentConfig(
        consumer=settings.hub.consumer_name,
        client_id=settings.hub.client_id,
        workers=works.workers,
        install_crds=settings.cluster.install_crds,
        orphan_limit_percent=works.orphan_limit_percent,
        intervals=ReconcileIntervals(
            resync=works.resync_interval,
            poll=works.status_sync_interval,
            eviction_grace=works.eviction_grace_period,
            json_raw_max_bytes=works.max_json_raw_length,
        ),
    )
