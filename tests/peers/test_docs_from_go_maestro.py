"""The guide from the Go Maestro to ours and back prints what it shows, over gRPC and over MQTT."""

import itertools
from pathlib import Path

import pytest

from scripts import play_page
from tests.peers import go_guide, kube_build, peer_build, peer_postgres

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]
NUMBERS = itertools.count(1)


@pytest.mark.parametrize("broker", ["grpc", "mqtt"])
def test_every_command_prints_what_the_guide_shows(
    broker: str,
    *,
    programs: peer_build.Programs,
    control_plane: kube_build.ControlPlane,
    postgres: peer_postgres.Cluster,
    tmp_path: Path,
) -> None:
    page = go_guide.PAGE.read_text(encoding="utf-8")
    assert page.count("echo unchanged\nunchanged\n") == 3
    surroundings = go_guide.reader(
        tmp_path,
        broker=broker,
        database=postgres.create(f"guide{next(NUMBERS)}"),
        programs=programs,
        control_plane=control_plane,
    )
    with surroundings as shell:
        for command, shown, printed in play_page.play(page, shell):
            same = play_page.plain(printed) == play_page.plain(shown)
            assert same, f"$ {command}\n{printed}\nthe page shows:\n{shown}\nrun tests.peers.go_guide"
