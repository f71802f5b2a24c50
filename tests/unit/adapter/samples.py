"""An event, a resource and a work for the adapter tests."""

from typing import Any

from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.work import Work
from maestropy.wire.works.work import ManifestWork

EVENT = Event(resource_id="abc", kind="Cluster", generation=5, data={"id": "abc", "kind": "Cluster", "generation": 5})
CLUSTER = Resource(id="abc", kind="Cluster", generation=5, name="my-cluster", spec={"x": 1})
MAP: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}}


def work(name: str = "w-abc") -> Work:
    return Work(name).add(MAP, feedback={"status": ".status"})


def reported(
    desired: Work, *, version: int = 1, observed: int = 1, feedback: str | None = None, **statuses: str
) -> Work:
    """A work with the status an agent reported: conditions by type, and the JSON of its only feedback value."""
    conditions = [{"type": kind, "status": status, "reason": f"{kind}Reason"} for kind, status in statuses.items()]
    value = {"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": feedback}}
    manifest_status = {
        "resourceMeta": {"ordinal": 0, "kind": "ConfigMap", "name": "m", "namespace": "default"},
        "conditions": conditions,
        "statusFeedback": {"values": [] if feedback is None else [value]},
    }
    body = desired.manifest_work.with_metadata(namespace="c1", generation=version, resourceVersion=str(version)).body
    status = {"conditions": conditions, "resourceStatus": {"manifests": [manifest_status]}}
    return Work.wrap(ManifestWork({**body, "status": status}), observed_version=observed)
