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
    folder: Path,
    shown_logs: list[Path],
    recorded: Callable[[matrix_report.Row], None],
) -> None:
    number = next(NUMBERS)
    logs = list(shown_logs)
    with ground.cluster.client() as api:
        stage = Stage(
            ground=ground,
            players=players,
            database=postgres.create(f"matrix{number}"),
            consumer=f"matrix{number}",
            namespace=namespace,
            folder=folder,
            api=api,
            on_log=lambda log: None if log in shown_logs else shown_logs.append(log),
        )
        with staged(stage):
            recorded(matrix_report.play(stage, STEPS))
    # Left in place by a failure, so that they are shown with it.
    shown_logs[:] = logs
