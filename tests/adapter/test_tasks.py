"""A converted HyperFleet task creates, updates and deletes its objects in order, through Maestro and without it."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from maestropy.adapter import Adapter, event
from maestropy.adapter.decide.pipeline import EventOutcome
from maestropy.adapter.runner import EventTimeouts, handle
from maestropy.adapter.tooling import loading
from maestropy.adapter.transports import hyperfleet_api, kubernetes
from maestropy.adapter.transports.performer import LivePerformer
from maestropy.adapter.transports.resource_api import ConfiguredResourceApi
from maestropy.sdk import targeting
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests.adapter.runs import command, handled
from tests.unit.adapter.tasks.task_documents import task

TIMEOUTS = EventTimeouts(settle_seconds=20)


@pytest.fixture
def converted(tmp_path: Path) -> Adapter:
    """The two-resource task for the local transport, converted by the command."""
    document = task()
    for resource in document["resources"]:
        del resource["transport"]
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    name = tmp_path.name.replace("_", "-").lower()[:40].strip("-")
    result = command("convert", str(path), "--name", name, "--output", str(tmp_path / "adapter.py"))
    assert (result.returncode, result.stderr) == (0, "")
    return loading.load(str(tmp_path))


def cells(outcome: EventOutcome) -> list[str]:
    assert outcome.failure is None, outcome.failure
    assert outcome.status
    return [f"{entry.status} {entry.reason}" for entry in outcome.status.conditions]


def on_kubernetes(adapter: Adapter, document: dict[str, Any], *, cluster: Cluster, api: FakeHyperFleet) -> EventOutcome:
    async def scenario() -> EventOutcome:
        settings = hyperfleet_api.ApiSettings(url=api.url)
        opening = kubernetes.opened(str(cluster.kubeconfig), environ=os.environ)
        async with hyperfleet_api.HyperFleetClient(settings) as client, opening as transport:
            performer = LivePerformer(
                transport=transport, resource_api=ConfiguredResourceApi(api=client), target=targeting.static("here")
            )
            return await handle(adapter, event.parse(json.dumps(document)), performer=performer, timeouts=TIMEOUTS)

    return asyncio.run(scenario())


def test_a_task_runs_through_maestro(
    converted: Adapter, fleet: RunningFleet, cluster: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    created = hyperfleet.put("Cluster", "task1", spec={"settings": {"color": "blue"}})
    first = handled(converted, created, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)
    assert cells(first)[2:] == ["False ResourcesSkipped", "False NotDeleting"]
    second = handled(converted, created, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)
    ready = ["True ResourcesObserved", "True LiveResourcesReady", "True Healthy", "False NotDeleting"]
    assert cells(second) == ready
    stored = cluster.get("v1", "ConfigMap", "settings", namespace="task1-far")
    assert stored
    assert stored["data"] == {"color": "blue", "id": "task1"}
    changed = hyperfleet.put("Cluster", "task1", spec={"settings": {"color": "red"}})
    assert cells(handled(converted, changed, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)) == ready
    deleted = hyperfleet.delete("task1")
    third = handled(converted, deleted, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)
    assert cells(third)[3] == "False CleanupInProgress"
    last = handled(converted, deleted, fleet=fleet, api=hyperfleet, timeouts=TIMEOUTS)
    assert cells(last)[2:] == ["True Healthy", "True CleanupConfirmed"]
    assert cluster.get("v1", "Namespace", "task1-far") is None
    assert hyperfleet.condition("task1", converted.name, "Finalized")["status"] == "True"


def test_the_same_task_runs_on_a_kubernetes_api(
    converted: Adapter, cluster: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    created = hyperfleet.put("Cluster", "task2", spec={"settings": {}})
    on_kubernetes(converted, created, cluster=cluster, api=hyperfleet)
    second = on_kubernetes(converted, created, cluster=cluster, api=hyperfleet)
    assert cells(second)[:2] == ["True ResourcesObserved", "True LiveResourcesReady"]
    deleted = hyperfleet.delete("task2")
    on_kubernetes(converted, deleted, cluster=cluster, api=hyperfleet)
    last = on_kubernetes(converted, deleted, cluster=cluster, api=hyperfleet)
    assert cells(last)[3] == "True CleanupConfirmed"
    assert cluster.get("v1", "Namespace", "task2-far") is None
