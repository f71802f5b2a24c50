"""Derive the served kinds and the status of a CustomResourceDefinition: one kind per served version. Pure."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi.schemas import builtin_types, schema
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]


def kinds_of(definition: Mapping[str, Any]) -> list[ServedKind]:
    """Return the kinds that a definition adds to the API."""
    spec = definition["spec"]
    storage = next((version["name"] for version in spec["versions"] if version.get("storage")), "")
    return [_kind(spec, version, storage) for version in spec["versions"] if version.get("served")]


def _kind(spec: Mapping[str, Any], version: Mapping[str, Any], storage: str) -> ServedKind:
    names = spec["names"]
    structure = version["schema"]["openAPIV3Schema"]
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    return ServedKind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular", names["kind"].lower()),
        list_kind=names.get("listKind", f"{names['kind']}List"),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        has_status="status" in subresources,
        has_generation=True,
        scale=_scale_paths(scale) if scale else None,
        schema=_with_metadata(schema.from_openapi(structure)),
        definition=structure,
        storage_version=storage,
        selectable=tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields") or ()),
        is_custom=True,
    )


def _scale_paths(scale: Mapping[str, Any]) -> tuple[str, str, str]:
    paths = (scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))
    return paths[0].lstrip("."), paths[1].lstrip("."), paths[2].lstrip(".")


def _with_metadata(structure: Schema) -> Schema:
    text = Schema(type="string")
    fields = {**structure.fields, "apiVersion": text, "kind": text, "metadata": builtin_types.metadata()}
    return Schema(type="object", fields=fields, preserve_unknown=structure.preserve_unknown)


def established(definition: Mapping[str, Any], now: str) -> Json:
    """Return the status of an established definition."""
    spec = definition["spec"]
    old = definition.get("status") or {}
    conditions = [
        {
            "type": "NamesAccepted",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "NoConflicts",
            "message": "no conflicts found",
        },
        {
            "type": "Established",
            "status": "True",
            "lastTransitionTime": now,
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
        },
    ]
    storage = [version["name"] for version in spec["versions"] if version.get("storage")]
    stored_versions = old.get("storedVersions") or []
    return {
        "conditions": old.get("conditions") or conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [*stored_versions, *(version for version in storage if version not in stored_versions)],
    }


def terminating(definition: Mapping[str, Any], now: str) -> Json:
    """Return the status of a deleted definition that still has objects; unchanged if it says so already."""
    status = definition.get("status") or {}
    conditions = status.get("conditions") or []
    if any(condition["type"] == "Terminating" for condition in conditions):
        return dict(status)
    condition = {
        "type": "Terminating",
        "status": "True",
        "lastTransitionTime": now,
        "reason": "InstanceDeletionInProgress",
        "message": "CustomResource deletion is in progress",
    }
    return {**status, "conditions": [*conditions, condition]}
