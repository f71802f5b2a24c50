"""Apply one manifest to the cluster, as its plan says.

A manifest that fails gives an outcome, never an exception.
"""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

from maestropy.agent.controllers.evaluation import Evaluation
from maestropy.agent.controllers.watcher import ObjectRef, ObjectWatcher
from maestropy.agent.decide import agent_records, manifest_identity, ownership, plan, update_strategy
from maestropy.agent.decide.status import conditions, work_status
from maestropy.agent.expressions.budget import Budget
from maestropy.agent.state.access_reviews import ExecutorAccess, ExecutorAction, ExecutorRead
from maestropy.agent.state.drift_backoff import DriftBackoff
from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import AgentPhrase
from maestropy.kube import errors, objects
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.objects import Json
from maestropy.kube.request import DeleteOptions, Patch, ResourceType, WriteOptions
from maestropy.wire.works import options, status

_ATTEMPTS = 4
_FIRST_PAUSE_SECONDS = 0.01
# An object without finalizers is gone at once. If it still exists after these polls, creating it fails with
# AlreadyExists and is retried later.
_RECREATE_POLLS = 50
_RECREATE_PAUSE_SECONDS = 0.1
_CRD_KIND = "CustomResourceDefinition"
_WRITES = (
    update_strategy.CreateObject,
    update_strategy.ReplaceObject,
    update_strategy.RecreateObject,
    update_strategy.ServerSideApply,
)
_PAUSED = "the work spent too much on its expressions, and is evaluated again later"
_NOT_REVIEWED = "the permissions of the executor could not be reviewed"
_OwnedObject = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyTask:
    """One manifest to apply for one generation of one work."""

    step: plan.ApplyStep
    owner: ownership.OwnerReference
    executor: options.Executor | None
    generation: int
    may_defer: bool
    """Whether changes to fields that the manifest does not state can wait for the next resync."""
    is_new: bool
    """Whether the AppliedManifestWork never listed the object, so that it probably does not exist."""
    log_fields: dict[str, object]
    """Fields of every log record about this manifest."""
    evaluation: Evaluation
    """Evaluates the expressions of `ignoreFields`."""
    previous: status.Condition | None = None
    """The condition `Applied` that was reported last."""
    problem_with: Callable[[Json], str] = lambda _live: ""
    """Returns why this work may not change a live object, or an empty string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOutcome:
    """The result of applying one manifest."""

    step: plan.ApplyStep
    condition: status.Condition
    ref: ObjectRef | None = None
    live: Json | None = None
    """The live object, as last read."""
    problem: str = ""
    """Why the object could not be read."""
    is_denied: bool = False
    read_denial: str = ""
    """Why the executor may not get the object, so that nothing of it is reported."""
    is_applied_before: bool = False
    """Whether the work applied the object when its executor still had the permission."""
    should_retry: bool = False
    """Whether a retry soon may succeed."""
    backoff_seconds: float = 0.0
    """How long the next drift correction has to wait, because another actor keeps changing the object."""

    @property
    def is_healthy(self) -> bool:
        """Whether the object exists and has its desired state."""
        is_there = self.ref is not None and self.live is not None
        return is_there and self.condition.status == status.TRUE and not self.backoff_seconds

    @property
    def result(self) -> work_status.ApplyResult:
        """The apply result for the status."""
        return work_status.ApplyResult(meta=self.step.meta, condition=self.condition)

    @property
    def observation(self) -> work_status.ObservedObject:
        """The live object for the status."""
        # The work knows of the objects that it applied itself. Of all others it gets the same answer, whether they
        # exist or not.
        is_available = self.is_applied_before if self.is_denied else None
        return work_status.ObservedObject(
            live=self.live, problem=self.problem, denial=self.read_denial, is_available=is_available
        )


class _FieldConflict(Exception):
    """Another field manager owns a field of the manifest."""


class Applier:
    """Applies manifests and reads and deletes their objects."""

    def __init__(
        self,
        client: KubeClient,
        *,
        discovery: Discovery,
        watcher: ObjectWatcher,
        executor_access: ExecutorAccess,
        drift_backoff: DriftBackoff,
        journal: Journal,
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._watcher = watcher
        self._executor_access = executor_access
        self._drift_backoff = drift_backoff
        self._journal = journal
        # Kept in memory only: a restart costs one write per object.
        self._last_applied: dict[_OwnedObject, update_strategy.LastApplied] = {}

    async def served_kinds(
        self, kinds: set[manifest_identity.GroupVersionKind]
    ) -> dict[manifest_identity.GroupVersionKind, manifest_identity.ApiResource | plan.DiscoveryFailed]:
        """Return how the cluster serves these kinds; kinds that discovery does not know are missing."""
        served: dict[manifest_identity.GroupVersionKind, manifest_identity.ApiResource | plan.DiscoveryFailed] = {}
        for kind in kinds:
            try:
                resource = await self._resolve(kind)
            except errors.UnknownKind:
                continue
            except errors.KubeError as error:
                served[kind] = plan.DiscoveryFailed(problem=error.message)
            else:
                served[kind] = manifest_identity.ApiResource(
                    group=resource.group,
                    version=resource.version,
                    resource=resource.plural,
                    is_namespaced=resource.namespaced,
                )
        return served

    async def ref_of_meta(self, meta: status.ResourceMeta) -> ObjectRef | None:
        """Return the object that a manifest names; None if its kind is not served."""
        if not meta.resource:
            return None
        resource = await self._resolve(manifest_identity.GroupVersionKind(meta.group, meta.version, meta.kind))
        return ObjectRef(resource, meta.namespace if resource.namespaced else "", meta.name)

    async def ref_of(self, resource: ownership.AppliedResource) -> ObjectRef:
        """Return the object that an AppliedManifestWork lists.

        If its kind is no longer served, reading it gives 404.
        """
        version = f"{resource.group}/{resource.version}" if resource.group else resource.version
        try:
            served = await self._discovery.find(version, resource.resource)
        except errors.KubeError:
            served = ResourceType(
                group=resource.group,
                version=resource.version,
                plural=resource.resource,
                kind="",
                namespaced=bool(resource.namespace),
            )
        return ObjectRef(served, resource.namespace, resource.name)

    async def read(self, ref: ObjectRef) -> Json | None:
        """Return an object from the watch if it is synced, else from the API server."""
        known = self._watcher.read(ref)
        if known.is_watched:
            return known.live
        return await self.get(ref)

    def forget(self, ref: ObjectRef, owner: ownership.OwnerReference) -> None:
        """Drop the apply state of an object that this owner no longer owns."""
        key = _key_of(ref, owner)
        self._last_applied.pop(key, None)
        self._drift_backoff.forget(key)

    async def apply(self, task: ApplyTask) -> ApplyOutcome:
        """Bring one object to its desired state."""
        step = task.step
        ref: ObjectRef | None = None
        # Until the executor's permission is known, nothing may be reported.
        read_denial = _NOT_REVIEWED if task.executor is not None else ""
        try:
            ref = await self.ref_of_meta(step.meta)
            if ref is None or step.problem:
                rejected = conditions.not_applied(step.problem, generation=task.generation)
                # A missing kind may be installed later by a CRD; an invalid manifest stays invalid.
                return ApplyOutcome(
                    step=step,
                    condition=rejected,
                    ref=ref,
                    read_denial=agent_records.problem(step.meta),
                    should_retry=not step.meta.resource,
                )
            denial = await self._executor_denial(task, ref)
            # An executor that may apply may get: that was reviewed too. A complete step is not applied.
            is_reviewed = not denial and not step.is_complete
            read_denial = (
                "" if is_reviewed else await self.read_denial(step.meta, task.executor, generation=task.generation)
            )
            outcome = await self._apply_allowed(task, ref) if not denial else await self._denied(task, ref, denial)
            return replace(outcome, read_denial=read_denial)
        except errors.KubeError as error:
            self._journal.error(AgentPhrase.APPLY_RESOURCE_FAILED, {**task.log_fields, **object_fields(ref)}, err=error)
            condition = conditions.not_applied(error.message, generation=task.generation)
            is_retryable = not isinstance(error, errors.MalformedObject)
            failed = ApplyOutcome(
                step=step, condition=condition, ref=ref, should_retry=is_retryable, read_denial=read_denial
            )
            return await self._with_live(failed, task=task)

    async def _denied(self, task: ApplyTask, ref: ObjectRef, denial: str) -> ApplyOutcome:
        self._journal.info(AgentPhrase.APPLY_FAILED, {**task.log_fields, LogKey.REASON: denial}, v=2)
        rejected = conditions.not_applied(denial, generation=task.generation)
        # The object is read for the AppliedManifestWork, which lists it.
        live = await self.read(ref)
        return ApplyOutcome(
            step=task.step,
            condition=rejected,
            ref=ref,
            live=live,
            is_denied=True,
            is_applied_before=live is not None and ownership.is_applied_by(live, task.owner),
        )

    async def read_denial(
        self, meta: status.ResourceMeta, executor: options.Executor | None, *, generation: int
    ) -> str:
        """Return why the executor of a work may not get an object, or an empty string."""
        if executor is None or not meta.resource:
            return ""
        return await self._executor_access.read_denial(
            ExecutorRead(executor=executor, meta=meta, generation=generation)
        )

    async def _apply_allowed(self, task: ApplyTask, ref: ObjectRef) -> ApplyOutcome:
        step = task.step
        if task.evaluation.budget is None and step.config.update_strategy.ignore_fields:
            paused = task.previous or conditions.ignore_fields_failed(_PAUSED, generation=task.generation)
            return ApplyOutcome(step=step, condition=paused, ref=ref, live=await self.read(ref))
        return await self._write(task, ref)

    async def _with_live(self, failed: ApplyOutcome, *, task: ApplyTask) -> ApplyOutcome:
        """Add the live object to the outcome of a failed review or write."""
        ref = failed.ref
        if ref is None:
            return failed
        try:
            if failed.read_denial == _NOT_REVIEWED:
                denial = await self.read_denial(task.step.meta, task.executor, generation=task.generation)
                failed = replace(failed, read_denial=denial)
            return replace(failed, live=await self.read(ref))
        except errors.MalformedObject:
            # No object with such a name can exist.
            return failed
        except errors.KubeError as error:
            return replace(failed, problem=error.message)

    async def _write(self, task: ApplyTask, ref: ObjectRef) -> ApplyOutcome:
        """Decide and write; retry when another client changed the object meanwhile."""
        pause = _FIRST_PAUSE_SECONDS
        key = _key_of(ref, task.owner)
        live = None if self._can_create_blindly(task, ref) else await self.read(ref)
        for attempt in range(1, _ATTEMPTS + 1):
            action = await self._action(task, live=live, last_applied=self._last_applied.get(key))
            is_drift_correction = task.may_defer and isinstance(action, _WRITES) and key in self._last_applied
            problem = task.problem_with(live) if live is not None and _is_write(action) else ""
            if problem:
                rejected = conditions.not_applied(problem, generation=task.generation)
                return ApplyOutcome(step=task.step, condition=rejected, ref=ref, problem=problem)
            wait = self._drift_backoff.backoff_seconds(key) if is_drift_correction else 0.0
            if wait > 0:
                unchanged = conditions.applied(generation=task.generation)
                return ApplyOutcome(step=task.step, condition=unchanged, ref=ref, live=live, backoff_seconds=wait)
            try:
                outcome = await self._carry_out(task, ref, action=action, live=live)
            except _FieldConflict as conflict:
                # Only a changed manifest or `force` resolves a field conflict, so there is no early retry.
                condition = conditions.not_applied(str(conflict), generation=task.generation)
                return ApplyOutcome(step=task.step, condition=condition, ref=ref, live=live)
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
                if attempt == _ATTEMPTS or (isinstance(error, errors.NotFound) and live is None):
                    raise
            else:
                if is_drift_correction and _is_changed(live, outcome.live):
                    self._drift_backoff.record_correction(key)
                return outcome
            await asyncio.sleep(pause)
            pause *= 5
            live = await self.get(ref)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _action(
        self, task: ApplyTask, *, live: Json | None, last_applied: update_strategy.LastApplied | None
    ) -> update_strategy.Action:
        budget = task.evaluation.budget or Budget()
        decide = functools.partial(
            plan.action, task.step, live=live, owner=task.owner, budget=budget, last_applied=last_applied
        )
        if not task.step.config.update_strategy.ignore_fields:
            return decide()
        (action,) = await task.evaluation.run([decide])
        return action

    def _can_create_blindly(self, task: ApplyTask, ref: ObjectRef) -> bool:
        """Whether to create without reading first; if the object exists, the API server rejects it."""
        strategy = task.step.config.update_strategy.type
        is_known = self._watcher.read(ref).is_watched
        return (
            task.is_new
            and not is_known
            and not task.step.is_complete
            and strategy in (options.UPDATE, options.CREATE_ONLY)
        )

    async def _carry_out(
        self, task: ApplyTask, ref: ObjectRef, *, action: update_strategy.Action, live: Json | None
    ) -> ApplyOutcome:
        applied = conditions.applied(generation=task.generation)
        match action:
            case update_strategy.RejectManifest(problem=problem, is_ignore_fields_error=about_fields):
                condition_for = conditions.ignore_fields_failed if about_fields else conditions.not_applied
                rejected = condition_for(problem, generation=task.generation)
                return ApplyOutcome(step=task.step, condition=rejected, ref=ref, live=live)
            case update_strategy.LeaveUnchanged(reason=reason):
                if reason == "read-only":
                    self._journal.info(AgentPhrase.READ_ONLY, {**task.log_fields, **object_fields(ref)})
                return ApplyOutcome(step=task.step, condition=applied, ref=ref, live=live)
            case update_strategy.ReplaceObject(can_defer=True) if task.may_defer:
                return ApplyOutcome(step=task.step, condition=applied, ref=ref, live=live)
            case _:
                pass
        inputs = _apply_input(task, live)
        with self._watcher.during_request(ref):
            written = await self._send(task, ref, action=action)
            owners = update_strategy.owner_followup(inputs, written)
            if owners is not None:
                written = await self._patch(ref, owners.body)
            self._watcher.observe(ref, written)
        self._last_applied[_key_of(ref, task.owner)] = update_strategy.last_applied(inputs, written)
        if ref.resource.kind == _CRD_KIND:
            self._discovery.invalidate()
        return ApplyOutcome(step=task.step, condition=applied, ref=ref, live=written)

    async def _send(self, task: ApplyTask, ref: ObjectRef, *, action: update_strategy.Action) -> Json:
        resource = ref.resource
        log_fields = {**task.log_fields, **object_fields(ref)}
        match action:
            case update_strategy.CreateObject(body=body):
                written = await self._client.create(resource, body)
                self._journal.info(AgentPhrase.CREATED, log_fields)
            case update_strategy.ReplaceObject(body=body, should_recreate_if_immutable=recreate):
                try:
                    written = await self._client.update(resource, body)
                except errors.Invalid as error:
                    if not recreate or "immutable" not in error.message:
                        raise
                    return await self._recreate(ref, dict(body), uid=body["metadata"]["uid"], log_fields=log_fields)
                self._journal.info(AgentPhrase.UPDATED, log_fields)
            case update_strategy.RecreateObject(body=body, uid=uid):
                return await self._recreate(ref, dict(body), uid=uid, log_fields=log_fields)
            case update_strategy.ServerSideApply(body=body, field_manager=manager, force=force, warnings=warnings):
                for warning in warnings:
                    self._journal.warning(warning, log_fields)
                written = await self._apply(
                    resource, dict(body), write=WriteOptions(field_manager=manager, force=force)
                )
                self._journal.info(AgentPhrase.APPLIED, {**log_fields, LogKey.FIELD_MANAGER: manager})
            case update_strategy.PatchMetadata(body=body):
                written = await self._patch(ref, body)
            case _:
                raise AssertionError(f"{type(action).__name__} writes nothing")
        return written

    async def _apply(self, resource: ResourceType, body: Json, *, write: WriteOptions) -> Json:
        try:
            return await self._client.apply(resource, body, write=write)
        except errors.Conflict as error:
            raise _FieldConflict(error.message) from error

    async def _recreate(self, ref: ObjectRef, body: Json, *, uid: str, log_fields: dict[str, object]) -> Json:
        """Delete and create an object whose fields are immutable."""
        for field in ("resourceVersion", "uid", "creationTimestamp"):
            body["metadata"] = {key: value for key, value in body["metadata"].items() if key != field}
        preconditions = DeleteOptions(uid=uid)
        await self._client.delete(ref.resource, ref.name, namespace=ref.namespace, deletion=preconditions)
        self._journal.info(
            AgentPhrase.DELETED,
            {**log_fields, LogKey.REASON: "the change needs a new object, because the changed fields are immutable"},
        )
        for _ in range(_RECREATE_POLLS):
            if await self.get(ref) is None:
                break
            await asyncio.sleep(_RECREATE_PAUSE_SECONDS)
        written = await self._client.create(ref.resource, body)
        self._journal.info(AgentPhrase.CREATED, log_fields)
        return written

    async def _patch(self, ref: ObjectRef, body: object) -> Json:
        return await self._client.patch(ref.resource, ref.name, change=Patch(body=body), namespace=ref.namespace)

    async def get(self, ref: ObjectRef) -> Json | None:
        """Return an object from the API server."""
        with self._watcher.during_request(ref):
            try:
                live = await self._client.get(ref.resource, ref.name, namespace=ref.namespace)
            except errors.NotFound:
                live = None
            self._watcher.observe(ref, live)
        return live

    async def _executor_denial(self, task: ApplyTask, ref: ObjectRef) -> str:
        """Return why the work's executor may not apply this manifest, or an empty string."""
        step = task.step
        if task.executor is None or step.is_complete:
            return ""
        executor_action = ExecutorAction(
            executor=task.executor,
            meta=step.meta,
            is_owned=step.is_owned,
            applied_work_uid=task.owner.uid,
            generation=task.generation,
        )
        return await self._executor_access.denial(executor_action, resource=ref.resource, manifest=dict(step.manifest))

    async def delete(self, ref: ObjectRef, *, uid: str, version: str = "") -> Json | None:
        """Delete this UID, or this version, of an object; return it if finalizers keep it."""
        preconditions = DeleteOptions(uid=uid, resource_version=version)
        with self._watcher.during_request(ref):
            response = await self._client.delete(
                ref.resource, ref.name, namespace=ref.namespace, deletion=preconditions
            )
            remaining = None if response.get("kind") == "Status" else response
            self._watcher.observe(ref, remaining)
        return remaining

    async def remove_owner(self, ref: ObjectRef, patch: object) -> None:
        """Remove our owner reference from an object; an object that is gone is fine."""
        try:
            await self._patch(ref, patch)
        except errors.NotFound:
            return

    async def _resolve(self, kind: manifest_identity.GroupVersionKind) -> ResourceType:
        return await self._discovery.resolve(f"{kind.group}/{kind.version}" if kind.group else kind.version, kind.kind)


def _apply_input(task: ApplyTask, live: Json | None) -> update_strategy.ApplyInput:
    config = task.step.config
    return update_strategy.ApplyInput(
        manifest=task.step.manifest, live=live, strategy=config.update_strategy, owner=task.owner
    )


def _is_write(action: update_strategy.Action) -> bool:
    return not isinstance(action, update_strategy.RejectManifest | update_strategy.LeaveUnchanged)


def _is_changed(before: Json | None, after: Json | None) -> bool:
    """Whether a write changed the object."""
    return before is None or after is None or not objects.is_same(before, after)


def _key_of(ref: ObjectRef, owner: ownership.OwnerReference) -> _OwnedObject:
    """Return the key of an object of one owner; without the kind, because AppliedManifestWorks do not list it."""
    return owner.uid, ref.resource.group, ref.resource.plural, ref.namespace, ref.name


def object_fields(ref: ObjectRef | None) -> dict[str, object]:
    """Return the log fields that name an object."""
    if ref is None:
        return {}
    resource = ref.resource
    return {
        LogKey.GVR: f"{resource.group}/{resource.version}, Resource={resource.plural}",
        LogKey.RESOURCE_NAMESPACE: ref.namespace,
        LogKey.RESOURCE_NAME: ref.name,
    }
