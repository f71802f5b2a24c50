"""Works in every state, as values, for the tests of verdicts and reports."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from maestropy.trace.work.model import (
    AccessStatus,
    AppliedResourceEntry,
    AppliedWork,
    LiveObject,
    ManifestReport,
    ObjectKey,
    Owner,
    ReportedCondition,
    Status,
    TracedResource,
    WorkData,
)
from maestropy.wire.works import resource_id

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)
HUB = "f1d8a1049b93dffc1929d57a719c3a09a4dcbfe0cd6e42840325be3b2dde73c8"
BROKER = "maestro-mqtt-agent.maestro:1883"
WORK_ID = resource_id.resource_id("client", namespace="mgmt-1", name="nginx-work")
DATABASE = AccessStatus(description="database", is_readable=True)
CLUSTER = AccessStatus(description="cluster mgmt", is_readable=True, consumer="mgmt-1", kubectl="--context mgmt")
KEY = ObjectKey(group="apps", kind="Deployment", plural="deployments", namespace="default", name="nginx")
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "nginx", "namespace": "default"},
    "spec": {"replicas": 2},
}


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def conditions(applied: str = "True", available: str = "True", message: str = "") -> tuple[ReportedCondition, ...]:
    return (
        ReportedCondition(type="Applied", status=applied, message=message),
        ReportedCondition(type="Available", status=available, message=message),
    )


STATUS = Status(
    version=2,
    sequence="2011725044726730752",
    time=None,
    conditions=conditions(),
    manifests=(ManifestReport(key=KEY, conditions=conditions()),),
)
ROW = TracedResource(
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
        AppliedResourceEntry(
            group="apps", version="v1", plural="deployments", namespace="default", name="nginx", uid="uid-1"
        ),
    ),
)
LIVE = LiveObject(
    cluster="mgmt",
    key=KEY,
    state="present",
    uid="uid-1",
    owners=(Owner(group="work", kind="AppliedManifestWork", name=APPLIED.name, uid="record-uid"),),
)
ABSENT = LiveObject(cluster="mgmt", key=KEY, state="absent")
HEALTHY = WorkData(row=ROW, applied=(APPLIED,), live_objects=(LIVE,), database=DATABASE, clusters=(CLUSTER,))


def data(**changes: Any) -> WorkData:
    return replace(HEALTHY, **changes)


def row(**changes: Any) -> TracedResource:
    return replace(ROW, **changes)


def status(**changes: Any) -> Status:
    return replace(STATUS, **changes)
