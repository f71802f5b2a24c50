"""Read the event that says: look at this resource again.

HyperFleet sends CloudEvents, as one JSON document or as HTTP headers with the data as the body. An event carries no
state, only which resource and which generation; what the resource is now is read from the API. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.errors import MalformedEvent
from maestropy.wire import errors as wire_errors
from maestropy.wire import jsontypes

_PREFIX = "com.redhat.hyperfleet."
_STRUCTURED = "application/cloudevents+json"
LARGEST_GENERATION = 2**31 - 1
"""The API keeps generations as int32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One wish that a resource be looked at."""

    resource_id: str
    kind: str
    """`Cluster`, `NodePool`, …"""
    generation: int
    href: str = ""
    """Where the API has the resource; empty if the event does not say."""
    owner_id: str = ""
    """The cluster a node pool belongs to; empty for what belongs to nobody."""
    id: str = ""
    """The id of the event itself, for logs."""
    source: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Everything it carries."""


def parse(body: bytes | str, headers: Mapping[str, str] | None = None) -> Event:
    """Read an event: a CloudEvent as a document or in HTTP's headers, or its bare data.

    >>> parse('{"id": "abc", "kind": "Cluster", "generation": 5}').generation
    5
    """
    try:
        document = jsontypes.decode_object(body, what="the event")
    except wire_errors.WireError as error:
        raise MalformedEvent(f"{error}; send a CloudEvent with a JSON body") from error
    given = {name.lower(): value for name, value in (headers or {}).items()}
    if "ce-specversion" in given and not given.get("content-type", "").startswith(_STRUCTURED):
        named = {name.removeprefix("ce-"): value for name, value in given.items() if name.startswith("ce-")}
        return _event(named, document)
    if "specversion" in document:
        data = document.get("data")
        if not isinstance(data, Mapping):
            raise MalformedEvent("data of the event is no object; it needs id, kind and generation")
        return _event(document, data)
    return _event({}, document)


def from_environment(environ: Mapping[str, str]) -> Event | None:
    """Return the event that a Job is told of by variables, if it is: EVENT, or RESOURCE_ID (CLUSTER_ID) and others."""
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
    problems = [*_problems(data)]
    kind = data.get("kind") or _kind_in(envelope.get("type"))
    if not isinstance(kind, str) or not kind:
        problems.append("kind is missing")
    if problems:
        told = f" (event {envelope['id']})" if envelope.get("id") else ""
        raise MalformedEvent(f"the data of the event cannot be used{told}: {', '.join(problems)}")
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


def _problems(data: Mapping[str, Any]) -> list[str]:
    found = []
    if not isinstance(data.get("id"), str) or not data["id"]:
        found.append("id is missing" if not data.get("id") else "id must be a text")
    generation = data.get("generation")
    if generation is None or generation == "":
        found.append("generation is missing")
    elif isinstance(generation, bool) or not isinstance(generation, int):
        found.append(f"generation is {generation!r}, and must be a whole number")
    elif not 0 < generation <= LARGEST_GENERATION:
        found.append(f"generation is {generation}, and must be from 1 to {LARGEST_GENERATION}")
    return found


def _kind_in(event_type: object) -> str:
    """Return the kind as an event's type has it; lower case, because the type has nothing better."""
    text = _text(event_type)
    return text.removeprefix(_PREFIX).partition(".")[0].capitalize() if text.startswith(_PREFIX) else ""


def _owner(references: object) -> str:
    first = references[0] if isinstance(references, list) and references else references
    return _text(first.get("id")) if isinstance(first, Mapping) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
