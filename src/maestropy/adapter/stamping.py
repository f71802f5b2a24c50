"""Mark what an adapter wants with whose it is and for which generation; decide from the marks what is to be done.

Every work and every manifest in it carries the generation of the resource it was made for, so that anybody who looks
at a cluster can tell old from new. A work also carries a digest of its content: a new version of an adapter that wants
something else for the same generation is an update, and the same wish again is nothing at all. Pure.
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
class Create:
    """Nobody has it yet."""


@dataclass(frozen=True, slots=True)
class Skip:
    """It is there, for this generation and with this content."""


@dataclass(frozen=True, slots=True)
class Patch:
    """It is there and must change."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """It is there and on its way out; a new one can only follow it."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """It is there and belongs to somebody else."""

    owner: str


Verdict = Create | Skip | Patch | Wait | Foreign


def labels_of(adapter: str, resource: Resource) -> dict[str, str]:
    """Return the labels by which everything an adapter made for a resource is found again."""
    return {
        CLUSTER_ID: resource.cluster_id,
        RESOURCE_ID: resource.id,
        RESOURCE_KIND: resource.kind,
        ADAPTER: adapter,
    }


def stamped(work: Work, *, adapter: str, resource: Resource) -> Work:
    """Return the work as it is sent: with labels, generation and digest, its manifests with labels and generation."""
    labels, generation = labels_of(adapter, resource), {GENERATION: str(resource.generation)}
    marked = [_marked(each, labels=labels, annotations=generation) for each in work.manifest_work.manifests]
    found = work.with_manifests(marked).with_labels(labels).with_annotations(generation)
    return found.with_annotations({DIGEST: _digest(found)})


def verdict(stored: Work | None, wanted: Work) -> Verdict:
    """Say what is to be done about a stamped work, given what is stored under its name."""
    if stored is None:
        return Create()
    if not _is_same_owner(stored.labels, wanted.labels):
        return Foreign(_owner(stored.labels))
    if stored.is_deleting:
        return Wait()
    before, now = stored.annotations.get(GENERATION, ""), wanted.annotations[GENERATION]
    if before != now:
        return Patch(f"generation {before or 'unknown'} → {now}")
    if stored.annotations.get(DIGEST) != wanted.annotations[DIGEST]:
        return Patch(f"the adapter wants something else for generation {now}")
    return Skip()


def patch_for(wanted: Work) -> dict[str, Any]:
    """Return the JSON merge patch that makes a stored work the wanted one; labels and annotations of others stay."""
    metadata = {"labels": dict(wanted.labels), "annotations": dict(wanted.annotations)}
    # A merge patch keeps members it does not name; what an earlier generation wanted must not live on.
    cleared = dict.fromkeys(("manifestConfigs", "deleteOption", "executor"))
    return {"metadata": metadata, "spec": {**cleared, **wanted.to_dict()["spec"]}}


def newest(found: Sequence[Work]) -> Work:
    """Return the work of the highest generation."""
    return max(found, key=lambda each: _number(each.annotations.get(GENERATION, "")))


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


def _is_same_owner(stored: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(stored.get(name) == wanted[name] for name in (ADAPTER, RESOURCE_ID, RESOURCE_KIND))


def _owner(labels: Mapping[str, str]) -> str:
    if not labels.get(ADAPTER):
        return "somebody who set no label hyperfleet.io/adapter"
    return f"adapter {labels[ADAPTER]!r} for {labels.get(RESOURCE_KIND, 'resource')} {labels.get(RESOURCE_ID, '?')}"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0
