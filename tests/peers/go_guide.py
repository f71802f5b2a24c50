"""What docs/from-go-maestro.md takes for granted: the Go program, kubectl, a cluster, PostgreSQL and a message broker.

`python -m tests.peers.go_guide` writes into the page what its commands print now.
"""

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from maestropy.sandbox import ports
from scripts import play_page
from tests.peers import kube_build, peer_build, peer_postgres
from tests.peers.kube_cluster import kube_cluster
from tests.peers.mosquitto import mosquitto
from tests.peers.peer_servers import database_files, rest_without_tokens

PAGE = play_page.ROOT / "docs" / "from-go-maestro.md"
PORTS = ("8000", "8080", "8083", "8090", "8091", "8443", "9000", "9080", "9083", "9090", "9091")
BROKER_PORT = "1883"


@contextlib.contextmanager
def reader(
    folder: Path,
    *,
    broker: str,
    database: peer_postgres.Database,
    programs: peer_build.Programs,
    control_plane: kube_build.ControlPlane,
) -> Iterator[play_page.Reader]:
    """Open a shell in which the commands of the page can be run."""
    home, tools, control_folder = folder / "home", folder / "tools", folder / "cluster"
    for needed in (home, tools, control_folder):
        needed.mkdir(parents=True)
    database_files(database, home)
    (tools / "kubectl").symlink_to(control_plane.kubectl)
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(kube_cluster(control_plane, folder=control_folder))
        free = dict(zip(PORTS, map(str, ports.free(len(PORTS))), strict=True))
        if broker == "mqtt":
            free[BROKER_PORT] = str(stack.enter_context(mosquitto(folder / "mosquitto")).port)
        # Older versions check tokens of REST unless they are told not to.
        program, plain = programs.newest, " ".join(rest_without_tokens(str(programs.newest)))
        wrapper = tools / "go-maestro"
        wrapper.write_text(
            f"#!/bin/sh\nexport MAESTRO_ENV=production\n"
            f'case $1 in server) shift; exec {program} server {plain} "$@";; *) exec {program} "$@";; esac\n'
        )
        wrapper.chmod(0o755)
        environ = {
            "PATH": f"{tools}:{play_page.this_installation()['PATH']}",
            "KUBECONFIG": str(cluster.kubeconfig),
            "BROKER": broker,
        }
        shell = play_page.Reader(home, environ=environ, ports=free)
        stack.callback(shell.close)
        yield shell


def main(brokers: list[str]) -> None:
    """Record the page."""
    programs, control_plane = peer_build.programs(print), kube_build.control_plane(print)
    for broker in brokers or ["grpc"]:
        with tempfile.TemporaryDirectory(prefix="go-guide-", ignore_cleanup_errors=True) as place:
            Path(place).chmod(0o755)
            with peer_postgres.cluster(Path(place)) as postgres:
                surroundings = reader(
                    Path(place) / "page",
                    broker=broker,
                    database=postgres.create("maestro"),
                    programs=programs,
                    control_plane=control_plane,
                )
                with surroundings as shell:
                    PAGE.write_text(play_page.recorded(PAGE.read_text(encoding="utf-8"), shell), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
