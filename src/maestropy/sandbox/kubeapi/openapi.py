"""What OpenAPI does kubectl need? One document per group and version, made from the schemas the API itself goes by.

Types and merge keys are there and words are not: enough for `kubectl apply` and `diff`, dry in `kubectl explain`.
"""

from collections.abc import Iterable
from typing import Any

from maestropy.sandbox.kubeapi import builtin_types
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]
_PATCHES = ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")


def index(kinds: Iterable[Kind]) -> Json:
    """Return the answer of `/openapi/v3`."""
    versions = dict.fromkeys((kind.group, kind.version) for kind in kinds)
    paths = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in versions]
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def document(group: str, version: str, kinds: Iterable[Kind]) -> Json | None:
    """Return the document of one group and version, or nothing."""
    chosen = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not chosen:
        return None
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: Json = {}
    schemas: Json = {}
    for kind in chosen:
        scope = "/namespaces/{namespace}" if kind.namespaced else ""
        paths[f"{base}{scope}/{kind.plural}/{{name}}"] = {"patch": _operation(kind), "put": _operation(kind)}
        schemas[_name(kind)] = _kind_schema(kind)
        _collect(kind.schema, schemas)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def version_two(kinds: Iterable[Kind]) -> Json:
    """Return the answer of `/openapi/v2`."""
    definitions = {_name(kind): _gvks(kind) | {"type": "object"} for kind in kinds}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": {},
        "definitions": definitions,
    }


def _name(kind: Kind) -> str:
    return f"io.k8s.api.{kind.group or 'core'}.{kind.version}.{kind.kind}"


def _gvk(kind: Kind) -> Json:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _operation(kind: Kind) -> Json:
    content = {f"application/{media}": {"schema": {"type": "object"}} for media in _PATCHES}
    return {
        "parameters": _PARAMETERS,
        "requestBody": {"content": content, "required": True},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _gvks(kind: Kind) -> Json:
    return {"x-kubernetes-group-version-kind": [_gvk(kind)]}


def _kind_schema(kind: Kind) -> Json:
    if kind.definition is not None:
        own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        own["metadata"] = _reference(builtin_types.metadata())
        properties = {**(kind.definition.get("properties") or {}), **own}  # type: ignore[dict-item]  # a CRD's own JSON
        return {**kind.definition, "type": "object", "properties": properties, **_gvks(kind)}
    return _struct(kind.schema) | _gvks(kind)


def _collect(schema: Schema, found: Json) -> None:
    """Add every named type below `schema`."""
    for child in (*schema.fields.values(), *schema.element):
        if child.type == "object" and child.name not in found:
            found[child.name] = _struct(child)
            _collect(child, found)
        elif child.element:
            _collect(child, found)


def _struct(schema: Schema) -> Json:
    if not schema.fields:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {name: _part(child) for name, child in schema.fields.items()}}


def _reference(schema: Schema) -> Json:
    return {"$ref": f"#/components/schemas/{schema.name}"}


def _part(schema: Schema) -> Json:
    match schema.type:
        case "object":
            return {"allOf": [_reference(schema)], "default": {}}
        case "map":
            return {"type": "object", "additionalProperties": _part(schema.item)}
        case "list":
            return {"type": "array", "items": _part(schema.item), **_merging(schema)}
        case "any":
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case "int-or-string" | "quantity":
            return {"type": "string", "x-kubernetes-int-or-string": True}
    return {"type": schema.type}


def _merging(schema: Schema) -> Json:
    extra: Json = {"x-kubernetes-list-type": "map" if schema.keys else "set" if schema.is_set else "atomic"}
    if schema.keys:
        extra["x-kubernetes-list-map-keys"] = list(schema.keys)
    if schema.merge_key is not None:
        extra["x-kubernetes-patch-strategy"] = "merge"
    if schema.merge_key:
        extra["x-kubernetes-patch-merge-key"] = schema.merge_key
    return extra
