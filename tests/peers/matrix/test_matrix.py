"""Every client on every server with every agent over every broker: one scenario, twenty casts."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.peers import peer_postgres
from tests.peers.matrix import combination, matrix_report
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.matrix_steps import STEPS
from tests.peers.matrix.rig import Ground, Rig, running_rig

pytestmark = [pytest.mark.peers, pytest.mark.timeout(420)]
NUMBERS = itertools.count(1)


@pytest.mark.parametrize("players", combination.ALL, ids=str)
def test_combination(
    players: Combination,
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
    recorded: Callable[[matrix_report.Row], None],
) -> None:
    number = next(NUMBERS)
    with ground.cluster.client() as api:
        rig = Rig(
            ground=ground,
            players=players,
            database=postgres.create(f"matrix{number}"),
            consumer=f"matrix{number}",
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with running_rig(rig):
            recorded(matrix_report.play(rig, STEPS))
