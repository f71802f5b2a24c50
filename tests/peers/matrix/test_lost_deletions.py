"""Deletions that meet a Go agent while it takes up the work end all the same behind our server.

The agent writes back a copy of the work that it read before the deletion came; or the deletion comes before the agent's
finalizer does, and this version of the agent then never says that it has finished. One or the other happens to about
one work in five that is created and deleted at once.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.peers import peer_postgres
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.e2e_works import config_map, work
from tests.peers.matrix.rig import Ground, Rig, running_rig
from tests.waiting import wait_for

pytestmark = [pytest.mark.peers, pytest.mark.timeout(500)]
PAIRS = 40
PATIENCE_SECONDS = 400


def test_every_deletion_ends(
    ground: Ground, postgres: peer_postgres.Cluster, namespace: str, tmp_path: Path, show: Callable[[Path], None]
) -> None:
    """Both brokers at the same time: most of the test is waiting."""
    with ground.cluster.client() as api, ExitStack() as stack:
        pending: list[tuple[Rig, str]] = []
        for broker in ("grpc", "mqtt"):
            folder = tmp_path / broker
            folder.mkdir()
            rig = Rig(
                ground=ground,
                players=Combination(client="go", server="python", agent="go", broker=broker),
                database=postgres.create(f"brief_{broker}"),
                consumer=f"brief-{broker}",
                namespace=namespace,
                folder=folder,
                api=api,
                on_log=show,
                server_flags=("--delete-event-republish-batch-size=100",),
            )
            stack.enter_context(running_rig(rig))
            pending += [(rig, f"{rig.consumer}-{number}") for number in range(PAIRS)]
        for rig, name in pending:
            rig.client.create(rig.consumer, work(name, config_map(rig, name)))
            rig.client.delete(rig.consumer, name)

        def all_gone() -> bool:
            while pending and pending[-1][0].is_gone(pending[-1][1]):
                pending.pop()
            return not pending

        wait_for(all_gone, what="the end of every deletion", seconds=PATIENCE_SECONDS)
