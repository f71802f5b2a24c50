"""Starts real agents on a real cluster: the Go Maestro's and ours, as processes of their own."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.peers.kube_cluster import KubeCluster
from tests.peers.peer_build import Programs
from tests.peers.peer_processes import free_ports, running, tail
from tests.peers.peer_servers import PYTHON_CLI, Server
from tests.waiting import wait_for

# Over Pub/Sub the Go agent does not say that it has subscribed, but that it asks the servers for what it misses.
SUBSCRIBED = {("go", "pubsub"): "spec.resync_request"}
GO_DELETION_SECONDS = 20.0
"""A Go agent that has not confirmed a deletion by then does not do so soon: it takes a second or two otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAgent:
    """An agent we started."""

    pid: int
    log: Path


class Restartable:
    """An agent that a test can start again; `start` yields its log."""

    def __init__(self, start: Callable[[], contextlib.AbstractContextManager[Path]]) -> None:
        self._start = start
        self._stack = contextlib.ExitStack()
        self.log = self._stack.enter_context(start())

    def restart(self) -> None:
        self.close()
        self.log = self._stack.enter_context(self._start())

    def close(self) -> None:
        self._stack.close()


@contextlib.contextmanager
def go_agent(
    programs: Programs, *, cluster: KubeCluster, server: Server, consumer: str, folder: Path
) -> Iterator[Path]:
    """Run the Go agent as the cluster's administrator; yields its log."""
    config = folder / "agent-grpc.yaml"
    config.write_text(json.dumps({"url": server.broker_addr}))
    (port,) = free_ports(1)
    command = [
        str(programs.maestro),
        "agent",
        "-v=4",
        f"--consumer-name={consumer}",
        f"--cloudevents-client-id={consumer}-work-agent",
        "--workload-source-driver=grpc",
        f"--workload-source-config={config}",
        f"--kubeconfig={cluster.kubeconfig}",
        "--namespace=default",
        f"--listen=127.0.0.1:{port}",
        # The shortest that leaves the poll recognisable; its real period is up to 1.9 times as long.
        "--status-sync-interval=1s",
    ]
    log = folder / "go-agent.log"
    log.touch()
    said = len(log.read_text())
    with running(command, log=log) as process:

        def subscribed() -> bool:
            assert process.poll() is None, f"the Go agent ended:\n{tail(log)}"
            return '"subscribed to grpc server"' in log.read_text()[said:]

        wait_for(subscribed, what=f"the Go agent to subscribe (see {log})", seconds=120)
        yield log


@contextlib.contextmanager
def agent_process(
    kind: str,
    programs: Programs,
    *,
    cluster: KubeCluster,
    server: Server,
    consumer: str,
    folder: Path,
    flags: Sequence[str] = (),
) -> Iterator[RunningAgent]:
    """Run an agent of either kind with its own defaults, as the cluster's administrator."""
    config = folder / f"{kind}-agent.yaml"
    config.write_text(json.dumps({"url": server.broker_addr}))
    with configured_agent(
        kind, programs.maestro, cluster=cluster, consumer=consumer, config=config, flags=flags
    ) as running_one:
        yield running_one


@contextlib.contextmanager
def configured_agent(
    kind: str,
    maestro: Path,
    *,
    cluster: KubeCluster,
    consumer: str,
    config: Path,
    driver: str = "grpc",
    flags: Sequence[str] = (),
) -> Iterator[RunningAgent]:
    """Run an agent of either kind whose way to the server a file describes; returns when it has subscribed."""
    (port,) = free_ports(1)
    command = [
        *([str(maestro)] if kind == "go" else PYTHON_CLI),
        "agent",
        "-v=2",
        f"--consumer-name={consumer}",
        f"--cloudevents-client-id={consumer}-work-agent",
        f"--workload-source-driver={driver}",
        f"--workload-source-config={config}",
        f"--kubeconfig={cluster.kubeconfig}",
        "--namespace=default",
        f"--listen=127.0.0.1:{port}",
        *flags,
    ]
    log = config.with_name(f"{kind}-agent.log")
    log.touch()
    said = len(log.read_text())
    with running(command, log=log) as process:

        def subscribed() -> bool:
            assert process.poll() is None, f"the {kind} agent ended:\n{tail(log)}"
            return SUBSCRIBED.get((kind, driver), f'"subscribed to {driver}') in log.read_text()[said:]

        wait_for(subscribed, what=f"the {kind} agent to subscribe (see {log})", seconds=120)
        yield RunningAgent(pid=process.pid, log=log)


def wait_until_silent(log: Path) -> None:
    """Wait until a Go agent has said nothing for two of its polls of a second.

    It confirms a deletion before it has deleted what it did not record yet, and loses one that meets a status on its
    way: who wants a deletion carried out asks for it in silence.
    """
    last, since = -1, time.monotonic()

    def is_silent() -> bool:
        nonlocal last, since
        sent = log.read_text().count('"Sending event"')
        if sent != last:
            last, since = sent, time.monotonic()
        return time.monotonic() - since > 4

    wait_for(is_silent, what="the Go agent to have said everything")


def wait_for_deletion(
    look: Callable[[], bool], *, what: str, restart_of_go_pair: Callable[[], None] | None, seconds: float = 60
) -> None:
    """Wait for what a deletion leads to.

    A deletion that meets a Go agent's own status update is lost, or its confirmation conflicts with that update and is
    tried again after minutes; a Go server never repeats it. Only a resync helps, which a new start of the agent asks
    for. `restart_of_go_pair` is that start, where both are Go's. Nobody else gets help: our server repeats the
    deletion, and our agent does not lose it.
    """
    if restart_of_go_pair is not None:
        deadline = time.monotonic() + GO_DELETION_SECONDS
        wait_for(lambda: look() or time.monotonic() > deadline, what=what)
        if not look():
            print(f"the Go agent does not confirm a deletion ({what}); it starts again")
            restart_of_go_pair()
    wait_for(look, what=what, seconds=seconds)
