"""Which kinds does a CustomResourceDefinition bring? One per served version. Pure."""

from collections.abc import Mapping
from typing import Any

from maestropy.sandbox.kubeapi import builtin_types, schema
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]


def kinds_of(definition: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds this definition makes the API serve."""
    spec = definition["spec"]
    storage = next((each["name"] for each in spec["versions"] if each.get("storage")), "")
    return [_kind(spec, each, storage) for each in spec["versions"] if each.get("served")]


def _kind(spec: Mapping[str, Any], version: Mapping[str, Any], storage: str) -> Kind:
    names = spec["names"]
    structure = version["schema"]["openAPIV3Schema"]
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    return Kind(
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
        selectable=tuple(each["jsonPath"].lstrip(".") for each in version.get("selectableFields") or ()),
        custom=True,
    )


def _scale_paths(scale: Mapping[str, Any]) -> tuple[str, str, str]:
    paths = (scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))
    return paths[0].lstrip("."), paths[1].lstrip("."), paths[2].lstrip(".")


def _with_metadata(structure: Schema) -> Schema:
    text = Schema(type="string")
    known = {**structure.fields, "apiVersion": text, "kind": text, "metadata": builtin_types.metadata()}
    return Schema(type="object", fields=known, preserve_unknown=structure.preserve_unknown)


def established(definition: Mapping[str, Any], now: str) -> Json:
    """Return the status of a definition that is served."""
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
    storage = [each["name"] for each in spec["versions"] if each.get("storage")]
    known = old.get("storedVersions") or []
    return {
        "conditions": old.get("conditions") or conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [*known, *(each for each in storage if each not in known)],
    }
