"""Build the agent and run it. No logic of its own."""

import gc
import os
import random
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from prometheus_client import CollectorRegistry

from pymaestro.agent import config as hub
from pymaestro.agent import probes
from pymaestro.agent.agent import Agent, Character, Surroundings
from pymaestro.agent.counted import CountedMedium
from pymaestro.agent.metrics import Metrics
from pymaestro.agent.reconcile import Rhythm
from pymaestro.agent.settings import AgentSettings
from pymaestro.aio import clock as clocks
from pymaestro.journal import emit
from pymaestro.journal.fields import Broker, Key
from pymaestro.kube import config as kube_config
from pymaestro.kube import leases
from pymaestro.kube.address import ClusterAddress
from pymaestro.kube.client import ClientSettings, KubeClient
from pymaestro.transport import base, mqtt_config
from pymaestro.transport.grpc_agent import GrpcMedium
from pymaestro.transport.mqtt_agent import MqttMedium

_LEASE = "maestro-agent-lock"


async def run(settings: AgentSettings) -> None:
    """Work until cancelled."""
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
    medium = _medium(settings, journal=journal)
    address = kube_config.locate(str(settings.cluster.kubeconfig or ""), environ=os.environ, home=Path.home())
    limits = ClientSettings(qps=settings.cluster.qps, burst=settings.cluster.burst)
    client = await stack.enter_async_context(KubeClient(address, settings=limits, clock=clock))
    metrics = Metrics(CollectorRegistry())
    agent = Agent(
        Surroundings(
            client=client,
            medium=CountedMedium(medium, metrics),
            journal=journal,
            jitter=random.random,
            clock=clock,
            new_id=clocks.new_id,
        ),
        _character(settings),
    )
    where = await _serve_probes(settings, agent, metrics=metrics, address=address, journal=journal, stack=stack)
    gc.freeze()
    journal.info("starting the agent", {Key.CONSUMER_NAME: settings.hub.consumer_name, Key.BIND_ADDRESS: where})
    if settings.cluster.disable_leader_election:
        await agent.run()
        return
    candidate = leases.Candidate(
        client,
        leases.Terms(namespace=_namespace(settings), name=_LEASE, identity=f"{socket.gethostname()}_{clocks.new_id()}"),
        clock=clock,
        jitter=random.random,
        on_trouble=lambda error: journal.warning("the lease could not be read or written", err=error),
    )
    await leases.lead(candidate, agent.run)


def _medium(settings: AgentSettings, *, journal: emit.Journal) -> base.Medium:
    wanted = settings.hub
    if wanted.driver == "mqtt" and wanted.config_file is not None:
        broker = mqtt_config.read(wanted.config_file, flag="--workload-source-config")
        _tell(broker.notes, journal=journal)

        def on_problem(text: str) -> None:
            journal.warning(Broker.INVALID_EVENT, {Key.REASON: text})

        return MqttMedium(
            broker.endpoint, consumer=wanted.consumer_name, client_id=wanted.client_id, on_problem=on_problem
        )
    way = hub.locate(wanted)
    _tell(way.notes, journal=journal)
    return GrpcMedium(way.endpoint, consumer=wanted.consumer_name)


def _tell(notes: Iterable[str], *, journal: emit.Journal) -> None:
    for note in notes:
        journal.warning(note)


async def _serve_probes(
    settings: AgentSettings,
    agent: Agent,
    *,
    metrics: Metrics,
    address: ClusterAddress,
    journal: emit.Journal,
    stack: AsyncExitStack,
) -> str:
    listen = settings.process.listen
    gate = None
    if listen is not None and not listen.is_loopback:
        gate = probes.Gate(await stack.enter_async_context(probes.reviewing(address)))

    def missing() -> list[str]:
        return [] if agent.is_ready else ["the connection to the server and the list of AppliedManifestWorks"]

    app = probes.create_app(missing=missing, metrics=metrics, gate=gate)

    def on_problem(text: str) -> None:
        journal.warning("a security file was not taken", {Key.REASON: text})

    return await stack.enter_async_context(probes.serving(listen, app, now=clocks.Clock().now(), on_problem=on_problem))


def _character(settings: AgentSettings) -> Character:
    works = settings.work
    return Character(
        consumer=settings.hub.consumer_name,
        client_id=settings.hub.client_id,
        workers=works.workers,
        install_crds=settings.cluster.install_crds,
        rhythm=Rhythm(
            resync=works.resync_interval,
            poll=works.status_sync_interval,
            eviction_grace=works.eviction_grace_period,
            json_raw_max_bytes=works.max_json_raw_length,
        ),
    )


def _namespace(settings: AgentSettings) -> str:
    if settings.cluster.namespace:
        return settings.cluster.namespace
    mounted = kube_config.SERVICE_ACCOUNT / "namespace"
    return mounted.read_text().strip() if mounted.is_file() else "default"
