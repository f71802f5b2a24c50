"""Read the CloudEvent in a log record: its attributes, the whole escaped event, or a block of lines. Pure.

A truncated record still gives the fields that can be read in it.
"""

import hashlib
import re
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from maestropy.journal.redact import HIDDEN
from maestropy.trace.logs.log_records import (
    APPLIED,
    APPLIED_AND_GONE,
    NOT_APPLIED,
    NOT_AVAILABLE,
    NOT_TRIED,
    objects_detail,
)
from maestropy.trace.logs.objects import identity_of_kind
from maestropy.trace.logs.read.klog_fields import KlogFields, number
from maestropy.wire.events import json_format

OP_KEY = "logging.open-cluster-management.io/op-id"
_TYPE = re.compile(rb"(spec|status)\.([a-z_]+)")
_LOOSE = re.compile(
    rb'(?:(?<!\\)"|^\s+)(resourceid|resourceversion|sequenceid|clustername)"?\s*:\s*"?([0-9A-Za-z._-]+)', re.MULTILINE
)
"""Members of the event itself: the quotes of JSON within its strings have a backslash."""
_BLOCK = re.compile(rb"^\s+([a-z]+): (.*)$", re.MULTILINE)
_MOST_OBJECTS = 50
_MOST_REASONS = 3
_LONGEST_REASON = 500
_ACTIONS = {
    "create_request": "create",
    "update_request": "update",
    "delete_request": "delete",
    "resync_request": "resync-request",
    "resync_response": "resync",
}


class LoggedEvent(NamedTuple):
    """The fields of a CloudEvent in a log record."""

    subresource: str = ""
    action: str = ""
    resource: str = ""
    version: int = -1
    sequence: int = 0
    op_id: str = ""
    cloudevent_id: str = ""
    source: str = ""
    name: str = ""
    consumer: str = ""
    is_deleting: bool = False
    is_final: bool = False
    """The deletion is confirmed: no finalizer remains."""
    is_whole: bool = False
    content: str = ""
    """What the whole event shows: whether its version was applied, or the objects of its manifests."""


def of_fields(get: KlogFields) -> LoggedEvent:
    """Read the event in a klog record, in whichever form it is there."""
    kind = kind_of(get.raw(b"eventType"))
    extensions, event, context = get.raw(b"extensions"), get.raw(b"event"), get.raw(b"context")
    if extensions[:1] == b"{":
        cloudevent_id, source = get("eventID"), get("eventSource")
        try:
            return of_attributes(orjson.loads(extensions), kind, cloudevent_id=cloudevent_id, source=source)
        except (orjson.JSONDecodeError, TypeError, AttributeError):
            return _of_fragments(extensions, kind)
    if event[:2] == b'"{':
        text = get("event")
        try:
            return of_whole(orjson.loads(text))
        except (orjson.JSONDecodeError, TypeError, AttributeError):
            return _of_fragments(text.encode(), kind)
    block = next((value for value in (context, event) if value[:1] == b"<"), b"")
    return of_block(block) if block else LoggedEvent(*kind)


def of_whole(document: dict[str, Any]) -> LoggedEvent:
    """Read an event with its data: its manifests, or what its status says about them."""
    event = of_attributes(
        document,
        kind_of(str(document.get("type", "")).encode("utf-8", "replace")),
        cloudevent_id=str(document.get("id", "")),
        source=str(document.get("source", "")),
    )
    data = json_format.parsed_data(document)
    if event.subresource == "status" and isinstance(data, dict) and isinstance(data.get("conditions"), list):
        event = event._replace(is_final=event.is_deleting and _condition(data, "Deleted") is not None)
    return event._replace(is_whole=True, content=_content(data, event))


def _content(data: Any, event: LoggedEvent) -> str:
    if not isinstance(data, dict):
        return ""
    if event.subresource == "status":
        return _status_content(data, version=event.version)
    manifests = data.get("manifests")
    objects = [_identity(manifest) for manifest in manifests[:_MOST_OBJECTS]] if isinstance(manifests, list) else []
    return objects_detail(list(filter(None, objects)), _digest(data)) if any(objects) else ""


