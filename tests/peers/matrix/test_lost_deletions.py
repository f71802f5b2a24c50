"""Deletions that meet a Go agent while it takes up the work end all the same behind our server.

The agent writes back a copy of the work that it read before the deletion came; or the deletion comes before the agent's
finalizer does, and this version of the agent then never says that it has finished. One or the other happens to about
one work in five that is created and deleted at once.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

import peer_postgres
import pytest
from combination import Combination
from e2e_works import config_map, work
from stage import Ground, Stage, staged

pytestmark = [pytest.mark.peers, pytest.mark.timeout(500)]
NUMBERS = itertools.count(1)
PAIRS = 40
PATIENCE_SECONDS = 400


@pytest.mark.parametrize("broker", ["grpc", "mqtt"])
def test_every_deletion_ends(
    broker: str,
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
) -> None:
    name = f"brief{next(NUMBERS)}"
    names = [f"{name}-{number}" for number in range(PAIRS)]
    with ground.cluster.client() as api:
        stage = Stage(
            ground=ground,
            players=Combination(client="go", server="python", agent="go", broker=broker),
            database=postgres.create(name),
            consumer=name,
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with staged(stage):
            for each in names:
                stage.client.create(stage.consumer, work(each, config_map(stage, each)))
                stage.client.delete(stage.consumer, each)
            left = list(names)

            def all_gone() -> bool:
                while left and stage.is_gone(left[-1]):
                    left.pop()
                return not left

            stage.wait(all_gone, "every deletion to end", seconds=PATIENCE_SECONDS)
