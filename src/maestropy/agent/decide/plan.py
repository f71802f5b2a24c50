"""Plan how to apply a work: its manifests in order, each with its options and problems.

An invalid manifest, or one whose kind the cluster does not serve, gets a step with the problem; the others are applied
all the same. The caller reads each live object; then `action` decides what to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.agent.decide import (
    agent_records,
    apply_order,
    executor,
    manifest_configs,
    manifest_identity,
    ownership,
    slow_lanes,
    update_strategy,
)
from maestropy.agent.expressions.budget import Budget
from maestropy.wire import errors, json_types
from maestropy.wire.json_types import Object
from maestropy.wire.works import options, status, work


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryFailed:
    """Discovery of a kind failed."""

    problem: str


ServedKinds = Mapping[manifest_identity.GroupVersionKind, manifest_identity.ApiResource | DiscoveryFailed]
"""The result of discovery; a kind that is missing is not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyStep:
    """One manifest of a work."""

    meta: status.ResourceMeta
    manifest: Object
    """The manifest as it can be sent."""
    config: manifest_configs.EffectiveConfig
    is_owned: bool
    is_complete: bool = False
    """The manifest is complete and is not applied again; it counts as applied."""
    problem: str = ""
    """Why this manifest cannot be applied, whatever the live object is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPlan:
    """The steps, in the order they are applied."""

    steps: tuple[ApplyStep, ...]
    executor: options.Executor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyComplete:
    """The work is complete: nothing is applied again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidWork:
    """The spec of the work is invalid."""

    problem: str


Verdict = ApplyPlan | AlreadyComplete | InvalidWork


def gvks_of(manifest_work: work.ManifestWork) -> set[manifest_identity.GroupVersionKind]:
    """Return the kinds that discovery has to resolve."""
    gvks: set[manifest_identity.GroupVersionKind] = set()
    for manifest in _manifests(manifest_work):
        try:
            gvks.add(manifest_identity.gvk_of(manifest))
        except (errors.WireError, AttributeError):
            continue
    return gvks


def lanes_of(manifest_work: work.ManifestWork) -> slow_lanes.Lanes:
    """Return which objects the manifests need requests about."""
    lanes: set[slow_lanes.Lane] = set()
    for manifest in _manifests(manifest_work):
        try:
            kind = manifest_identity.gvk_of(manifest)
            namespace = json_types.text_at(manifest, "metadata", "namespace")
        except (errors.WireError, AttributeError):
            continue
        lanes.add(slow_lanes.Lane(kind.group, kind.kind, namespace))
    return frozenset(lanes)


def plan_work(manifest_work: work.ManifestWork, *, served: ServedKinds) -> Verdict:
    """Plan how to apply a work."""
    if manifest_work.status.is_true(status.COMPLETE):
        return AlreadyComplete()
    try:
        manifests = _manifests(manifest_work)
        configs, delete_option, executor_account = (
            manifest_work.manifest_configs,
            manifest_work.delete_option,
            manifest_work.executor,
        )
    except errors.WireError as error:
        return InvalidWork(problem=str(error))
    problem = manifest_configs.problem(configs, manifests=len(manifests))
    if problem:
        return InvalidWork(problem=problem)
    problem = executor.problem(executor_account) if executor_account else ""
    # Found by hash: a work may have thousands of manifests and of rules.
    orphaned = frozenset(delete_option.orphaning_rules if delete_option is not None else ())
    complete_keys = _complete(manifest_work.status)
    index = manifest_configs.ConfigIndex(configs)
    steps: list[ApplyStep] = []
    for ordinal in apply_order.ordinals(manifests):
        meta, manifest_problem = _meta(manifests[ordinal], ordinal=ordinal, served=served)
        steps.append(
            ApplyStep(
                meta=meta,
                manifest=_sendable(manifests[ordinal], meta, served=served),
                config=index.effective(meta),
                is_owned=ownership.is_owned(delete_option, meta, orphaned=orphaned),
                is_complete=manifest_identity.key_of(meta) in complete_keys,
                problem=manifest_problem or problem,
            )
        )
    problem = manifest_configs.evaluations_problem(step.config for step in steps)
    return InvalidWork(problem=problem) if problem else ApplyPlan(steps=tuple(steps), executor=executor_account)


