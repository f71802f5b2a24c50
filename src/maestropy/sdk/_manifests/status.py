"""Read the status of manifests: conditions, feedback values, and nested works.

A work can carry another ManifestWork as a manifest; the status of the inner work is then a JSON string in the feedback
of the outer one. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.wire.works import status, work
from maestropy.wire.works.status import Condition, ManifestStatus

_JSON_RAW = "JsonRaw"
_WHOLE_OBJECT = ("resource", "@")
"""Usual names of feedback rules that return the whole object instead of its status."""
_CONDITION_FIELDS = ("Status", "Reason", "Message", "LastTransitionTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One manifest of a work, with its status."""

    desired: Mapping[str, Any]
    """The manifest; empty where only its status is known."""
    reported: ManifestStatus | None
    """The status the agent reported; None before the first status update."""

    @property
    def kind(self) -> str:
        """The kind."""
        return str(self.desired.get("kind") or "") or (self.reported.resource_meta.kind if self.reported else "")

    @property
    def name(self) -> str:
        """The name on the cluster."""
        named = str((self.desired.get("metadata") or {}).get("name") or "")
        return named or (self.reported.resource_meta.name if self.reported else "")

    @property
    def namespace(self) -> str:
        """The namespace on the cluster; empty for cluster-scoped objects."""
        named = str((self.desired.get("metadata") or {}).get("namespace") or "")
        return named or (self.reported.resource_meta.namespace if self.reported else "")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the manifest: Applied, Available, StatusFeedbackSynced."""
        return self.reported.conditions if self.reported else ()

    @property
    def feedback(self) -> dict[str, Any]:
        """The feedback values by name; JSON strings are decoded."""
        return {value.name: decoded(value) for value in self.reported.feedback} if self.reported else {}

    @property
    def folded(self) -> tuple[Condition, ...]:
        """Conditions from single feedback values such as `Available-Status` and `Available-Reason`."""
        return fold(self.feedback)

    @property
    def is_synced(self) -> bool | None:
        """Whether all feedback rules could be read; None if not reported. If not, old values stay visible."""
        synced = self.condition(status.STATUS_FEEDBACK_SYNCED)
        return None if synced is None else synced.status == status.TRUE

    def condition(self, condition_type: str) -> Condition | None:
        """Return the condition of this type."""
        return next((condition for condition in self.conditions if condition.type == condition_type), None)

    def inner(self) -> work.ManifestWork | None:
        """Return the nested work with its own status, if this manifest is a ManifestWork."""
        if self.kind != work.KIND:
            return None
        values = self.feedback
        whole = next((values[name] for name in _WHOLE_OBJECT if isinstance(values.get(name), dict)), None)
        if whole is not None and "status" in whole:
            return work.ManifestWork({**self.desired, **whole})
        inner_status = values.get("status")
        body = dict(self.desired) or {"metadata": {"name": self.name, "namespace": self.namespace}}
        return work.ManifestWork({**body, "status": inner_status} if isinstance(inner_status, dict) else body)


def manifests_of(manifest_work: work.ManifestWork) -> tuple[Manifest, ...]:
    """Return the manifests of a work with their status, in the order of the spec."""
    desired: Sequence[Mapping[str, Any]] = manifest_work.manifests
    reports = {
        manifest_status.resource_meta.ordinal: manifest_status for manifest_status in manifest_work.status.manifests
    }
    count = max(len(desired), max(reports, default=-1) + 1)
    return tuple(
        Manifest(
            desired=desired[index] if index < len(desired) else {}, reported=_of(reports.get(index), desired, index)
        )
        for index in range(count)
    )


def walk(manifest_work: work.ManifestWork) -> Iterator[work.ManifestWork]:
    """Yield a work and every work nested in it, outermost first."""
    yield manifest_work
    for manifest in manifests_of(manifest_work):
        inner = manifest.inner()
        if inner is not None:
            yield from walk(inner)


def leaves(manifest_work: work.ManifestWork) -> Iterator[Manifest]:
    """Yield the innermost manifests: those that are not ManifestWorks themselves."""
    for manifest in manifests_of(manifest_work):
        inner = manifest.inner()
        if inner is None:
            yield manifest
        else:
            yield from leaves(inner)


def decoded(value: status.FeedbackValue) -> Any:
    """Return a feedback value as a Python value; malformed JSON stays a string."""
    if value.type != _JSON_RAW or not isinstance(value.value, str):
        return value.value
    try:
        return msgspec.json.decode(value.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value.value


def fold(values: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Build conditions from values named `<Type>-Status`, `<Type>-Reason`, `<Type>-Message`, …"""
    by_type: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        kind, dash, part = name.rpartition("-")
        if dash and part in _CONDITION_FIELDS:
            by_type.setdefault(kind, {})[part] = str(value)
    return tuple(
        Condition(
            type=kind,
            status=parts.get("Status", status.UNKNOWN),
            reason=parts.get("Reason", ""),
            message=parts.get("Message", ""),
            last_transition_time=parts.get("LastTransitionTime", ""),
        )
        for kind, parts in by_type.items()
    )


def _of(reported: ManifestStatus | None, desired: Sequence[Mapping[str, Any]], index: int) -> ManifestStatus | None:
    """Return the status if it describes this object; the spec may have changed since."""
    if reported is None or index >= len(desired):
        return reported
    meta, resource_meta = desired[index].get("metadata") or {}, reported.resource_meta
    is_same = resource_meta.kind in ("", desired[index].get("kind")) and resource_meta.name in ("", meta.get("name"))
    return reported if is_same else None
