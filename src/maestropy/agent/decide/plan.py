"""Which objects does a work want, in which order, and what stands against each of them from the start?

A manifest that cannot be understood, or whose kind the cluster does not serve, gets a step that says so; its neighbours
get theirs all the same. Looking at the cluster is the caller's half, one step after another; then `action` says what to
write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide import executor, identity, matching, ordering, ownership, strategy
from maestropy.wire import errors, jsontypes, options, status, work
from maestropy.wire.jsontypes import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class NotServed:
    """Why nobody knows how the cluster serves a kind."""

    problem: str


Served = Mapping[identity.Kind, identity.ResourceType | NotServed]
"""What discovery says; a kind that is missing does not exist on this cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One manifest of a work."""

    meta: status.ResourceMeta
    manifest: Object
    """Ready to be sent."""
    treatment: matching.Treatment
    is_owned: bool
    is_complete: bool = False
    """The object has done its work and is left alone for good; it counts as applied."""
    problem: str = ""
    """Why this manifest cannot be applied, whatever the cluster says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps, in the order they are taken."""

    steps: tuple[Step, ...]
    executor: options.Executor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """The work is complete: nothing of it is applied again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The work as a whole cannot be understood."""

    problem: str


Verdict = Plan | Frozen | Refused


def kinds_of(wanted: work.ManifestWork) -> set[identity.Kind]:
    """Return the kinds that discovery has to be asked for."""
    found: set[identity.Kind] = set()
    for manifest in _manifests(wanted):
        try:
            found.add(identity.kind_of(manifest))
        except (errors.WireError, AttributeError):
            continue
    return found


def plan(wanted: work.ManifestWork, *, served: Served) -> Verdict:
    """Return what a work wants."""
    if wanted.status.is_true(status.COMPLETE):
        return Frozen()
    try:
        manifests = _manifests(wanted)
        configs, delete_option, as_whom = wanted.manifest_configs, wanted.delete_option, wanted.executor
    except errors.WireError as error:
        return Refused(problem=str(error))
    problem = executor.problem(as_whom) if as_whom else ""
    done = _complete(wanted.status)
    steps: list[Step] = []
    for ordinal in ordering.ordinals(manifests):
        meta, refusal = _meta(manifests[ordinal], ordinal=ordinal, served=served)
        steps.append(
            Step(
                meta=meta,
                manifest=_sendable(manifests[ordinal], meta, served=served),
                treatment=matching.treatment(configs, meta),
                is_owned=ownership.is_owned(delete_option, meta),
                is_complete=identity.key_of(meta) in done,
                problem=refusal or problem,
            )
        )
    return Plan(steps=tuple(steps), executor=as_whom)


def action(
    step: Step, *, live: Object | None, owner: ownership.Owner, last: strategy.Settled | None = None
) -> strategy.Action:
    """Return what a step writes, now that the object has been looked at."""
    if step.problem:
        return strategy.Refuse(problem=step.problem)
    if step.is_complete:
        return strategy.Leave(reason="complete")
    wish = strategy.Wish(
        manifest=step.manifest, live=live, strategy=step.treatment.update_strategy, owner=owner, last=last
    )
    return strategy.decide(wish)


def _manifests(wanted: work.ManifestWork) -> Sequence[Any]:
    found = jsontypes.object_at(wanted.spec, "workload").get("manifests")
    if found is not None and not isinstance(found, list):
        raise errors.Malformed("spec.workload.manifests must be a list")
    return found or []


def _meta(manifest: Any, *, ordinal: int, served: Served) -> tuple[status.ResourceMeta, str]:
    """Return what a manifest means, and what is wrong with it."""
    nothing = status.ResourceMeta(ordinal=ordinal)
    if not isinstance(manifest, Mapping):
        return nothing, "a manifest must be a JSON object"
    try:
        kind = identity.kind_of(manifest)
        unknown = identity.meta_of(manifest, ordinal=ordinal, served=None)
        metadata = jsontypes.object_at(manifest, "metadata")
    except errors.WireError as error:
        return nothing, str(error)
    if not kind.kind:
        return unknown, "Object 'Kind' is missing in manifest"
    if not unknown.name:
        return unknown, "name must be set in manifest"
    if metadata.get("generateName"):
        return unknown, "generateName must not be set in manifest"
    found = served.get(kind)
    if found is None:
        return unknown, f'the server doesn\'t have a resource type "{kind.kind}"'
    if isinstance(found, NotServed):
        return unknown, found.problem
    return identity.meta_of(manifest, ordinal=ordinal, served=found), ""


def _sendable(manifest: Any, meta: status.ResourceMeta, *, served: Served) -> Object:
    if not meta.resource:
        return {}
    found = served[identity.Kind(meta.group, meta.version, meta.kind)]
    return strategy.prepared(manifest, is_namespaced=isinstance(found, identity.ResourceType) and found.is_namespaced)


def _complete(found: status.WorkStatus) -> set[identity.ObjectKey]:
    return {
        identity.key_of(manifest.resource_meta)
        for manifest in found.manifests
        if any(
            condition.type == status.COMPLETE and condition.status == status.TRUE for condition in manifest.conditions
        )
    }
