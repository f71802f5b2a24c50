"""The status of a ManifestWork: conditions, status feedback, and how a new condition is merged into the old ones.

A status wraps the JSON object it was read from; unknown members are kept. The time is always an argument, because it
becomes the transition time of a condition.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maestropy.wire import json_types, timestamps
from maestropy.wire.json_types import Object
from maestropy.wire.works import status_hash

APPLIED = "Applied"
AVAILABLE = "Available"
DATA_SAFETY_HOLD = "DataSafetyHold"
"""Condition of a work that the agent keeps as it is, although the database asks for something else."""
OLDER_VERSION = "OlderVersion"
"""Reason of `DATA_SAFETY_HOLD`: a newer version is applied; it stays until the source publishes again."""
DELETING = "Deleting"
DELETED = "Deleted"
COMPLETE = "Complete"
STATUS_FEEDBACK_SYNCED = "StatusFeedbackSynced"

TRUE = "True"
FALSE = "False"
UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
    """RFC 3339, whole seconds; empty until the condition is merged into a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceMeta:
    """The object on the cluster that a manifest describes."""

    ordinal: int
    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all seven members, because Go always writes them, even when they are empty."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackValue:
    """One feedback value of an object."""

    name: str
    type: str
    value: int | str | bool | None
    """A `JsonRaw` value is its JSON text."""

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON of a status."""
        return {"name": self.name, "fieldValue": {"type": self.type, _value_key(self.type): self.value}}


@dataclass(frozen=True, slots=True)
class ManifestStatus:
    """The status of one manifest."""

    body: Object

    @property
    def resource_meta(self) -> ResourceMeta:
        """The object on the cluster."""
        meta = json_types.object_at(self.body, "resourceMeta")
        texts = {name: json_types.text_at(meta, name) for name in ResourceMeta.__slots__ if name != "ordinal"}
        return ResourceMeta(ordinal=json_types.integer_at(meta, "ordinal"), **texts)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of this manifest."""
        return read_conditions(json_types.objects_at(self.body, "conditions"))

    @property
    def feedback(self) -> tuple[FeedbackValue, ...]:
        """The feedback values of this manifest."""
        return tuple(map(_read_feedback, json_types.objects_at(self.body, "statusFeedback", "values")))


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """The status of a work."""

    body: Object = field(default_factory=dict)
    """The `status` object of a ManifestWork."""
    _digest: list[tuple[str, int]] = field(default_factory=list, init=False, repr=False, compare=False)
    """Hash and size, once they are known: for a large status they take milliseconds."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the whole work."""
        return read_conditions(json_types.objects_at(self.body, "conditions"))

    @property
    def manifests(self) -> tuple[ManifestStatus, ...]:
        """One status per manifest, in the order of the spec."""
        return tuple(map(ManifestStatus, json_types.objects_at(self.body, "resourceStatus", "manifests")))

    @property
    def is_deleted(self) -> bool:
        """Whether the agent has deleted the work and its objects (condition Deleted)."""
        return self.is_true(DELETED)

    def is_true(self, condition_type: str) -> bool:
        """Return whether the work has this condition with status True."""
        conditions = json_types.objects_at(self.body, "conditions")
        return any(
            condition.get("type") == condition_type and condition.get("status") == TRUE for condition in conditions
        )

    def hash(self) -> str:
        """Return the status hash, which status updates and status resync requests carry."""
        return self._hash_and_size[0]

    @property
    def size(self) -> int:
        """The bytes of this status as JSON."""
        return self._hash_and_size[1]

    @property
    def _hash_and_size(self) -> tuple[str, int]:
        if not self._digest:
            self._digest.append(status_hash.hash_and_size(self.body))
        return self._digest[0]

    def with_condition(self, condition: Condition, *, now: timestamps.Timestamp) -> "WorkStatus":
        """Return this status with one condition merged in."""
        conditions = json_types.objects_at(self.body, "conditions")
        return WorkStatus({**self.body, "conditions": merge_condition(conditions, condition, now=now)})

    def with_manifests(self, manifests: Iterable[ManifestStatus]) -> "WorkStatus":
        """Return this status with its manifest statuses replaced."""
        resources = json_types.object_at(self.body, "resourceStatus")
        bodies = [manifest.body for manifest in manifests]
        return WorkStatus({**self.body, "resourceStatus": {**resources, "manifests": bodies}})


def manifest_status(
    meta: ResourceMeta, *, conditions: Sequence[Object] = (), feedback: Sequence[FeedbackValue] = ()
) -> ManifestStatus:
    """Build the status of one manifest."""
    values = {"values": [value.to_json() for value in feedback]} if feedback else {}
    return ManifestStatus({"resourceMeta": meta.to_json(), "statusFeedback": values, "conditions": list(conditions)})


def read_conditions(conditions: Iterable[Object]) -> tuple[Condition, ...]:
    """Read a list of conditions."""
    return tuple(map(_read_condition, conditions))


def merge_condition(conditions: Sequence[Object], condition: Condition, *, now: timestamps.Timestamp) -> list[Object]:
    """Return the conditions with `condition` set: at its old position, or at the end.

    The transition time changes only when the status of the condition changes.
    """
    return merge_conditions(conditions, [condition], now=now)


def merge_conditions(
    conditions: Sequence[Object], changed: Iterable[Condition], *, now: timestamps.Timestamp
) -> list[Object]:
    """Return the conditions with all of `changed` set, as `merge_condition` sets one."""
    merged = list(conditions)
    positions: dict[object, int] = {}
    for index, old in enumerate(conditions):
        positions.setdefault(old.get("type"), index)
    for condition in changed:
        position = positions.setdefault(condition.type, len(merged))
        if position == len(merged):
            since = condition.last_transition_time or now.rfc3339_seconds()
            merged.append(json_types.merged({}, _condition_members(condition, since=since)))
            continue
        old = merged[position]
        is_unchanged = old.get("status") == condition.status and old.get("lastTransitionTime")
        since = str(old["lastTransitionTime"]) if is_unchanged else now.rfc3339_seconds()
        merged[position] = json_types.merged(old, _condition_members(condition, since=since))
    return merged


def _condition_members(condition: Condition, *, since: str) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "observedGeneration": condition.observed_generation or None,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": condition.message,
    }


def _read_condition(condition: Object) -> Condition:
    return Condition(
        type=json_types.text_at(condition, "type"),
        status=json_types.text_at(condition, "status"),
        reason=json_types.text_at(condition, "reason"),
        message=json_types.text_at(condition, "message"),
        observed_generation=json_types.integer_at(condition, "observedGeneration"),
        last_transition_time=json_types.text_at(condition, "lastTransitionTime"),
    )


def _read_feedback(feedback: Object) -> FeedbackValue:
    value = json_types.object_at(feedback, "fieldValue")
    kind = json_types.text_at(value, "type")
    return FeedbackValue(name=json_types.text_at(feedback, "name"), type=kind, value=value.get(_value_key(kind)))


def _value_key(kind: str) -> str:
    return kind[:1].lower() + kind[1:]
