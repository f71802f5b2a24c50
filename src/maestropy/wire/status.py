"""What became of a work: conditions and feedback values, and how new ones merge with old ones.

A status wraps the JSON object it was read from; members this version does not know stay where they are. Time is an
argument everywhere, because a condition's transition time is part of its meaning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maestropy.wire import hashing, instant, jsontypes
from maestropy.wire.jsontypes import Object

APPLIED = "Applied"
AVAILABLE = "Available"
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
    """Which object of the cluster a manifest became."""

    ordinal: int
    group: str = ""
    version: str = ""
    kind: str = ""
    resource: str = ""
    name: str = ""
    namespace: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all seven members: readers expect them even when they are empty."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackValue:
    """One value read from an object."""

    name: str
    type: str
    value: int | str | bool | None
    """A `JsonRaw` value is its JSON text."""

    def to_json(self) -> dict[str, Any]:
        """Return the value as a status carries it."""
        return {"name": self.name, "fieldValue": {"type": self.type, _value_key(self.type): self.value}}


@dataclass(frozen=True, slots=True)
class ManifestStatus:
    """What became of one manifest."""

    body: Object

    @property
    def resource_meta(self) -> ResourceMeta:
        """The object this manifest became."""
        meta = jsontypes.object_at(self.body, "resourceMeta")
        texts = {name: jsontypes.text_at(meta, name) for name in ResourceMeta.__slots__ if name != "ordinal"}
        return ResourceMeta(ordinal=jsontypes.integer_at(meta, "ordinal"), **texts)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of this manifest."""
        return read_conditions(jsontypes.objects_at(self.body, "conditions"))

    @property
    def feedback(self) -> tuple[FeedbackValue, ...]:
        """The values its feedback rules asked for."""
        return tuple(map(_read_feedback, jsontypes.objects_at(self.body, "statusFeedback", "values")))


@dataclass(frozen=True, slots=True)
class WorkStatus:
    """What became of a work."""

    body: Object = field(default_factory=dict)
    """The `status` object of a ManifestWork."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the whole work."""
        return read_conditions(jsontypes.objects_at(self.body, "conditions"))

    @property
    def manifests(self) -> tuple[ManifestStatus, ...]:
        """One status per manifest, in the order of the spec."""
        return tuple(map(ManifestStatus, jsontypes.objects_at(self.body, "resourceStatus", "manifests")))

    @property
    def is_deleted(self) -> bool:
        """Whether everything is gone from the cluster."""
        return self.is_true(DELETED)

    def is_true(self, condition_type: str) -> bool:
        """Say whether the work has this condition and it is true."""
        found = jsontypes.objects_at(self.body, "conditions")
        return any(each.get("type") == condition_type and each.get("status") == TRUE for each in found)

    def hash(self) -> str:
        """Return the fingerprint that reports and resyncs carry."""
        return hashing.hash_of_status(self.body)

    def with_condition(self, condition: Condition, *, now: instant.Timestamp) -> "WorkStatus":
        """Return this status with one condition merged in."""
        found = jsontypes.objects_at(self.body, "conditions")
        return WorkStatus({**self.body, "conditions": merge_condition(found, condition, now=now)})

    def with_manifests(self, manifests: Iterable[ManifestStatus]) -> "WorkStatus":
        """Return this status with other statuses of its manifests."""
        resources = jsontypes.object_at(self.body, "resourceStatus")
        bodies = [manifest.body for manifest in manifests]
        return WorkStatus({**self.body, "resourceStatus": {**resources, "manifests": bodies}})


def manifest_status(
    meta: ResourceMeta, *, conditions: Sequence[Object] = (), feedback: Sequence[FeedbackValue] = ()
) -> ManifestStatus:
    """Build the status of one manifest."""
    values = {"values": [value.to_json() for value in feedback]} if feedback else {}
    return ManifestStatus({"resourceMeta": meta.to_json(), "statusFeedback": values, "conditions": list(conditions)})


def read_conditions(found: Iterable[Object]) -> tuple[Condition, ...]:
    """Read a list of conditions."""
    return tuple(map(_read_condition, found))


def merge_condition(found: Sequence[Object], condition: Condition, *, now: instant.Timestamp) -> list[Object]:
    """Return the conditions with `condition` set: in its old place, or at the end.

    The transition time moves only when the status does.
    """
    merged = list(found)
    for index, old in enumerate(found):
        if old.get("type") == condition.type:
            is_unmoved = old.get("status") == condition.status and old.get("lastTransitionTime")
            since = str(old["lastTransitionTime"]) if is_unmoved else now.rfc3339_seconds()
            merged[index] = jsontypes.merged(old, _condition_members(condition, since=since))
            return merged
    since = condition.last_transition_time or now.rfc3339_seconds()
    return [*found, jsontypes.merged({}, _condition_members(condition, since=since))]


def _condition_members(condition: Condition, *, since: str) -> dict[str, Any]:
    return {
        "type": condition.type,
        "status": condition.status,
        "observedGeneration": condition.observed_generation or None,
        "lastTransitionTime": since,
        "reason": condition.reason,
        "message": condition.message,
    }


def _read_condition(found: Object) -> Condition:
    return Condition(
        type=jsontypes.text_at(found, "type"),
        status=jsontypes.text_at(found, "status"),
        reason=jsontypes.text_at(found, "reason"),
        message=jsontypes.text_at(found, "message"),
        observed_generation=jsontypes.integer_at(found, "observedGeneration"),
        last_transition_time=jsontypes.text_at(found, "lastTransitionTime"),
    )


def _read_feedback(found: Object) -> FeedbackValue:
    value = jsontypes.object_at(found, "fieldValue")
    kind = jsontypes.text_at(value, "type")
    return FeedbackValue(name=jsontypes.text_at(found, "name"), type=kind, value=value.get(_value_key(kind)))


def _value_key(kind: str) -> str:
    return kind[:1].lower() + kind[1:]
