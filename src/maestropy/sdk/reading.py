"""What became of one manifest, as values: conditions, feedback, and the work that may be nested in it.

A work can carry another ManifestWork as a manifest; what the inner one says then stands as JSON text in the feedback
of the outer. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.wire import status, work
from maestropy.wire.status import Condition, ManifestStatus

_JSON_RAW = "JsonRaw"
_WHOLE_OBJECT = ("resource", "@")
"""Names under which feedback rules commonly ask for the whole object instead of its status."""
_PARTS = ("Status", "Reason", "Message", "LastTransitionTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object of a work: what was wanted, and what is known of it."""

    wanted: Mapping[str, Any]
    """The manifest; empty where only its status is known."""
    reported: ManifestStatus | None
    """What the agent says; None before its first report."""

    @property
    def kind(self) -> str:
        """Its kind."""
        return str(self.wanted.get("kind") or "") or (self.reported.resource_meta.kind if self.reported else "")

    @property
    def name(self) -> str:
        """Its name on the cluster."""
        named = str((self.wanted.get("metadata") or {}).get("name") or "")
        return named or (self.reported.resource_meta.name if self.reported else "")

    @property
    def namespace(self) -> str:
        """Its namespace on the cluster; empty for what has none."""
        named = str((self.wanted.get("metadata") or {}).get("namespace") or "")
        return named or (self.reported.resource_meta.namespace if self.reported else "")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the agent says about it: Applied, Available, StatusFeedbackSynced."""
        return self.reported.conditions if self.reported else ()

    @property
    def feedback(self) -> dict[str, Any]:
        """The values its feedback rules asked for; JSON texts are decoded."""
        return {each.name: decoded(each) for each in self.reported.feedback} if self.reported else {}

    @property
    def folded(self) -> tuple[Condition, ...]:
        """Conditions told as single values, `Available-Status`, `Available-Reason` and so on, put together again."""
        return fold(self.feedback)

    @property
    def is_synced(self) -> bool | None:
        """Whether all feedback rules could be read; None if nothing is said. Old values stay visible when not."""
        found = self.condition(status.STATUS_FEEDBACK_SYNCED)
        return None if found is None else found.status == status.TRUE

    def condition(self, condition_type: str) -> Condition | None:
        """Return what the agent says under this type."""
        return next((each for each in self.conditions if each.type == condition_type), None)

    def inner(self) -> work.ManifestWork | None:
        """Return the work nested in this manifest, with its own status, if it is one."""
        if self.kind != work.KIND:
            return None
        values = self.feedback
        whole = next((values[name] for name in _WHOLE_OBJECT if isinstance(values.get(name), dict)), None)
        if whole is not None and "status" in whole:
            return work.ManifestWork({**self.wanted, **whole})
        told = values.get("status")
        body = dict(self.wanted) or {"metadata": {"name": self.name, "namespace": self.namespace}}
        return work.ManifestWork({**body, "status": told} if isinstance(told, dict) else body)


def manifests_of(found: work.ManifestWork) -> tuple[Manifest, ...]:
    """Return the manifests of a work with what is known of each, in the order of the spec."""
    wanted: Sequence[Mapping[str, Any]] = found.manifests
    reports = {each.resource_meta.ordinal: each for each in found.status.manifests}
    count = max(len(wanted), max(reports, default=-1) + 1)
    return tuple(
        Manifest(wanted=wanted[index] if index < len(wanted) else {}, reported=_of(reports.get(index), wanted, index))
        for index in range(count)
    )


def walk(found: work.ManifestWork) -> Iterator[work.ManifestWork]:
    """Yield a work and every work nested in it, outermost first."""
    yield found
    for each in manifests_of(found):
        inner = each.inner()
        if inner is not None:
            yield from walk(inner)


def leaves(found: work.ManifestWork) -> Iterator[Manifest]:
    """Yield the innermost manifests: those that are no works themselves."""
    for each in manifests_of(found):
        inner = each.inner()
        if inner is None:
            yield each
        else:
            yield from leaves(inner)


def decoded(value: status.FeedbackValue) -> Any:
    """Return a feedback value as a Python value; a JSON text that is none stays a text."""
    if value.type != _JSON_RAW or not isinstance(value.value, str):
        return value.value
    try:
        return msgspec.json.decode(value.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value.value


def fold(values: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Put conditions together from values named `<Type>-Status`, `<Type>-Reason`, `<Type>-Message`, …"""
    found: dict[str, dict[str, str]] = {}
    for name, value in values.items():
        kind, dash, part = name.rpartition("-")
        if dash and part in _PARTS:
            found.setdefault(kind, {})[part] = str(value)
    return tuple(
        Condition(
            type=kind,
            status=parts.get("Status", status.UNKNOWN),
            reason=parts.get("Reason", ""),
            message=parts.get("Message", ""),
            last_transition_time=parts.get("LastTransitionTime", ""),
        )
        for kind, parts in found.items()
    )


def _of(reported: ManifestStatus | None, wanted: Sequence[Mapping[str, Any]], index: int) -> ManifestStatus | None:
    """Leave a report out that speaks of another object: the spec may have changed since."""
    if reported is None or index >= len(wanted):
        return reported
    meta, told = wanted[index].get("metadata") or {}, reported.resource_meta
    is_same = told.kind in ("", wanted[index].get("kind")) and told.name in ("", meta.get("name"))
    return reported if is_same else None
