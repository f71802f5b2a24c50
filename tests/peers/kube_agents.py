"""Starts real agents on a real cluster: the Go Maestro's and ours, as processes of their own."""

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kube_cluster import KubeCluster
from peer_build import Programs
from peer_processes import free_ports, running, tail, wait_for
from peer_servers import PYTHON_CLI, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAgent:
    """An agent we started."""

    pid: int
    log: Path


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
    with running(command, log=log) as process:

        def subscribed() -> bool:
            assert process.poll() is None, f"the Go agent ended:\n{tail(log)}"
            return '"subscribed to grpc server"' in log.read_text()

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
            return f'"subscribed to {driver}' in log.read_text()[said:]

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
