"""Build the OpenAPI documents that kubectl reads: one per group and version, from the schemas of the served kinds.

They contain types and merge keys but no descriptions: enough for `kubectl apply` and `kubectl diff`.
"""

from collections.abc import Iterable
from typing import Any

from maestropy.sandbox.kubeapi.schemas import builtin_types
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.schemas.schema import Schema

Json = dict[str, Any]
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]
_PACKAGES = {
    "meta": "io.k8s.apimachinery.pkg.apis",
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis",
    "apiregistration": "io.k8s.kube-aggregator.pkg.apis",
}
"""The packages of types by the first part of their name; all others are in `io.k8s.api`."""
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
QUANTITY_SCHEMA: Json = {"oneOf": [{"type": "string"}, {"type": "number"}]}
_PATCHES = ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")


def index(kinds: Iterable[ServedKind]) -> Json:
    """Return the document of `/openapi/v3`."""
    versions = dict.fromkeys((kind.group, kind.version) for kind in kinds)
    paths = [f"apis/{group}/{version}" if group else f"api/{version}" for group, version in versions]
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def document(group: str, version: str, kinds: Iterable[ServedKind]) -> Json | None:
    """Return the document of one group and version; None if it is not served."""
    chosen = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not chosen:
        return None
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    paths: Json = {}
    schemas: Json = {
        _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
        _QUANTITY: QUANTITY_SCHEMA,
    }
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


def _name(kind: ServedKind) -> str:
    if kind.is_custom:
        return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return _type_name(f"{kind.group.partition('.')[0] or 'core'}.{kind.version}.{kind.kind}")


def _type_name(name: str) -> str:
    """Return the name of a built-in type in OpenAPI: `meta.v1.ObjectMeta` is in another package than `apps.v1`."""
    package = _PACKAGES.get(name.partition(".")[0], "io.k8s.api")
    return f"{package}.{name}"


def _gvk(kind: ServedKind) -> Json:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


def _operation(kind: ServedKind) -> Json:
    content = {f"application/{media}": {"schema": {"type": "object"}} for media in _PATCHES}
    return {
        "parameters": _PARAMETERS,
        "requestBody": {"content": content, "required": True},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _gvk(kind),
    }


def _gvks(kind: ServedKind) -> Json:
    return {"x-kubernetes-group-version-kind": [_gvk(kind)]}


def _kind_schema(kind: ServedKind) -> Json:
    if kind.definition is not None:
        own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        own["metadata"] = _reference(builtin_types.metadata())
        properties = {**(kind.definition.get("properties") or {}), **own}  # type: ignore[dict-item]  # a CRD's own JSON
        return {**kind.definition, "type": "object", "properties": properties, **_gvks(kind)}
    return _struct(kind.schema) | _gvks(kind)


def _collect(schema: Schema, schemas: Json) -> None:
    """Add every named type below `schema`."""
    for child in (*schema.fields.values(), *schema.element):
        if child.type == "object" and _type_name(child.name) not in schemas:
            schemas[_type_name(child.name)] = _struct(child)
            _collect(child, schemas)
        elif child.element:
            _collect(child, schemas)


def _struct(schema: Schema) -> Json:
    if not schema.fields:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": {name: _part(child) for name, child in schema.fields.items()}}


def _reference(schema: Schema) -> Json:
    return {"$ref": f"#/components/schemas/{_type_name(schema.name)}"}


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
        case "int-or-string":
            return {"$ref": f"#/components/schemas/{_INT_OR_STRING}"}
        case "quantity":
            return {"$ref": f"#/components/schemas/{_QUANTITY}"}
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
