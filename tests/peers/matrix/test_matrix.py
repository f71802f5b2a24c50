"""Every client on every server with every agent over every broker: one scenario, sixteen casts."""

import itertools
from collections.abc import Callable
from pathlib import Path

import combination
import matrix_report
import peer_postgres
import pytest
from combination import Combination
from matrix_steps import STEPS
from stage import Ground, Stage, staged

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
        stage = Stage(
            ground=ground,
            players=players,
            database=postgres.create(f"matrix{number}"),
            consumer=f"matrix{number}",
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with staged(stage):
            recorded(matrix_report.play(stage, STEPS))
