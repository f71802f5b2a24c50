"""Helpers of all controllers: find and create the objects that an owner controls, and set conditions."""

from collections.abc import Iterable
from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects, ObjectWriteOptions
from maestropy.sandbox.kubeapi.storage.store import Resource, StoredObject

Json = dict[str, Any]


def owned(objects: Objects, owner: StoredObject, resource: Resource) -> list[StoredObject]:
    """Return the objects of a resource that `owner` controls, sorted by name."""
    children = [dependent for dependent in objects.store.dependents(owner.uid) if dependent.resource == resource]
    return sorted(children, key=lambda child: child.name)


def owner_reference(owner: StoredObject) -> Json:
    """Return the controller owner reference to `owner`."""
    return {
        "apiVersion": owner.obj["apiVersion"],
        "kind": owner.obj["kind"],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def make_child(objects: Objects, owner: StoredObject, resource: Resource, child: Json) -> StoredObject:
    """Create an object that `owner` controls."""
    kind = objects.registry.of_resource(*resource)
    assert kind is not None
    metadata = {**child["metadata"], "ownerReferences": [owner_reference(owner)]}
    sent = {**child, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return objects.create(kind, owner.namespace, sent, ObjectWriteOptions(manager="kube-controller-manager"))


def conditions(old: Iterable[Json] | None, now: str, *updated: Json) -> list[Json]:
    """Return `updated` with timestamps: lastTransitionTime of `old` is kept where the status is the same."""
    previous = {condition["type"]: condition for condition in old or []}
    result = []
    for condition in updated:
        before = previous.get(condition["type"])
        moved = before is None or before["status"] != condition["status"]
        same = before is not None and all(before.get(name) == value for name, value in condition.items())
        result.append(
            {
                **condition,
                "lastTransitionTime": now if moved or before is None else before["lastTransitionTime"],
                "lastUpdateTime": before["lastUpdateTime"] if same and before is not None else now,
            }
        )
    return result
