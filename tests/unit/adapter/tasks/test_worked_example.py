"""The worked example of HyperFleet's authoring guide, cell by cell: a far transport and the local one."""

import asyncio
from typing import Any

import pytest

from maestropy.adapter import event as events
from maestropy.adapter.decide.pipeline import EventOutcome, PipelineOptions
from maestropy.adapter.resource import parse
from maestropy.adapter.tasks import objects
from maestropy.adapter.tasks.task_adapter import TaskAdapter
from maestropy.adapter.tasks.variables import Variables
from maestropy.adapter.transports.performer import drive
from maestropy.sdk.work import Work
from tests.unit.adapter.tasks.mirrors import Api, Mirrors, TaskPerformer, stored_work
from tests.unit.adapter.tasks.task_documents import task

CREATING: dict[str, Any] = {"id": "abc", "kind": "Cluster", "generation": 77, "spec": {"settings": {}}}
DELETING = {**CREATING, "generation": 78, "deleted_time": "2026-09-01T00:00:00Z"}
BOTH_APPLIED = ["apply Namespace", "apply ConfigMap"]
OBSERVED, MISSING = "True ResourcesObserved", "False ResourceNotFound"
READY, PENDING = "True LiveResourcesReady", "Unknown GenerationPending"
KEPT, CLEANING, CLEANED = "False NotDeleting", "False CleanupInProgress", "True CleanupConfirmed"

# Cluster, generations that were written and read back of each object (None: the object does not exist), and the cells.
FAR = [
    pytest.param(CREATING, (76, 77), (76, 77), BOTH_APPLIED, (OBSERVED, READY, KEPT), id="1-create"),
    pytest.param(CREATING, (76, 76), (76, 76), BOTH_APPLIED, (OBSERVED, PENDING, KEPT), id="2-stale-mirrors"),
    pytest.param(
        DELETING,
        (77, 77),
        (77, 77),
        ["apply Namespace", "delete ConfigMap"],
        (OBSERVED, PENDING, CLEANING),
        id="3-delete-requested",
    ),
    pytest.param(DELETING, (78, 77), None, ["delete Namespace"], (MISSING, MISSING, CLEANING), id="4-child-gone"),
    pytest.param(DELETING, None, None, [], (MISSING, MISSING, CLEANED), id="5-both-gone"),
]
LOCAL = [
    FAR[0],
    FAR[1],
    pytest.param(
        DELETING,
        (77, 77),
        (77, 77),
        ["apply Namespace", "delete ConfigMap"],
        (MISSING, MISSING, CLEANING),
        id="3-delete-requested",
    ),
    pytest.param(DELETING, (78, 77), None, ["delete Namespace"], (MISSING, MISSING, CLEANED), id="4-child-gone"),
    FAR[4],
]


def adapter() -> TaskAdapter:
    document = task()
    made = TaskAdapter("two", target_clusters={"far": "{{ .clusterId }}"})
    for section, add in (("params", made.param), ("resources", made.resource)):
        for entry in document[section]:
            add(**entry)
    for entry in document["post"]["payloads"]:
        made.payload(**entry)
    for entry in document["post"]["post_actions"]:
        made.post_action(**entry)
    return made


def work(name: str, generations: tuple[int, int] | None) -> list[Work]:
    if generations is None:
        return []
    written, mirrored = generations
    event = events.parse('{"id": "abc", "kind": "Cluster", "generation": 77}')
    variables = Variables(event, adapter="two", config={}, surroundings=None)
    variables.values.update(clusterId="abc", generation=written, cluster=CREATING)
    resource = next(resource for resource in adapter().task.resources if resource.name == name)
    made = objects.work_of(resource, adapter="two", resource=parse(CREATING, event), variables=variables)
    return [stored_work(made, written=written, mirrored=mirrored)]


def run_pass(mirrors: Mirrors, api: Api, **variables: str) -> EventOutcome:
    made = adapter()
    event = events.parse('{"id": "abc", "kind": "Cluster", "generation": 77}')
    options = PipelineOptions(adapter="two", handler=made.handler("Cluster"), settle_seconds=0)
    return asyncio.run(drive(made.steps(event, options), TaskPerformer(mirrors, api, **variables)))


def cells(outcome: EventOutcome) -> tuple[str, ...]:
    assert outcome.status
    status = outcome.status
    shown = (status.applied, status.available, status.finalized)
    assert (status.health.status, status.health.reason) == ("True", "Healthy")
    return tuple(f"{condition.status} {condition.reason}" for condition in shown)


@pytest.mark.parametrize("is_local", [False, True], ids=["far", "local"])
@pytest.mark.parametrize("row", range(5), ids=[str(param.id) for param in FAR])
def test_every_cell_of_the_table(row: int, is_local: bool) -> None:
    values: Any = (LOCAL if is_local else FAR)[row].values
    cluster, space, settings, operations, expected = values
    mirrors = Mirrors([*work("space", space), *work("settings", settings)], is_local=is_local)
    api = Api(cluster)
    outcome = run_pass(mirrors, api)
    assert outcome.failure is None
    assert mirrors.operations == operations
    assert cells(outcome) == expected
    assert api.statuses == [outcome.status]
    assert api.statuses[0].generation == cluster["generation"]


def test_a_real_first_pass_skips_the_child_until_its_parent_is_read_back() -> None:
    mirrors = Mirrors([], is_local=False)
    outcome = run_pass(mirrors, Api(CREATING))
    assert outcome.status
    assert mirrors.operations == ["apply Namespace"]
    assert (outcome.status.health.reason, outcome.status.applied.status) == ("ResourcesSkipped", "False")
    assert "settings: lifecycle.create.when condition evaluated to false" in outcome.status.health.message


def test_an_old_event_does_not_roll_a_resource_back() -> None:
    mirrors = Mirrors([*work("space", (80, 80)), *work("settings", (80, 80))], is_local=False)
    outcome = run_pass(mirrors, Api(CREATING))
    assert mirrors.operations == []
    assert outcome.status
    assert outcome.status.available.reason == "GenerationPending"
