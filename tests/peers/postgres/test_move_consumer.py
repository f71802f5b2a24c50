"""A consumer moves to another database by the steps of `docs/scale.md`, which are run as they are written there."""

import asyncio
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from maestropy.store.dsn import Dsn
from maestropy.store.migrations import migrate
from maestropy.wire.events import event
from tests import waiting
from tests.faults.data_safety_fleet import CONSUMER, Fleet, running_fleet
from tests.peers.postgres.postgres_servers import PostgresServer
from tests.stack import clients, harness

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[3] / "docs" / "scale.md"
WORKS = 12


@dataclass(frozen=True, kw_only=True)
class Databases:
    """What the fleet needs to know of a PostgreSQL."""

    address: Dsn


@dataclass(frozen=True, kw_only=True)
class Steps:
    """The steps of the page."""

    server: PostgresServer
    folder: Path

    def run(self, number: int, fleet: Fleet, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Run a step as an operator would."""
        block = next(block for block in blocks() if block.startswith(f"# {number}. "))
        program = self.folder / "maestro"
        program.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -m maestropy.cli.main "$@" --rest-url={fleet.server.rest}\n'
        )
        program.chmod(0o755)
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", changes.pop("before", "") + block],
            cwd=self.folder,
            env={
                **os.environ,
                "PATH": f"{self.folder}:{self.server.installed.programs}:{os.environ['PATH']}",
                "OLD": str(fleet.database("live")),
                "NEW": str(fleet.database("new_cell")),
                "CONSUMER": CONSUMER,
                "CELL": "new",
                "PGTZ": "UTC",
                "XDG_CONFIG_HOME": str(self.folder),
                **changes,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def done(self, number: int, fleet: Fleet) -> str:
        """Run a step that must succeed, and return what it printed."""
        done = self.run(number, fleet)
        assert done.returncode == 0, f"step {number}: {done.stdout}{done.stderr}"
        return done.stdout


def blocks() -> list[str]:
    return re.findall(r"```sh\n(# \d\. .*?)```", PAGE.read_text(), re.DOTALL)


async def test_consumer_moves_as_the_page_says(single: PostgresServer, tmp_path: Path) -> None:
    steps = Steps(server=single, folder=tmp_path)
    # The name of the consumer leads to one cell or the other: one address, behind which the server is another.
    async with running_fleet(Databases(address=replace(single.dsn, database="postgres")), tmp_path) as fleet:  # type: ignore[arg-type]
        await fleet.admin("CREATE DATABASE new_cell")
        await migrate.migrate(fleet.database("new_cell"))
        other = await fleet.server.running().add_consumer("other")
        await fleet.publish(0, WORKS, "old")
        await fleet.wait_for_objects(0, WORKS, "old")
        await waiting.until(lambda: has_statuses(fleet, WORKS), what="statuses")
        everything = await fleet.kube.config_maps()

        assert steps.done(0, fleet).splitlines()[1] == "0|0"
        assert steps.run(2, fleet).returncode != 0, "copied without a freeze"
        steps.done(1, fleet)
        steps.done(1, fleet)
        assert "RESOURCE_EXHAUSTED" in await refusal(fleet, CONSUMER)
        assert await refusal(fleet, "other") == "", other

        # A copy that is killed in the middle leaves nothing, and one that lacks a row is noticed.
        before = 'rows() { if [ "$1" = renditions ]; then kill -9 $$; fi; }; readonly -f rows; '
        assert steps.run(2, fleet, before=before).returncode != 0
        assert steps.run(3, fleet).returncode != 0
        steps.done(2, fleet)
        await harness.sql(fleet.database("new_cell"), "DELETE FROM resources WHERE id = 'w3'")
        assert steps.run(3, fleet).returncode != 0
        steps.done(2, fleet)
        old, new = steps.done(3, fleet).splitlines()
        assert old == new
        assert old.startswith(f"{WORKS}|")
        assert steps.run(7, fleet).returncode != 0, "removed before the decision"
        steps.done(4, fleet)
        assert steps.run(2, fleet).returncode != 0, "copied after the decision"

        await fleet.move_to("new_cell")
        await fleet.agent.kill()
        await fleet.agent.start()
        await fleet.assert_held("OtherDatabase", works=WORKS)
        assert await fleet.kube.config_maps() == everything
        # A source does not wait for the adoption.
        await fleet.publish(0, 2, "new", kind=event.SPEC_UPDATE)
        plan = await asyncio.to_thread(steps.done, 6, fleet)
        assert "whose objects would be deleted: 0\n" in plan
        await fleet.wait_until_released()
        await fleet.wait_for_objects(0, 2, "new")
        await fleet.wait_for_objects(2, WORKS, "old")
        await fleet.publish(WORKS, WORKS + 1, "created")
        await fleet.wait_for_objects(WORKS, WORKS + 1, "created")
        steps.done(7, fleet)
        steps.done(7, fleet)

        moved = await harness.sql(fleet.database("live"), "SELECT cell, state FROM maestropy_moves")
        assert [tuple(row) for row in moved] == [("new", "moved")]
        assert await count(fleet, "live", CONSUMER) == 0
        assert await count(fleet, "live", "other") == 1
        times = "SELECT id, created_at, version FROM resources WHERE id = 'w5'"
        assert (await harness.sql(fleet.database("new_cell"), times))[0]["version"] == 1

        # By mistake the name leads to the old cell again: nothing is deleted.
        everything = await fleet.kube.config_maps()
        await fleet.move_to("live")
        await waiting.until(lambda: held_as(fleet, "UnknownConsumer"), what="the hold", seconds=60)
        assert await fleet.kube.config_maps() == everything


async def held_as(fleet: Fleet, reason: str) -> bool:
    return await fleet.metric(reason) > 0


async def has_statuses(fleet: Fleet, works: int) -> bool:
    rows = await harness.sql(fleet.database("live"), "SELECT count(*) FROM resources WHERE status IS NOT NULL")
    return bool(rows[0][0] == works)


async def refusal(fleet: Fleet, consumer: str) -> str:
    source = clients.Source(address=fleet.server.sources)
    try:
        return await source.answer(source.spec(event.SPEC_CREATE, f"late-{consumer}", consumer)) or ""
    finally:
        await source.channel.close()


async def count(fleet: Fleet, database: str, consumer: str) -> int:
    rows = await harness.sql(
        fleet.database(database), "SELECT count(*) FROM resources WHERE consumer_name = $1", consumer
    )
    return int(rows[0][0])
