"""Build the agent and run it. No logic of its own."""

import functools
import gc
import os
import random
import socket
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

from prometheus_client import CollectorRegistry

from maestropy.agent import leadership, probes
from maestropy.agent.agent import Agent, Character, Surroundings
from maestropy.agent.counted import CountedMedium
from maestropy.agent.metrics import Metrics
from maestropy.agent.settings import AgentSettings, Listen
from maestropy.agent.turn import Rhythm
from maestropy.aio import clock as clocks
from maestropy.journal import emit
from maestropy.journal.fields import Broker, Key
from maestropy.kube import config as kube_config
from maestropy.kube import leases
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.transport import base, grpc_config, mqtt_config
from maestropy.transport.grpc_agent import GrpcMedium
from maestropy.transport.mqtt_agent import MqttMedium


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
    metrics = Metrics(CollectorRegistry())
    client = await stack.enter_async_context(
        KubeClient(address, settings=limits, clock=clock, on_answer=metrics.request_answered)
    )
    agent = Agent(
        Surroundings(
            client=client,
            medium=CountedMedium(medium, metrics),
            journal=journal,
            jitter=random.random,
            clock=clock,
            new_id=clocks.new_id,
            meter=metrics.queue,
            resynced=functools.partial(metrics.status_resynced, settings.hub.consumer_name),
        ),
        _character(settings),
    )
    identity = f"{socket.gethostname()}_{clocks.new_id()}"
    election = leadership.election(settings, address, identity=identity)
    _tell(election.notes, journal=journal)
    candidate = None
    if election.terms is not None:
        candidate = leases.Candidate(
            client,
            election.terms,
            clock=clock,
            jitter=random.random,
            on_trouble=lambda error: journal.warning("the lease could not be read or written", err=error),
        )
    app = probes.create_app(
        fitness=lambda: _fitness(agent, candidate),
        metrics=metrics,
        gate=await _gate(settings.process.listen, address, stack=stack),
    )
    where = await stack.enter_async_context(
        probes.serving(
            settings.process.listen,
            app,
            now=clock.now(),
            on_problem=lambda text: journal.warning("a security file was not taken", {Key.REASON: text}),
        )
    )
    gc.freeze()
    journal.info("starting the agent", {Key.CONSUMER_NAME: settings.hub.consumer_name, Key.BIND_ADDRESS: where})
    if candidate is None:
        await agent.run()
        return
    journal.info("waiting for leadership", {"lease": str(election.terms), "identity": identity})

    async def act() -> None:
        journal.info("leading", {"identity": identity})
        await agent.run()

    await leases.lead(candidate, act)


def _medium(settings: AgentSettings, *, journal: emit.Journal) -> base.Medium:
    wanted, flag = settings.hub, "--workload-source-config"
    if wanted.driver == "mqtt" and wanted.config_file is not None:
        broker = mqtt_config.read(wanted.config_file, flag=flag)
        _tell(broker.notes, journal=journal)

        def on_problem(text: str) -> None:
            journal.warning(Broker.INVALID_EVENT, {Key.REASON: text})

        return MqttMedium(
            broker.endpoint, consumer=wanted.consumer_name, client_id=wanted.client_id, on_problem=on_problem
        )
    if wanted.config_file is not None:
        way = grpc_config.read(wanted.config_file, flag=flag)
    else:
        way = grpc_config.plain(wanted.grpc_url or "", flag="--grpc-url")
    _tell(way.notes, journal=journal)
    return GrpcMedium(way.endpoint, consumer=wanted.consumer_name)


def _tell(notes: Iterable[str], *, journal: emit.Journal) -> None:
    for note in notes:
        journal.warning(note)


async def _gate(listen: Listen | None, address: ClusterAddress, *, stack: AsyncExitStack) -> probes.Gate | None:
    if listen is None or listen.is_loopback:
        return None
    return probes.Gate(await stack.enter_async_context(probes.reviewing(address)))


def _fitness(agent: Agent, candidate: leases.Candidate | None) -> probes.Fitness:
    if candidate is not None and not candidate.is_leading:
        who = f", which {candidate.leader} has" if candidate.leader else ""
        return probes.Fitness(note=f"waiting for leadership{who}")
    if agent.is_ready:
        return probes.Fitness()
    return probes.Fitness(missing=("the connection to the server and the list of AppliedManifestWorks",))


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
