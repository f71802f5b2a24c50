"""Admit an object before it is stored: decoding, defaulting, system fields, generation, validation.

Pure: everything random or from a clock is in `SystemFields`. Raises `StatusError` for what is rejected.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.sandbox.kubeapi.errors import StatusError, bad_request, invalid
from maestropy.sandbox.kubeapi.rules import allocation, builtin_validation, crd_schema, defaults, validation
from maestropy.sandbox.kubeapi.schemas import builtin_types, decode
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]

_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_UNTYPED = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFields:
    """Values that the API server sets on a new object."""

    uid: str
    now: str
    suffix: str
    address: str


def read(kind: ServedKind, sent: Any, *, validation_mode: str, warnings: list[str]) -> Json:
    """Return the body as an object of `kind`; field validation drops, warns of or rejects unknown fields."""
    if not isinstance(sent, dict):
        raise bad_request(f"the body must be a JSON object that holds a {kind.kind}")
    _check_type(kind, sent)
    named = {**sent, "apiVersion": kind.api_version, "kind": kind.kind}
    if not isinstance(named.get("metadata") or {}, dict):
        raise bad_request("metadata must be an object")
    unknown: list[str] = []
    try:
        obj = _typed(kind, named, unknown)
    except decode.WrongType as error:
        text = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'
        raise bad_request(text) from error
    complaints = [f'unknown field "{path}"' for path in unknown]
    if complaints and validation_mode == "Strict":
        text = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: '
        raise bad_request(text + ", ".join(complaints))
    if validation_mode == "Warn":
        warnings.extend(complaints)
    return obj


def _typed(kind: ServedKind, named: Json, unknown: list[str]) -> Json:
    if not kind.is_custom:
        obj: Json = decode.typed(named, kind.schema, unknown=unknown)
        return {**obj, "metadata": obj.get("metadata") or {}}
    obj = crd_schema.pruned(named, kind.definition or {}, unknown=unknown)
    unknown_metadata: list[str] = []
    obj["metadata"] = decode.typed(
        named.get("metadata") or {}, builtin_types.metadata(), path="metadata", unknown=unknown_metadata
    )
    unknown.extend(unknown_metadata)
    return obj


def _check_type(kind: ServedKind, sent: Mapping[str, Any]) -> None:
    if kind.is_custom and not sent.get("kind"):
        raise bad_request("Object 'Kind' is missing in the body: give kind and apiVersion")
    version = sent.get("apiVersion") or kind.api_version
    if version != kind.api_version:
        text = f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(text)
    if (sent.get("kind") or kind.kind) != kind.kind:
        raise bad_request(f'{sent["kind"]} in version "{kind.version}" cannot be handled as a {kind.kind}')


def address(kind: ServedKind, obj: Json, *, namespace: str, name: str = "") -> Json:
    """Return `obj` with the namespace and name of the request, or raise if they contradict."""
    metadata = dict(obj["metadata"])
    if kind.namespaced:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        metadata.pop("namespace", None)
    if name and metadata.setdefault("name", name) != name:
        text = f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        raise bad_request(text)
    return {**obj, "metadata": metadata}


def new_object(
    kind: ServedKind, obj: Json, system_fields: SystemFields, *, set_managed_fields: Callable[[Json], Json]
) -> Json:
    """Return a new object as it is stored; `set_managed_fields` adds its managedFields.

    It is called before the API server allocates values, because allocated values have no field manager.
    """
    metadata = {name: value for name, value in obj["metadata"].items() if name not in (*_SYSTEM, "selfLink")}
    if metadata.get("resourceVersion"):
        raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    metadata.pop("managedFields", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName'][:58]}{system_fields.suffix}"
    metadata |= {"uid": system_fields.uid, "creationTimestamp": system_fields.now}
    if kind.has_generation:
        metadata["generation"] = 1
    result = {**obj, "metadata": metadata}
    if kind.has_status:
        result.pop("status", None)
    result = allocation.allocate(
        kind, set_managed_fields(_completed(kind, result)), uid=system_fields.uid, address=system_fields.address
    )
    causes = [*validation.metadata_causes(kind, result), *_content_causes(kind, result)]
    if causes:
        raise invalid(kind, metadata.get("name", ""), causes)
    return result


def changed_object(kind: ServedKind, old: Json, new: Json, *, subresource: str = "") -> Json:
    """Return `new` as it replaces `old`: system fields of `old`, and the next generation if the spec changed."""
    metadata = dict(new["metadata"])
    before = old["metadata"]
    for field in ("name", "namespace", "uid"):
        if not metadata.get(field) and before.get(field):
            metadata[field] = before[field]
    for field in _SYSTEM[1:]:
        metadata.pop(field, None)
        if field in before:
            metadata[field] = before[field]
    metadata["resourceVersion"] = before["resourceVersion"]
    result = _merge_subresource(kind, old, {**new, "metadata": metadata}, subresource)
    result = allocation.carry_over(kind, old, _completed(kind, result))
    if "generation" in before and _spec_of(kind, old) != _spec_of(kind, result):
        result["metadata"] = {**result["metadata"], "generation": before["generation"] + 1}
    causes = [*validation.update_causes(kind, old, result), *_content_causes(kind, result)]
    causes += builtin_validation.change_causes(kind, old, result)
    if causes:
        raise invalid(kind, before["name"], causes)
    return result


def _merge_subresource(kind: ServedKind, old: Json, new: Json, subresource: str) -> Json:
    if subresource == "status":
        kept = {**old, "metadata": {**old["metadata"], "managedFields": new["metadata"].get("managedFields")}}
        if new["metadata"].get("uid") != old["metadata"]["uid"]:
            kept["metadata"]["uid"] = new["metadata"].get("uid")
        kept.pop("status", None)
        return kept | ({"status": new["status"]} if new.get("status") is not None else {})
    if kind.has_status:
        new = {name: value for name, value in new.items() if name != "status"}
        if "status" in old:
            new["status"] = old["status"]
    if kind.resource == ("", "namespaces") and subresource != "finalize":
        new["spec"] = old.get("spec", {})
    return new


def _completed(kind: ServedKind, obj: Json) -> Json:
    if kind.definition is None:
        return defaults.complete(kind, obj)
    body = {name: value for name, value in obj.items() if name not in _UNTYPED}
    return {**{name: obj[name] for name in _UNTYPED}, **crd_schema.completed(body, kind.definition)}


def _content_causes(kind: ServedKind, obj: Json) -> list[Any]:
    if kind.definition is not None:
        return list(crd_schema.causes(obj, kind.definition))
    return list(builtin_validation.causes(kind, obj))


def _spec_of(kind: ServedKind, obj: Json) -> Json:
    hidden = (
        ("metadata", "status", "apiVersion") if kind.has_status or not kind.is_custom else ("metadata", "apiVersion")
    )
    return {name: value for name, value in obj.items() if name not in hidden}
