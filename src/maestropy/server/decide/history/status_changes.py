"""Decide which statuses the history records: those that change a condition, a feedback value or the version.

An agent also reports when only a time or a message changed; that is no transition. A status that changes nothing but
feedback is recorded once a minute for each work at most, because a feedback rule may read a counter. Pure.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from maestropy.server.decide.history import kinds

MAX_CHANGES: Final = 16
FEEDBACK_SECONDS: Final = 60.0
_DIGEST_BYTES: Final = 6
_KIND_OF_SECRETS: Final = "Secret"

Key = tuple[str, str]
"""An object, empty for the work itself, and the name of a condition or of a feedback value."""


# Null stands for an absent value, as in Go.
class _Condition(msgspec.Struct):
    type: str | None = None
    status: str | None = None
    reason: str | None = None


class _Meta(msgspec.Struct):
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None


class _Value(msgspec.Struct, rename={"value": "fieldValue"}):
    name: str | None = None
    value: Any = None


class _Feedback(msgspec.Struct):
    values: list[_Value] | None = None


class _Manifest(msgspec.Struct, rename="camel"):
    resource_meta: _Meta | None = None
    conditions: list[_Condition] | None = None
    status_feedback: _Feedback | None = None


class _Status(msgspec.Struct, rename="camel"):
    conditions: list[_Condition] | None = None
    resource_status: list[_Manifest] | None = None


_decode = msgspec.json.Decoder(_Status).decode


@dataclass(frozen=True, slots=True)
class Outline:
    """What of a status counts as its state."""

    version: int = 0
    conditions: dict[Key, tuple[str, str]] = field(default_factory=dict)
    """Status and reason."""
    feedback: dict[Key, str] = field(default_factory=dict)
    """Digests of the values; empty for those of a Secret, of which not even a digest is kept."""
    is_readable: bool = True


EMPTY: Final = Outline()


@dataclass(frozen=True, slots=True)
class Transition:
    """A status that is recorded."""

    detail: str
    is_only_feedback: bool


def outline(data: bytes, *, version: int) -> Outline:
    """Return the outline of a status."""
    if not data:
        return Outline(version)
    try:
        status = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Outline(version, is_readable=False)
    conditions: dict[Key, tuple[str, str]] = {
        ("", each.type or ""): (each.status or "", each.reason or "") for each in status.conditions or ()
    }
    feedback: dict[Key, str] = {}
    for manifest in status.resource_status or ():
        meta = manifest.resource_meta or _Meta()
        name = f"{meta.kind or ''} {meta.namespace}/{meta.name or ''}" if meta.namespace else _unplaced(meta)
        for each in manifest.conditions or ():
            conditions[name, each.type or ""] = (each.status or "", each.reason or "")
        if manifest.status_feedback is not None:
            for value in manifest.status_feedback.values or ():
                feedback[name, value.name or ""] = "" if meta.kind == _KIND_OF_SECRETS else _digest(value.value)
    return Outline(version, conditions, feedback)


def transition(before: Outline, after: Outline) -> Transition | None:
    """Return what to record of a status; None if it changes neither a condition nor feedback nor the version."""
    conditions = list(_condition_changes(before, after)) if before.conditions != after.conditions else []
    feedback = list(_feedback_changes(before, after)) if before.feedback != after.feedback else []
    is_new_version = before.version != after.version
    if not (conditions or feedback or is_new_version) and after.is_readable:
        return None
    detail = kinds.detail(
        {
            "observed_version": after.version if is_new_version else 0,
            "conditions": conditions[:MAX_CHANGES],
            "feedback": feedback[:MAX_CHANGES],
            "truncated": max(len(conditions), len(feedback)) > MAX_CHANGES,
            "unreadable": not after.is_readable,
        }
    )
    return Transition(detail, is_only_feedback=bool(feedback) and not (conditions or is_new_version))


def is_due(found: Transition, *, recorded_seconds_ago: float | None) -> bool:
    """Return whether a transition is recorded now, given the time since the work's last one."""
    if not found.is_only_feedback or recorded_seconds_ago is None:
        return True
    return recorded_seconds_ago >= FEEDBACK_SECONDS


def _condition_changes(before: Outline, after: Outline) -> Iterator[dict[str, str]]:
    for key, (status, reason) in after.conditions.items():
        old_status, old_reason = before.conditions.get(key, ("", ""))
        if (old_status, old_reason) != (status, reason):
            yield _change(key, {"type": key[1], "from": old_status, "to": status, "reason": reason})
    for key, (old_status, _) in before.conditions.items():
        if key not in after.conditions:
            yield _change(key, {"type": key[1], "from": old_status, "to": ""})


def _feedback_changes(before: Outline, after: Outline) -> Iterator[dict[str, str]]:
    for key, digest in after.feedback.items():
        if before.feedback.get(key) != digest:
            yield _change(key, {"name": key[1], "digest": digest} if digest else {"name": key[1]})
    for key in before.feedback:
        if key not in after.feedback:
            yield _change(key, {"name": key[1], "removed": "true"})


def _change(key: Key, members: dict[str, str]) -> dict[str, str]:
    return {"object": key[0], **members} if key[0] else members


def _unplaced(meta: _Meta) -> str:
    return f"{meta.kind or ''} {meta.name or ''}"


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="sorted")
    return hashlib.blake2b(encoded, digest_size=_DIGEST_BYTES).hexdigest()
