"""Parse the HyperFleet event that asks an adapter to reconcile a resource.

HyperFleet sends CloudEvents, as one JSON document or as HTTP headers with the data as the body. An event names the
resource and its generation only; the current resource is read from the API. Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import yaml

from maestropy.adapter.errors import MalformedEvent
from maestropy.untrusted import manifest_text
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import errors as wire_errors
from maestropy.wire import json_values, timestamps

_PREFIX = "com.redhat.hyperfleet."
_STRUCTURED = "application/cloudevents+json"
_SPEC_VERSION = "1.0"
LARGEST_GENERATION = 2**31 - 1
"""The API keeps generations as int32."""
_LONGEST_NAME = 255
"""Characters of an ID or a kind; a name of Kubernetes has at most 253."""
_LONGEST_TEXT = 2048
"""Characters of a path, and of the attributes of an event."""
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

    @property
    def is_deleting(self) -> bool | None:
        """Whether the deletion of the resource was requested; None if the event does not describe the resource."""
        if any(self.data.get(name) is not None for name in DELETION_TIMES):
            return True
        return False if "spec" in self.data else None


def parse(body: bytes | str, headers: Mapping[str, str] | None = None) -> Event:
    """Parse an event: a CloudEvent as a document or in HTTP headers, or its bare data.

    >>> parse('{"id": "abc", "kind": "Cluster", "generation": 5}').generation
    5
    """
    document = decode_object(body, label="the event")
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


def decode_object(body: bytes | str, *, label: str) -> dict[str, Any]:
    """Parse a JSON object whose keys are all there once; `label` names it in errors."""
    try:
        document = manifest_text.load_json(body if isinstance(body, str) else body.decode("utf-8"))
    except json.JSONDecodeError as error:
        reason = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise MalformedEvent(f"failed to unmarshal {label}: {reason}; give a JSON object") from error
    except UnicodeDecodeError as error:
        raise MalformedEvent(f"{label} is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except manifest_text.BadKey as error:
        raise MalformedEvent(f"{label} cannot be used: {error.problem}; {error.advice}") from error
    except (InputRejected, yaml.YAMLError) as error:
        raise MalformedEvent(f"{label} cannot be used: {error}") from error
    if not isinstance(document, dict):
        raise MalformedEvent(f"failed to unmarshal {label}: expected a JSON object")
    if problems := json_values.problems(document):
        raise MalformedEvent(f"{label} cannot be used: {', '.join(problems)}")
    return document


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
    problems = [*_length_problems(envelope, data), *_envelope_problems(envelope), *_problems(data)]
    problems += description_problems(data)
    kind = data.get("kind") or _kind_in(envelope.get("type"))
    if not isinstance(kind, str) or not kind:
        problems.append("kind is missing")
    elif (named := _reconciled_kind(envelope.get("type"))) not in ("", kind.lower()):
        problems.append(f"kind is {_shown(kind)}, and the type of the event is that of a {_shown(named)}")
    if problems:
        event_id = f" (event {str(envelope['id'])[:64]})" if envelope.get("id") else ""
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
    labels = raw.get("labels")
    if not isinstance(labels, Mapping | None):
        problems.append(f"labels is {_shown(labels)}, and must be an object")
    else:
        problems += [
            f"labels.{str(name)[:64]} is {_shown(value)}, and must be a string"
            for name, value in (labels or {}).items()
            if not isinstance(value, str)
        ]
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


def _envelope_problems(envelope: Mapping[str, Any]) -> list[str]:
    version = envelope.get("specversion", _SPEC_VERSION)
    problems = [] if version == _SPEC_VERSION else [f"specversion is {_shown(version)}, and must be '{_SPEC_VERSION}'"]
    return problems + [
        f"{name} is {_shown(envelope[name])}, and must be a string that is not empty"
        for name in ("id", "source", "type")
        if name in envelope and (not isinstance(envelope[name], str) or not envelope[name])
    ]


def _length_problems(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> list[str]:
    """Return which texts are too long for a path of the API or a line of a log."""
    texts = [
        ("id", data.get("id"), _LONGEST_NAME),
        ("kind", data.get("kind"), _LONGEST_NAME),
        ("owner_references.id", _owner(data.get("owner_references")), _LONGEST_NAME),
        ("href", data.get("href"), _LONGEST_TEXT),
        *((f"{name} of the event", envelope.get(name), _LONGEST_TEXT) for name in ("id", "source", "type")),
    ]
    return [
        f"{name} has {len(text)} characters, and must have at most {most}"
        for name, text, most in texts
        if isinstance(text, str) and len(text) > most
    ]


def _problems(data: Mapping[str, Any]) -> list[str]:
    problems = []
    if not isinstance(data.get("id"), str) or not data["id"]:
        problems.append("id is missing" if not data.get("id") else "id must be a string")
    elif not _is_path_segment(data["id"]):
        problems.append(f"id is {_shown(data['id'])}, and must be one segment of a path of the API")
    elif not _is_path_of(data["id"], _text(data.get("href"))):
        problems.append(f"href is {_shown(data['href'])}, and must be the path of the resource: it ends with the id")
    if (owner := _owner(data.get("owner_references"))) and not _is_path_segment(owner):
        problems.append(f"owner_references.id is {_shown(owner)}, and must be one segment of a path of the API")
    generation = data.get("generation")
    if generation is None or generation == "":
        problems.append("generation is missing")
    elif isinstance(generation, bool) or not isinstance(generation, int):
        problems.append(f"generation is {_shown(generation)}, and must be a whole number")
    elif not 0 < generation <= LARGEST_GENERATION:
        problems.append(f"generation is {_shown(generation)}, and must be from 1 to {LARGEST_GENERATION}")
    return problems


def _is_path_segment(text: str) -> bool:
    """Whether a text can stand in a path of the API and mean nothing else: requests go where it says, with a token."""
    return text not in (".", "..") and text.isprintable() and not set(text) & set("/?#%\\ ")


def _is_path_of(resource_id: str, href: str) -> bool:
    """Whether `href`, if it is not empty, is a path or URL of the resource and of nothing else."""
    try:
        path = href if href.startswith("/") else urlsplit(href).path
    except ValueError:
        return False
    first, *segments = path.split("/")
    # An empty segment at the beginning would make the next one a host.
    is_path = not first and all(segments) and all(map(_is_path_segment, segments))
    return not href or (is_path and segments[-1] == resource_id)


def _reconciled_kind(event_type: object) -> str:
    """Return the kind in the type of an event of HyperFleet's Sentinel, in lower case; empty for another type."""
    kind, _, what = _text(event_type).removeprefix(_PREFIX).partition(".")
    return kind.lower() if what == "reconcile" and _text(event_type).startswith(_PREFIX) else ""


def _kind_in(event_type: object) -> str:
    """Return the kind that an event's type names; capitalized, because the type is in lower case."""
    text = _text(event_type)
    return text.removeprefix(_PREFIX).partition(".")[0].capitalize() if text.startswith(_PREFIX) else ""


def _owner(references: object) -> str:
    first = references[0] if isinstance(references, list) and references else references
    return _text(first.get("id")) if isinstance(first, Mapping) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