def action(
    step: ApplyStep,
    *,
    live: Object | None,
    owner: ownership.OwnerReference,
    budget: Budget,
    last_applied: update_strategy.LastApplied | None = None,
) -> update_strategy.Action:
    """Decide what a step writes, given the live object; `budget` pays for the expressions of `ignoreFields`."""
    if step.problem:
        return update_strategy.RejectManifest(problem=step.problem)
    if step.is_complete:
        return update_strategy.LeaveUnchanged(reason="complete")
    with budget.manifest() as own_budget:
        inputs = update_strategy.ApplyInput(
            manifest=step.manifest,
            live=live,
            strategy=step.config.update_strategy,
            owner=owner,
            last_applied=last_applied,
            budget=own_budget,
        )
        return update_strategy.decide(inputs)


def _manifests(manifest_work: work.ManifestWork) -> Sequence[Any]:
    manifests = json_types.object_at(manifest_work.spec, "workload").get("manifests")
    if manifests is not None and not isinstance(manifests, list):
        raise errors.MalformedMessage("spec.workload.manifests must be a list")
    return manifests or []


def _meta(manifest: Any, *, ordinal: int, served: ServedKinds) -> tuple[status.ResourceMeta, str]:
    """Return the resourceMeta of a manifest, and what is wrong with it."""
    empty_meta = status.ResourceMeta(ordinal=ordinal)
    if not isinstance(manifest, Mapping):
        return empty_meta, "a manifest must be a JSON object"
    try:
        kind = manifest_identity.gvk_of(manifest)
        unknown = manifest_identity.resource_meta_of(manifest, ordinal=ordinal, served=None)
        metadata = json_types.object_at(manifest, "metadata")
    except errors.WireError as error:
        return empty_meta, str(error)
    if not kind.kind:
        return unknown, "Object 'Kind' is missing in manifest"
    if not unknown.name:
        return unknown, "name must be set in manifest"
    if metadata.get("generateName"):
        return unknown, "generateName must not be set in manifest"
    return _resolved(manifest, unknown, served.get(kind))


def _resolved(
    manifest: Object, unknown: status.ResourceMeta, api_resource: manifest_identity.ApiResource | DiscoveryFailed | None
) -> tuple[status.ResourceMeta, str]:
    """Return the resourceMeta of a manifest with the resource that discovery knows."""
    served = api_resource if isinstance(api_resource, manifest_identity.ApiResource) else None
    meta = manifest_identity.resource_meta_of(manifest, ordinal=unknown.ordinal, served=served)
    problem = agent_records.problem(meta)
    if problem:
        return meta, problem
    if api_resource is None:
        return unknown, f'the server doesn\'t have a resource type "{unknown.kind}"'
    return meta, api_resource.problem if isinstance(api_resource, DiscoveryFailed) else ""


def _sendable(manifest: Any, meta: status.ResourceMeta, *, served: ServedKinds) -> Object:
    if not meta.resource:
        return {}
    api_resource = served[manifest_identity.GroupVersionKind(meta.group, meta.version, meta.kind)]
    return update_strategy.sendable(
        manifest, is_namespaced=isinstance(api_resource, manifest_identity.ApiResource) and api_resource.is_namespaced
    )


def _complete(work_status: status.WorkStatus) -> set[manifest_identity.ResourceKey]:
    return {
        manifest_identity.key_of(manifest.resource_meta)
        for manifest in work_status.manifests
        if any(
            condition.type == status.COMPLETE and condition.status == status.TRUE for condition in manifest.conditions
        )
    }
