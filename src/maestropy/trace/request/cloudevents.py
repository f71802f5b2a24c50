"""What a record says of a CloudEvent: by its attributes, whole and escaped, or as a block of lines. Pure.

A record that is cut off still gives what can be found in it.
"""

import re
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from maestropy.trace.request.klogtext import plain, unquoted

_OP_KEY = "logging.open-cluster-management.io/op-id"
_TYPE = re.compile(rb"(spec|status)\.([a-z_]+)")
_LOOSE = re.compile(rb'(resourceid|resourceversion|sequenceid|clustername)\\*"*\s*:\s*\\*"*([0-9A-Za-z._-]+)')
_BLOCK = re.compile(rb"^\s+([a-z]+): (.*)$", re.MULTILINE)
_ACTIONS = {
    "create_request": "create",
    "update_request": "update",
    "delete_request": "delete",
    "resync_request": "resync-request",
    "resync_response": "resync",
}


class Event(NamedTuple):
    """What a record says of a CloudEvent."""

    subresource: str = ""
    action: str = ""
    resource: str = ""
    version: int = -1
    sequence: int = 0
    op: str = ""
    ce: str = ""
    source: str = ""
    name: str = ""
    consumer: str = ""
    is_deleting: bool = False
    is_final: bool = False
    """The deletion is confirmed: no finalizer is left."""
    is_whole: bool = False
    condition: str = ""
    """Why the agent could not apply it, where the whole status is shown."""


def of_text(line: bytes) -> Event:
    """Read the event in a klog record, in whichever form it is there."""
    kind = kind_of(line)
    at = line.find(b"extensions={")
    try:
        if at >= 0:
            extensions = orjson.loads(line[at + 11 : line.rfind(b"}") + 1])
            ce, source = plain(line, b' eventID="'), plain(line, b' eventSource="')
            return of_attributes(extensions, kind, ce=ce, source=source)
        at = line.find(b'event="{')
        if at >= 0:
            return of_whole(orjson.loads(unquoted(line, at + 6)), kind)
    except (orjson.JSONDecodeError, TypeError, AttributeError):
        return _of_fragments(line, kind)
    return of_block(line, kind)


def of_whole(document: dict[str, Any], kind: tuple[str, str]) -> Event:
    """Read an event with its data, whose conditions tell why something was not applied."""
    found = of_attributes(document, kind, ce=str(document.get("id", "")), source=str(document.get("source", "")))
    data = document.get("data")
    conditions = data.get("conditions") if isinstance(data, dict) else None
    problem = ""
    for each in conditions or ():
        if isinstance(each, dict) and each.get("type") == "Applied" and each.get("status") == "False":
            problem = str(each.get("message") or each.get("reason") or "Applied is False")
    return found._replace(is_whole=True, condition=problem)


def kind_of(line: bytes) -> tuple[str, str]:
    """Return subresource and action of the event type in `line`."""
    at = line.find(b".manifestbundles.s")
    return ("", "") if at < 0 else _parsed_kind(line[at + 17 : at + 41])


@lru_cache(maxsize=64)
def _parsed_kind(text: bytes) -> tuple[str, str]:
    found = _TYPE.match(text)
    return (found.group(1).decode(), _ACTIONS.get(found.group(2).decode(), "")) if found else ("", "")


def of_attributes(extensions: dict[str, Any], kind: tuple[str, str], *, ce: str, source: str) -> Event:
    """Read an event by its extension attributes."""
    metadata = extensions.get("metadata") or {}
    if isinstance(metadata, str):
        metadata = orjson.loads(metadata)
    tracing = extensions.get("logtracing")
    op = orjson.loads(tracing).get(_OP_KEY, "") if isinstance(tracing, str) and len(tracing) > 2 else ""
    version = extensions.get("resourceversion", -1)
    if type(version) is not int:
        version = int(version) if str(version).isdigit() else -1
    sequence = str(extensions.get("sequenceid") or "0")
    deleting = "deletiontimestamp" in extensions or "deletionTimestamp" in metadata
    resource = str(extensions.get("resourceid") or metadata.get("uid") or "")
    name = str(metadata.get("name") or "")
    return Event(
        kind[0],
        kind[1],
        resource,
        version,
        int(sequence) if sequence.isdigit() and len(sequence) < 20 else 0,
        str(op),
        ce,
        source,
        # Between server and agent a work is named by its id, which is no news.
        "" if name == resource else name,
        str(extensions.get("clustername") or ""),
        deleting,
        deleting and not metadata.get("finalizers"),
    )


def of_block(line: bytes, kind: tuple[str, str]) -> Event:
    """Read the `Context Attributes,` block of the older generations."""
    values = {key.decode(): value.decode("utf-8", "replace").strip() for key, value in _BLOCK.findall(line)}
    try:
        return of_attributes(values, kind, ce=values.get("id", ""), source=values.get("source", ""))
    except (orjson.JSONDecodeError, AttributeError):
        return _of_fragments(line, kind)


def _of_fragments(line: bytes, kind: tuple[str, str]) -> Event:
    """Take what can be found in a record that is cut off or damaged."""
    values = {key.decode(): value.decode() for key, value in _LOOSE.findall(line)}
    try:
        return of_attributes(values, kind, ce="", source="")
    except (orjson.JSONDecodeError, AttributeError):
        return Event()
