"""Run adapters in tests: in this process on a fleet, or as the command a Job runs."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from maestropy.adapter import Adapter, event
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.runner import EventTimeouts, handle
from maestropy.adapter.tooling import loading
from maestropy.adapter.transports import hyperfleet_api
from maestropy.adapter.transports.maestro import MaestroTransport
from maestropy.adapter.transports.performer import LivePerformer
from maestropy.adapter.transports.resource_api import ConfiguredResourceApi
from maestropy.sdk import targeting
from maestropy.sdk.client import AsyncMaestro
from maestropy.testing import FakeHyperFleet, RunningFleet

EXAMPLES = Path(__file__).parents[2] / "examples"
GROUP = "hypershift.openshift.io/v1beta1"


def example(name: str) -> Adapter:
    return loading.load(str(EXAMPLES / f"{name}.py"))


def handled(
    adapter: Adapter,
    event_document: dict[str, Any],
    *,
    fleet: RunningFleet,
    api: FakeHyperFleet,
    timeouts: EventTimeouts | None = None,
    consumer: str = "cluster1",
) -> EventOutcome:
    async def scenario() -> EventOutcome:
        client = AsyncMaestro(environ={}, api_url=fleet.api_url, grpc_url=fleet.grpc_url, source=adapter.name)
        async with client, hyperfleet_api.HyperFleetClient(hyperfleet_api.ApiSettings(url=api.url)) as hyperfleet:
            performer = LivePerformer(
                transport=MaestroTransport(client),
                resource_api=ConfiguredResourceApi(api=hyperfleet),
                target=targeting.static(consumer),
            )
            parsed = event.parse(json.dumps(event_document))
            return await handle(
                adapter, parsed, performer=performer, timeouts=timeouts or EventTimeouts(settle_seconds=10)
            )

    return asyncio.run(scenario())


def command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "maestropy.cli.main", "adapter", *arguments],
        env={**_clean(), **environ},
        capture_output=True,
        text=True,
        timeout=600,
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


def _clean() -> dict[str, str]:
    ours = ("MAESTRO_", "HYPERFLEET_", "MANAGEMENT_", "RESULTS_", "EVENT", "CLUSTER_", "GENERATION", "RESOURCE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}
