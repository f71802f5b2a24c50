"""What becomes of a sent object before it is kept? Reading, defaults, system fields, generation, validation.

Pure: everything random or from a clock is in `Stamp`. Raises `Problem` for what must be refused; touches no store.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.sandbox.kubeapi import allocation, builtin_types, crdschema, decode, defaults, kindrules, validation
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Problem, bad_request, invalid

Json = dict[str, Any]

_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_UNTYPED = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the API gives to a new object."""

    uid: str
    now: str
    suffix: str
    address: str


def read(kind: Kind, sent: Any, *, validation_mode: str, warnings: list[str]) -> Json:
    """Return the sent body as an object of `kind`, with unknown fields dropped, warned of or refused."""
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


def _typed(kind: Kind, named: Json, unknown: list[str]) -> Json:
    if not kind.custom:
        obj: Json = decode.typed(named, kind.schema, unknown=unknown)
        return {**obj, "metadata": obj.get("metadata") or {}}
    obj = crdschema.pruned(named, kind.definition or {}, unknown=unknown)
    found: list[str] = []
    obj["metadata"] = decode.typed(
        named.get("metadata") or {}, builtin_types.metadata(), path="metadata", unknown=found
    )
    unknown.extend(found)
    return obj


def _check_type(kind: Kind, sent: Mapping[str, Any]) -> None:
    if kind.custom and not sent.get("kind"):
        raise bad_request("Object 'Kind' is missing in the body: give kind and apiVersion")
    version = sent.get("apiVersion") or kind.api_version
    if version != kind.api_version:
        text = f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(text)
    if (sent.get("kind") or kind.kind) != kind.kind:
        raise bad_request(f'{sent["kind"]} in version "{kind.version}" cannot be handled as a {kind.kind}')


def address(kind: Kind, obj: Json, *, namespace: str, name: str = "") -> Json:
    """Return `obj` with the namespace and name of the request, or refuse what contradicts them."""
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


def new_object(kind: Kind, obj: Json, stamp: Stamp, *, own: Callable[[Json], Json]) -> Json:
    """Return an addressed object as it is first kept; `own` writes down whose fields these are.

    That happens before the API chooses values itself: nobody owns those.
    """
    metadata = {name: value for name, value in obj["metadata"].items() if name not in (*_SYSTEM, "selfLink")}
    if metadata.get("resourceVersion"):
        raise Problem(500, "", "resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    metadata.pop("managedFields", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName'][:58]}{stamp.suffix}"
    metadata |= {"uid": stamp.uid, "creationTimestamp": stamp.now}
    if kind.has_generation:
        metadata["generation"] = 1
    made = {**obj, "metadata": metadata}
    if kind.has_status:
        made.pop("status", None)
    made = allocation.allocate(kind, own(_completed(kind, made)), uid=stamp.uid, address=stamp.address)
    causes = [*validation.metadata_causes(kind, made), *_content_causes(kind, made)]
    if causes:
        raise invalid(kind, metadata.get("name", ""), causes)
    return made


def changed_object(kind: Kind, old: Json, new: Json, *, subresource: str = "") -> Json:
    """Return `new` as it is kept in place of `old`: system fields from `old`, generation moved by a changed spec."""
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
    made = _merge_subresource(kind, old, {**new, "metadata": metadata}, subresource)
    made = allocation.carry_over(kind, old, _completed(kind, made))
    if "generation" in before and _spec_of(kind, old) != _spec_of(kind, made):
        made["metadata"] = {**made["metadata"], "generation": before["generation"] + 1}
    causes = [*validation.update_causes(kind, old, made), *_content_causes(kind, made)]
    causes += kindrules.change_causes(kind, old, made)
    if causes:
        raise invalid(kind, before["name"], causes)
    return made


def _merge_subresource(kind: Kind, old: Json, new: Json, subresource: str) -> Json:
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


def _completed(kind: Kind, obj: Json) -> Json:
    if kind.definition is None:
        return defaults.complete(kind, obj)
    body = {name: value for name, value in obj.items() if name not in _UNTYPED}
    return {**{name: obj[name] for name in _UNTYPED}, **crdschema.completed(body, kind.definition)}


def _content_causes(kind: Kind, obj: Json) -> list[Any]:
    if kind.definition is not None:
        return list(crdschema.causes(obj, kind.definition))
    return list(kindrules.causes(kind, obj))


def _spec_of(kind: Kind, obj: Json) -> Json:
    hidden = ("metadata", "status", "apiVersion") if kind.has_status or not kind.custom else ("metadata", "apiVersion")
    return {name: value for name, value in obj.items() if name not in hidden}
