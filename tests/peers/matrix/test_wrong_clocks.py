"""A Go agent whose clock was ahead of what it is now: its statuses and deletions arrive all the same.

The database holds sequence IDs of the agent's future, as after a restart with a corrected clock. Within the allowance
they count, so the next update of the agent looks old; beyond it they do not count.
"""

import asyncio
import functools
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from maestropy.journal.phrases import StatusWriterPhrase
from maestropy.wire import ordering
from tests.peers import peer_postgres
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.matrix_steps import is_reported, plain
from tests.peers.matrix.rig import Ground, Rig, running_rig

pytestmark = [pytest.mark.peers, pytest.mark.timeout(240)]
NUMBERS = itertools.count(1)
WITHIN_SECONDS = 240
DAY_SECONDS = 86_400
SET = "UPDATE resources SET status = jsonb_set(status, '{sequenceid}', to_jsonb($1::text)) WHERE status IS NOT NULL"


@pytest.mark.parametrize("broker", ["grpc", "mqtt"])
def test_statuses_and_deletions_arrive(
    broker: str,
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
) -> None:
    name = f"clock{next(NUMBERS)}"
    with ground.cluster.client() as api:
        rig = Rig(
            ground=ground,
            players=Combination(client="go", server="python", agent="go", broker=broker),
            database=postgres.create(name),
            consumer=name,
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with running_rig(rig):
            rig.client.create(rig.consumer, plain(rig, "web"))
            rig.wait(lambda: is_reported(rig.work("web"), generation=1), "the first status")
            for generation, seconds in ((2, WITHIN_SECONDS), (3, DAY_SECONDS)):
                set_sequence_ids(rig, seconds=seconds)
                rig.client.patch(rig.consumer, rig.work("web"), plain(rig, "web", value=str(generation)))
                rig.wait(functools.partial(has_status, rig, generation), f"the status of version {generation}")
            set_sequence_ids(rig, seconds=WITHIN_SECONDS)
            rig.client.delete(rig.consumer, "web")
            rig.wait_until_gone("web")
            assert rig.server is not None
            assert rig.agent is not None
            log = rig.server.log.read_text()
            assert log.count(StatusWriterPhrase.UNORDERED) >= 2, "a status and a deletion looked old"
            if broker == "grpc":
                assert "send it again with a newer sequenceid" in rig.agent.log.read_text()


def has_status(rig: Rig, generation: int) -> bool:
    return is_reported(rig.work("web"), generation=generation)


def set_sequence_ids(rig: Rig, *, seconds: int) -> None:
    """Let the stored statuses come from an agent whose clock was ahead."""
    time_ms = time.time_ns() // 10**6 + seconds * 1000
    sequence_id = str(int(ordering.Snowflake(time_ms, ordering.AGENT_NODE, 0)))

    async def update() -> None:
        connection = await asyncpg.connect(rig.database.dsn)
        try:
            await connection.execute(SET, sequence_id)
        finally:
            await connection.close()

    asyncio.run(update())
