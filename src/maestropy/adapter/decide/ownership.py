"""Label works with their owner and generation, and decide whether a work is created, patched or skipped.

Every work and every manifest in it carries the generation of the resource it was made for, so an operator on the
cluster can tell old objects from new ones. A work also carries a digest of its content: if a new version of an adapter
returns other content for the same generation, the work is patched; if the content is equal, it is skipped. Pure.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.adapter.resource import Resource
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work

GENERATION = "hyperfleet.io/generation"
CLUSTER_ID = "hyperfleet.io/cluster-id"
RESOURCE_ID = "hyperfleet.io/resource-id"
RESOURCE_KIND = "hyperfleet.io/resource-kind"
ADAPTER = "hyperfleet.io/adapter"
DIGEST = "adapter.maestropy.io/digest"

_ENCODER = msgspec.json.Encoder(order="deterministic")


@dataclass(frozen=True, slots=True)
class CreateWork:
    """No work of this name is stored."""


@dataclass(frozen=True, slots=True)
class SkipWork:
    """The stored work has this generation and this content."""


@dataclass(frozen=True, slots=True)
class RefuseStale:
    """The stored work has a newer generation."""

    reason: str


@dataclass(frozen=True, slots=True)
class PatchWork:
    """The stored work has another generation or other content."""

    reason: str


@dataclass(frozen=True, slots=True)
class WaitForDeletion:
    """The stored work is being deleted; a new one can be created after it is gone."""


@dataclass(frozen=True, slots=True)
class OwnedByAnother:
    """The stored work belongs to another adapter, resource or client."""

    owner: str


WorkAction = CreateWork | SkipWork | RefuseStale | PatchWork | WaitForDeletion | OwnedByAnother


def labels_of(adapter: str, resource: Resource) -> dict[str, str]:
    """Return the labels that select all works of an adapter for a resource."""
    return {
        CLUSTER_ID: resource.cluster_id,
        RESOURCE_ID: resource.id,
        RESOURCE_KIND: resource.kind,
        ADAPTER: adapter,
    }


def with_ownership(work: Work, *, adapter: str, resource: Resource) -> Work:
    """Return the work with labels, generation and digest, and its manifests with labels and generation."""
    labels, generation = labels_of(adapter, resource), {GENERATION: str(resource.generation)}
    marked = [_marked(manifest, labels=labels, annotations=generation) for manifest in work.manifest_work.manifests]
    labelled = work.with_manifests(marked).with_labels(labels).with_annotations(generation)
    return labelled.with_annotations({DIGEST: _digest(labelled)})


def decide(stored: Work | None, desired: Work) -> WorkAction:
    """Return the action for a desired work, given the work that is stored under its name."""
    if stored is None:
        return CreateWork()
    if not _is_same_owner(stored.labels, desired.labels):
        return OwnedByAnother(_owner(stored.labels))
    if stored.is_deleting:
        return WaitForDeletion()
    before, now = stored.annotations.get(GENERATION, ""), desired.annotations[GENERATION]
    if _number(before) > _number(now):
        # An old event, or an old answer of the API, must not roll the work back.
        return RefuseStale(_stale(stored, generation=now))
    if before != now:
        return PatchWork(f"generation {before or 'unknown'} → {now}")
    if stored.annotations.get(DIGEST) != desired.annotations[DIGEST]:
        return PatchWork(f"the content changed for generation {now}")
    return SkipWork()


def newer_work(stored: Sequence[Work], resource: Resource) -> str:
    """Say which stored work is of a newer generation than the resource; empty if none is.

    A work that is being deleted does not count: a resource that was created again begins with generation 1.
    """
    newer = [work for work in stored if not work.is_deleting and _generation(work) > resource.generation]
    return _stale(newest(newer), generation=str(resource.generation)) if newer else ""


def patch_for(desired: Work) -> dict[str, Any]:
    """Return the JSON merge patch from a stored work to the desired one; labels and annotations of others stay."""
    metadata = {"labels": dict(desired.labels), "annotations": dict(desired.annotations)}
    # A merge patch keeps members it does not name; those of an earlier generation must be cleared.
    cleared = dict.fromkeys(("manifestConfigs", "deleteOption", "executor"))
    return {"metadata": metadata, "spec": {**cleared, **desired.to_dict()["spec"]}}


def newest(works: Sequence[Work]) -> Work:
    """Return the work of the highest generation."""
    return max(works, key=_generation)


def _generation(work: Work) -> int:
    return _number(work.annotations.get(GENERATION, ""))


def _stale(stored: Work, *, generation: str) -> str:
    return (
        f"stale generation: {generation} is older than {stored.annotations.get(GENERATION, '')}, for which work "
        f"{stored.name} was written; nothing was applied"
    )


def _marked(
    manifest: Mapping[str, Any], *, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        raise Invalid(f"{manifest.get('kind') or 'a manifest'} has no metadata", advice="give it metadata.name")
    return {
        **manifest,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **labels},
            "annotations": {**(metadata.get("annotations") or {}), **annotations},
        },
    }


def _digest(work: Work) -> str:
    body = work.to_dict()
    content = [body.get("spec"), dict(work.labels), dict(work.annotations)]
    try:
        return hashlib.sha256(_ENCODER.encode(content)).hexdigest()[:16]
    except (TypeError, ValueError) as error:
        raise Invalid(f"work {work.name!r} holds what JSON cannot: {error}") from error


def _is_same_owner(stored: Mapping[str, str], desired: Mapping[str, str]) -> bool:
    return all(stored.get(name) == desired[name] for name in (ADAPTER, RESOURCE_ID, RESOURCE_KIND))


def _owner(labels: Mapping[str, str]) -> str:
    if not labels.get(ADAPTER):
        return "a client that set no label hyperfleet.io/adapter"
    return f"adapter {labels[ADAPTER]!r} for {labels.get(RESOURCE_KIND, 'resource')} {labels.get(RESOURCE_ID, '?')}"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
