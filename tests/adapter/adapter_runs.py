"""Run adapters in tests: in this process on a fleet, or as the command a Job runs."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maestropy.adapter import Adapter, event, hyperfleet, loading
from maestropy.adapter.books import Books
from maestropy.adapter.perform import World
from maestropy.adapter.perform_maestro import MaestroTransport
from maestropy.adapter.pipeline import Outcome
from maestropy.adapter.running import Patience, deal
from maestropy.sdk import targeting
from maestropy.sdk.client import AsyncMaestro
from maestropy.testing import FakeHyperFleet, RunningFleet

EXAMPLES = Path(__file__).parents[2] / "examples"
GROUP = "hypershift.openshift.io/v1beta1"


def example(name: str) -> Adapter:
    return loading.load(str(EXAMPLES / f"{name}.py"))


def dealt_with(
    adapter: Adapter,
    told: dict[str, Any],
    *,
    fleet: RunningFleet,
    api: FakeHyperFleet,
    patience: Patience | None = None,
    consumer: str = "cluster1",
) -> Outcome:
    async def scenario() -> Outcome:
        client = AsyncMaestro(environ={}, api_url=fleet.api_url, grpc_url=fleet.grpc_url, source=adapter.name)
        async with client, hyperfleet.HyperFleet(hyperfleet.ApiSettings(url=api.url)) as books:
            world = World(
                transport=MaestroTransport(client),
                catalogue=Books(api=books),
                target=targeting.static(consumer),
            )
            found = event.parse(json.dumps(told))
            return await deal(adapter, found, world=world, patience=patience or Patience(settle_seconds=10))

    return asyncio.run(scenario())


def command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "maestropy.cli.main", "adapter", *arguments],
        env={**_clean(), **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def started(*arguments: str, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "maestropy.cli.main", "adapter", *arguments],
        env={**_clean(), **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until(is_so: Callable[[], bool], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not come to be in time"
        time.sleep(0.02)


def _clean() -> dict[str, str]:
    ours = ("MAESTRO_", "HYPERFLEET_", "MANAGEMENT_", "RESULTS_", "EVENT", "CLUSTER_", "GENERATION", "RESOURCE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
