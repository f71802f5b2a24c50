"""What OpenAPI does kubectl need? One small document per group and version: kinds, and that the API judges fields itself.

Types are named, not described in words: enough for `kubectl apply` and `diff`, little for `kubectl explain`.
"""

from collections.abc import Iterable
from typing import Any

from pymaestro.sandbox.kubeapi.kinds import Kind

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
        schemas[_name(kind)] = _schema(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def version_two(kinds: Iterable[Kind]) -> Json:
    """Return the answer of `/openapi/v2`."""
    definitions = {_name(kind): _schema(kind) for kind in kinds}
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


def _schema(kind: Kind) -> Json:
    schema: Json = {"type": "object", "x-kubernetes-group-version-kind": [_gvk(kind)]}
    if kind.definition is not None:
        return {**kind.definition, **schema}
    return schema | {"x-kubernetes-preserve-unknown-fields": True}