def _digest(data: dict[str, Any]) -> str:
    """Return what identifies the content of a request: a server makes no event for an update that has the same."""
    return hashlib.blake2b(orjson.dumps(data, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def _identity(manifest: Any) -> str:
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return ""
    return identity_of_kind(str(manifest.get("kind")), str(metadata.get("namespace") or ""), str(metadata["name"]))


def _status_content(data: dict[str, Any], *, version: int) -> str:
    """Return whether a status says that its version was applied; nothing where it says neither."""
    applied = _condition(data, "Applied")
    if applied is None:
        return ""
    if _is_older(applied, version):
        return NOT_TRIED  # the condition is that of the version before
    reasons = _denials(data, "Applied", version=version)
    # An agent sums its manifests up; one that contradicts the sum is the newer of the two.
    if applied.get("status") == "False" or reasons:
        return NOT_APPLIED + "; ".join(reasons or [_text(applied)])
    if applied.get("status") != "True":
        return ""
    return _availability(data, version=version)


def _availability(data: dict[str, Any], *, version: int) -> str:
    """Return what a status says about objects that were applied."""
    if _are_gone(data):
        return APPLIED_AND_GONE
    available = _condition(data, "Available")
    if available is None or available.get("status") != "False" or _is_older(available, version):
        return APPLIED
    return NOT_AVAILABLE + "; ".join(_denials(data, "Available", version=version) or [_text(available)])


def _denials(data: dict[str, Any], name: str, *, version: int) -> list[str]:
    """Return why manifests lack a condition, each reason once, as many as anybody would read."""
    statuses = [(status, _condition(status, name)) for status in _manifest_statuses(data)]
    reasons = [
        _reason(status, condition)
        for status, condition in statuses
        if condition and condition.get("status") == "False" and not _is_older(condition, version)
    ]
    return list(dict.fromkeys(reasons[:_MOST_REASONS]))


def _is_older(condition: dict[str, Any], version: int) -> bool:
    """Say whether a condition is about a version before this one, which the agent has not tried yet."""
    observed = condition.get("observedGeneration")
    return isinstance(observed, int) and 0 < observed < version


def _condition(holder: dict[str, Any], name: str) -> dict[str, Any] | None:
    conditions = holder.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, dict) and condition.get("type") == name:
            return condition
    return None


def _are_gone(data: dict[str, Any]) -> bool:
    """Say whether none of the objects exists, which a status shows while its work is being deleted."""
    conditions = [_condition(status, "Available") for status in _manifest_statuses(data)]
    reasons = {condition.get("reason") if condition else None for condition in conditions}
    return reasons == {"ResourceNotAvailable"}


def _manifest_statuses(data: dict[str, Any]) -> list[dict[str, Any]]:
    statuses = data.get("resourceStatus")
    return [status for status in statuses if isinstance(status, dict)] if isinstance(statuses, list) else []


def _reason(status: dict[str, Any], condition: dict[str, Any]) -> str:
    """Return why an object lacks a condition; with its name where the message does not have it."""
    text, meta = _text(condition), status.get("resourceMeta")
    has_name = condition.get("type") == "Applied" and HIDDEN not in text
    if has_name or not isinstance(meta, dict):
        return text
    return f"{meta.get('kind')} {meta.get('namespace') or ''}/{meta.get('name')}: {text}"


def _text(condition: dict[str, Any]) -> str:
    message = str(condition.get("message") or condition.get("reason") or f"{condition.get('type')} is False")
    return message.removeprefix("Failed to apply manifest: ")[:_LONGEST_REASON]


def kind_of(event_type: bytes) -> tuple[str, str]:
    """Return subresource and action of an event type, which may be quoted."""
    at = event_type.find(b".manifestbundles.s")
    return ("", "") if at < 0 else _parsed_kind(event_type[at + 17 : at + 41])


@lru_cache(maxsize=64)
def _parsed_kind(text: bytes) -> tuple[str, str]:
    match = _TYPE.match(text)
    return (match.group(1).decode(), _ACTIONS.get(match.group(2).decode(), "")) if match else ("", "")


def of_attributes(extensions: dict[str, Any], kind: tuple[str, str], *, cloudevent_id: str, source: str) -> LoggedEvent:
    """Read an event by its extension attributes."""
    metadata = extensions.get("metadata") or {}
    if isinstance(metadata, str):
        metadata = orjson.loads(metadata)
    tracing = extensions.get("logtracing")
    op_id = orjson.loads(tracing).get(OP_KEY, "") if isinstance(tracing, str) and len(tracing) > 2 else ""
    deleting = "deletiontimestamp" in extensions or "deletionTimestamp" in metadata
    resource = str(extensions.get("resourceid") or metadata.get("uid") or "")
    name = str(metadata.get("name") or "")
    return LoggedEvent(
        kind[0],
        kind[1],
        resource,
        number(extensions.get("resourceversion"), -1),
        number(extensions.get("sequenceid"), 0),
        str(op_id),
        cloudevent_id,
        source,
        # Between server and agent the work name is the resource ID.
        "" if name == resource else name,
        str(extensions.get("clustername") or ""),
        deleting,
        deleting and not metadata.get("finalizers"),
    )


def of_block(text: bytes) -> LoggedEvent:
    """Read the `Context Attributes,` block of the older generations."""
    head, _, data = text.partition(b"\nData,")
    values = {key.decode(): value.decode("utf-8", "replace").strip() for key, value in _BLOCK.findall(head)}
    kind = kind_of(values.get("type", "").encode())
    try:
        event = of_attributes(values, kind, cloudevent_id=values.get("id", ""), source=values.get("source", ""))
        return event._replace(content=_block_content(data, event)) if data else event
    except (orjson.JSONDecodeError, AttributeError):
        return _of_fragments(head, kind)


def _block_content(data: bytes, event: LoggedEvent) -> str:
    start, end = data.find(b"{"), data.rfind(b"}")
    try:
        return _content(orjson.loads(data[start : end + 1]), event) if 0 <= start < end else ""
    except orjson.JSONDecodeError:
        return ""


def _of_fragments(event: bytes, kind: tuple[str, str]) -> LoggedEvent:
    """Read the fields that a truncated or damaged event still has."""
    values = {key.decode(): value.decode() for key, value in _LOOSE.findall(event)}
    try:
        return of_attributes(values, kind, cloudevent_id="", source="")
    except (orjson.JSONDecodeError, AttributeError):
        return LoggedEvent()
