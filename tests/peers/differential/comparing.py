"""Where do two answers differ? Pure: what only chance or the clock made different is set equal first."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format

from maestropy.wire._pb import cloudevents_pb2 as pb

TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00|\+00)?")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One field of one case in which the servers disagree."""

    case: str
    field: str
    go: Any
    ours: Any
    whole_go: dict[str, Any]
    """Everything that was seen of the case, to judge the part by."""
    whole_ours: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.case} | {self.field}\n    go:   {_short(self.go)}\n    ours: {_short(self.ours)}"


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 1:
        return f"{len(value)} items: " + " ".join(_short(each)[:200] for each in value)
    told = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
    return told if len(told) < 600 else f"{told[:600]}…"


ABSENT = "<absent>"


def compare(case: str, go: dict[str, Any], ours: dict[str, Any]) -> list[Mismatch]:
    """Return the smallest parts that differ, after what chance made has been set equal."""
    left, right = leveled(go), leveled(ours)
    return [
        Mismatch(case=case, field=field, go=one, ours=other, whole_go=left, whole_ours=right)
        for field, one, other in _parts(left, right)
    ]


def _parts(go: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if go == ours and type(go) is type(ours):
        return
    if isinstance(go, dict) and isinstance(ours, dict):
        for key in sorted(go.keys() | ours.keys()):
            yield from _parts(go.get(key, ABSENT), ours.get(key, ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(go, list) and isinstance(ours, list) and len(go) == len(ours):
        for left, right in zip(go, ours, strict=True):
            yield from _parts(left, right, f"{path}[]")
    else:
        yield path, go, ours


def leveled(value: Any) -> Any:
    """Return the value with moments and random ids replaced by what they are."""
    if isinstance(value, dict):
        return {UUID.sub("<uuid>", str(key)): leveled(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [leveled(each) for each in value]
    if isinstance(value, str):
        return UUID.sub("<uuid>", TIME.sub("<time>", value))
    return value


def readable(received: pb.CloudEvent) -> dict[str, Any]:
    """Return an event as a document; JSON inside it is opened, so that its spelling does not count."""
    found = json_format.MessageToDict(received, preserving_proto_field_name=True)
    found.pop("binary_data", None)
    if received.HasField("binary_data"):
        found["data"] = opened(received.binary_data.decode(errors="replace"))
    for name in ("ce-metadata", "ce-logtracing"):
        if name in found.get("attributes", {}):
            found["attributes"][name] = opened(received.attributes[name].ce_string)
    return found


def opened(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
