"""What all controllers do: find and make the objects of an owner, and write conditions."""

from collections.abc import Iterable
from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects, Options
from maestropy.sandbox.kubeapi.store import Resource, Stored

Json = dict[str, Any]


def owned(objects: Objects, owner: Stored, resource: Resource) -> list[Stored]:
    """Return the objects of a resource that `owner` controls, oldest name first."""
    found = [each for each in objects.store.dependents(owner.uid) if each.resource == resource]
    return sorted(found, key=lambda each: each.name)


def owner_reference(owner: Stored) -> Json:
    """Return the reference a controlled object carries."""
    return {
        "apiVersion": owner.obj["apiVersion"],
        "kind": owner.obj["kind"],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def make_child(objects: Objects, owner: Stored, resource: Resource, child: Json) -> Stored:
    """Create an object that `owner` controls."""
    kind = objects.registry.of_resource(*resource)
    assert kind is not None
    metadata = {**child["metadata"], "ownerReferences": [owner_reference(owner)]}
    sent = {**child, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return objects.create(kind, owner.namespace, sent, Options(manager="kube-controller-manager"))


def conditions(old: Iterable[Json] | None, now: str, *wanted: Json) -> list[Json]:
    """Return `wanted` with times: those of `old` where nothing but the words changed."""
    known = {each["type"]: each for each in old or []}
    result = []
    for condition in wanted:
        before = known.get(condition["type"])
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
