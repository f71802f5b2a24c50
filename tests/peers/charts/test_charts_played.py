"""The charts on a cluster of this machine: installed for production, and exchanged with the Go Maestro's and back."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers import go_build, kube_build
from tests.peers.charts.rendering import Helm
from tests.peers.peer_processes import mortal, tail
from tests.upstream import pod_network, sources

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not below pytest's own folder: every other run that starts as root closes that to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="charts-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        yield Path(made)


def play(name: str, folder: Path) -> None:
    try:
        sources.check_machine()
    except go_build.Unavailable as reason:
        pytest.skip(str(reason))
    log = folder / "run.log"
    command = [*mortal(), *pod_network.enclosed("tests.peers.charts.play", name, str(folder))]
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, check=False)
    pods = "\n".join(f"== {path}\n{tail(path, lines=15)}" for path in sorted(folder.glob("pods/*/log.txt")))
    assert done.returncode == 0, f"{tail(log)}\n{pods}"
    assert "played to the end" in log.read_text()


def test_production_values(helm: Helm, control_plane: kube_build.ControlPlane, folder: Path) -> None:
    play("production", folder)


def test_upgrade_from_the_go_charts_and_back(helm: Helm, control_plane: kube_build.ControlPlane, folder: Path) -> None:
    try:
        sources.upstream()
    except go_build.Unavailable as reason:
        pytest.skip(f"the Go Maestro's charts come from its source: {reason}")
    play("upgrade", folder)
