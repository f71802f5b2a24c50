"""Works in every state, as values, for the tests of verdicts and reports."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from maestropy.trace.work.model import (
    AppliedResource,
    AppliedWork,
    Condition,
    Gathered,
    Live,
    ManifestReport,
    ObjectKey,
    Owner,
    Row,
    Sight,
    Status,
)
from maestropy.wire import identity

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
HUB = "f1d8a1049b93dffc1929d57a719c3a09a4dcbfe0cd6e42840325be3b2dde73c8"
BROKER = "maestro-mqtt-agent.maestro:1883"
WORK_ID = identity.resource_id("client", namespace="mgmt-1", name="nginx-work")
DATABASE = Sight(place="database", is_clear=True)
CLUSTER = Sight(place="cluster mgmt", is_clear=True, consumer="mgmt-1", kubectl="--context mgmt")
KEY = ObjectKey(group="apps", kind="Deployment", plural="deployments", namespace="default", name="nginx")
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "nginx", "namespace": "default"},
    "spec": {"replicas": 2},
}


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def conditions(applied: str = "True", available: str = "True", message: str = "") -> tuple[Condition, ...]:
    return (
        Condition(type="Applied", status=applied, message=message),
        Condition(type="Available", status=available, message=message),
    )


STATUS = Status(
    version=2,
    sequence="2011725044726730752",
    time=None,
    conditions=conditions(),
    manifests=(ManifestReport(key=KEY, conditions=conditions()),),
)
ROW = Row(
    id=WORK_ID,
    source="client",
    consumer="mgmt-1",
    version=2,
    work_name="nginx-work",
    labels={},
    created=ago(hours=5),
    updated=ago(hours=4),
    deleted=None,
    manifests=(MANIFEST,),
    status=STATUS,
)
APPLIED = AppliedWork(
    cluster="mgmt",
    name=f"{HUB}-{WORK_ID}",
    uid="record-uid",
    hub_hash=HUB,
    agent_id=HUB,
    work_name=WORK_ID,
    created=ago(hours=5),
    resources=(
        AppliedResource(
            group="apps", version="v1", plural="deployments", namespace="default", name="nginx", uid="uid-1"
        ),
    ),
)
LIVE = Live(
    cluster="mgmt",
    key=KEY,
    state="present",
    uid="uid-1",
    owners=(Owner(group="work", kind="AppliedManifestWork", name=APPLIED.name, uid="record-uid"),),
)
ABSENT = Live(cluster="mgmt", key=KEY, state="absent")
HEALTHY = Gathered(row=ROW, applied=(APPLIED,), lives=(LIVE,), database=DATABASE, clusters=(CLUSTER,))


def gathered(**changes: Any) -> Gathered:
    return replace(HEALTHY, **changes)


def row(**changes: Any) -> Row:
    return replace(ROW, **changes)


def status(**changes: Any) -> Status:
    return replace(STATUS, **changes)
