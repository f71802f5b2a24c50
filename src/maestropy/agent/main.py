"""Build the agent from its settings and run it. No logic of its own."""

import asyncio
import functools
import gc
import os
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from prometheus_client import CollectorRegistry

from maestropy.agent.controllers.reconcile_context import ReconcileIntervals
from maestropy.agent.runtime import certificates, health, leadership
from maestropy.agent.runtime.wiring import Agent, AgentConfig, AgentDependencies
from maestropy.agent.settings import AgentSettings, ListenAddress
from maestropy.agent.telemetry.metrics import AgentMetrics, AgentState
from maestropy.agent.telemetry.transport_metrics import CountedTransport
from maestropy.agent.telemetry.work_spans import WorkSpans
from maestropy.aio import backoff, checks, tasks
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase, BrokerPhrase
from maestropy.kube import leases
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as kube_config
from maestropy.kube.config.address import ClusterAddress
from maestropy.telemetry import process, tracing
from maestropy.telemetry.span_metrics import MEASURE_EVERY_SECONDS, SpanMetrics
from maestropy.transport import port
from maestropy.transport.grpc import config as grpc_config
from maestropy.transport.grpc.agent import GrpcTransport
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.mqtt.agent import MqttTransport
from maestropy.transport.pubsub import config as pubsub_config
from maestropy.transport.tls import expiry


async def run(settings: AgentSettings) -> None:
    """Run the agent until cancelled."""
    clock = clocks.Clock()
    journal, tracer = process.open_log(
        clock=clock.epoch,
        verbosity=settings.log.verbosity,
        log_format=settings.log.format,
        service="maestro-agent",
        environ=os.environ,
    )
    try:
        async with AsyncExitStack() as stack:
            if tracer.is_on:
                stack.push_async_callback(asyncio.to_thread, tracer.close)
            await _run(settings, journal=journal, clock=clock, tracer=tracer, stack=stack)
    finally:
        journal.flush()


async def _run(
    settings: AgentSettings,
    *,
    journal: emit.Journal,
    clock: clocks.Clock,
    tracer: tracing.Tracer,
    stack: AsyncExitStack,
) -> None:
    transport = _transport(settings, journal=journal)
    address = kube_config.locate(str(settings.cluster.kubeconfig or ""), environ=os.environ, home=Path.home())
    limits = ClientSettings(qps=settings.cluster.qps, burst=settings.cluster.burst)
    registry = CollectorRegistry()
    metrics = AgentMetrics(registry)
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
            spans=WorkSpans(tracer),
            meter=metrics.queue,
            on_budget_exceeded=metrics.budget_exceeded,
            on_held=metrics.works_held,
            on_database_time=metrics.database_clock_skew,
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
    metrics.observe(lambda: _state(agent, candidate, client))
    task_owner = tasks.TaskOwner()
    stack.push_async_callback(task_owner.stop)
    watched = certificates.watched(settings, address)
    task_owner.start("certificates", _measure_certificates(watched, metrics))
    if tracer.is_on:
        measure = SpanMetrics(tracer, registry).measure
        spans = tasks.run_periodically(MEASURE_EVERY_SECONDS, measure, on_error=lambda _: None)
        task_owner.start("count spans", spans)
    app = health.create_app(
        readiness=lambda: _readiness(agent, candidate, watched, now=clock.epoch()),
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
        broker = mqtt_config.read_for_agent(hub.config_file, flag=flag, consumer=hub.consumer_name)
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


def _readiness(
    agent: Agent, candidate: leases.LeaderElector | None, watched: Iterable[expiry.WatchedCertificate], *, now: float
) -> health.AgentReadiness:
    certificate_checks = expiry.checked(watched, now=now)
    if candidate is not None and not candidate.is_leading:
        leader = f", which {candidate.leader} has" if candidate.leader else ""
        note = f"waiting for leadership{leader}"
        waiting = checks.ok("leadership", note)
        return health.AgentReadiness(note=note, dependencies=(waiting, *certificate_checks))
    dependencies = (*agent.dependencies(), *certificate_checks)
    if agent.is_ready:
        # Ready also while works are held: a restart would not end the hold.
        return health.AgentReadiness(note=agent.readiness_note(), dependencies=dependencies)
    reason = agent.connection.problem or agent.connection.last_error
    return health.AgentReadiness(
        missing=(
            f"the connection to the server and the list of AppliedManifestWorks{f': {reason}' if reason else ''}",
        ),
        dependencies=dependencies,
    )


def _state(agent: Agent, candidate: leases.LeaderElector | None, client: KubeClient) -> AgentState:
    return AgentState(
        is_connected=agent.connection.is_connected,
        is_leading=candidate is None or candidate.is_leading,
        works=len(agent.works),
        statuses_waiting=agent.connection.waiting,
        oldest_waiting_seconds=agent.connection.oldest_waiting_seconds,
        api_server_skew_seconds=client.clock_skew_seconds,
    )


async def _measure_certificates(watched: Iterable[expiry.WatchedCertificate], metrics: AgentMetrics) -> None:
    async def measure() -> None:
        expiry.measure(watched, report=metrics.certificate_expires)

    await tasks.run_periodically(expiry.MEASURE_EVERY_SECONDS, measure, on_error=lambda _: None)


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
