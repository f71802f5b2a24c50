"""Parse the HyperFleet event that asks an adapter to reconcile a resource.

HyperFleet sends CloudEvents, as one JSON document or as HTTP headers with the data as the body. An event names the
resource and its generation only; the current resource is read from the API. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.errors import MalformedEvent
from maestropy.wire import errors as wire_errors
from maestropy.wire import json_types, timestamps

_PREFIX = "com.redhat.hyperfleet."
_STRUCTURED = "application/cloudevents+json"
LARGEST_GENERATION = 2**31 - 1
"""The API keeps generations as int32."""
DELETION_TIMES = ("deleted_time", "deleted_at")
"""Either names the time at which the deletion of a resource was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A request to reconcile one resource."""

    resource_id: str
    kind: str
    """`Cluster`, `NodePool`, …"""
    generation: int
    href: str = ""
    """The path of the resource in the API; empty if the event does not name it."""
    owner_id: str = ""
    """The cluster a node pool belongs to; empty for a resource without an owner."""
    id: str = ""
    """The ID of the event itself, for logs."""
    source: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The complete data of the event."""


def parse(body: bytes | str, headers: Mapping[str, str] | None = None) -> Event:
    """Parse an event: a CloudEvent as a document or in HTTP headers, or its bare data.

    >>> parse('{"id": "abc", "kind": "Cluster", "generation": 5}').generation
    5
    """
    try:
        document = json_types.decode_object(body, label="the event")
    except wire_errors.WireError as error:
        raise MalformedEvent(f"{error}; send a CloudEvent with a JSON body") from error
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    if "ce-specversion" in lowered and not lowered.get("content-type", "").startswith(_STRUCTURED):
        named = {name.removeprefix("ce-"): value for name, value in lowered.items() if name.startswith("ce-")}
        return _event(named, document)
    if "specversion" in document:
        data = document.get("data")
        if not isinstance(data, Mapping):
            raise MalformedEvent("data of the event is not an object; it needs id, kind and generation")
        return _event(document, data)
    return _event({}, document)


def from_environment(environ: Mapping[str, str]) -> Event | None:
    """Return the event in the variables of a Job, if there is one: EVENT, or RESOURCE_ID (CLUSTER_ID) and others."""
    if environ.get("EVENT"):
        return parse(environ["EVENT"])
    resource_id = environ.get("RESOURCE_ID") or environ.get("CLUSTER_ID")
    if not resource_id:
        return None
    generation = environ.get("GENERATION") or environ.get("OBSERVED_GENERATION") or ""
    data: dict[str, Any] = {
        "id": resource_id,
        "kind": environ.get("RESOURCE_KIND") or "Cluster",
        "href": environ.get("RESOURCE_HREF") or "",
        "generation": int(generation) if generation.isascii() and generation.isdigit() else generation,
    }
    if environ.get("OWNER_ID"):
        data["owner_references"] = {"id": environ["OWNER_ID"]}
    return _event({}, data)


def _event(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> Event:
    problems = [*_problems(data), *description_problems(data)]
    kind = data.get("kind") or _kind_in(envelope.get("type"))
    if not isinstance(kind, str) or not kind:
        problems.append("kind is missing")
    if problems:
        event_id = f" (event {envelope['id']})" if envelope.get("id") else ""
        raise MalformedEvent(f"the data of the event cannot be used{event_id}: {', '.join(problems)}")
    return Event(
        resource_id=data["id"],
        kind=str(kind),
        generation=data["generation"],
        href=_text(data.get("href")),
        owner_id=_owner(data.get("owner_references")),
        id=_text(envelope.get("id")),
        source=_text(envelope.get("source")),
        data=data,
    )


def description_problems(raw: Mapping[str, Any]) -> list[str]:
    """Return what is wrong in the description of a resource, in an event or in an object of the API.

    A malformed field is never read as an empty one: an adapter would apply its defaults, or delete its works.
    """
    problems = []
    if "spec" in raw and not isinstance(raw["spec"], Mapping):
        problems.append(f"spec is {_shown(raw['spec'])}, and must be an object")
    if not isinstance(raw.get("labels"), Mapping | None):
        problems.append(f"labels is {_shown(raw['labels'])}, and must be an object")
    problems += [
        f"{name} is {_shown(raw[name])}, and must be an RFC 3339 time, or null if it is not deleted"
        for name in DELETION_TIMES
        if raw.get(name) is not None and not _is_time(raw[name])
    ]
    return problems


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(timestamps.parse(value))
    except wire_errors.WireError:
        return False


def _shown(value: object) -> str:
    return "null" if value is None else repr(value)[:64]


def _problems(data: Mapping[str, Any]) -> list[str]:
    problems = []
    if not isinstance(data.get("id"), str) or not data["id"]:
        problems.append("id is missing" if not data.get("id") else "id must be a string")
    generation = data.get("generation")
    if generation is None or generation == "":
        problems.append("generation is missing")
    elif isinstance(generation, bool) or not isinstance(generation, int):
        problems.append(f"generation is {generation!r}, and must be a whole number")
    elif not 0 < generation <= LARGEST_GENERATION:
        problems.append(f"generation is {generation}, and must be from 1 to {LARGEST_GENERATION}")
    return problems


def _kind_in(event_type: object) -> str:
    """Return the kind that an event's type names; capitalized, because the type is in lower case."""
    text = _text(event_type)
    return text.removeprefix(_PREFIX).partition(".")[0].capitalize() if text.startswith(_PREFIX) else ""


def _owner(references: object) -> str:
    first = references[0] if isinstance(references, list) and references else references
    return _text(first.get("id")) if isinstance(first, Mapping) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
