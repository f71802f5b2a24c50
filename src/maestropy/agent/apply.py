"""Carry out what the plan says about one manifest. A manifest that fails is an answer, never an exception."""

import asyncio
from dataclasses import dataclass, replace

from maestropy.agent.decide import conditions, identity, ownership, plan, reporting, strategy
from maestropy.agent.observe import Observer, Place
from maestropy.agent.permission import Permissions, Question
from maestropy.agent.repairs import Repairs
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Key
from maestropy.kube import errors, objects
from maestropy.kube.client import KubeClient
from maestropy.kube.discovery import Discovery
from maestropy.kube.objects import Json
from maestropy.kube.request import Deletion, Patch, ResourceType, Write
from maestropy.wire import options, status

_ATTEMPTS = 4
_FIRST_PAUSE_SECONDS = 0.01
# What has no finalizers is gone at once; what is not gone by then comes back as AlreadyExists and is tried later.
_RECREATE_LOOKS = 50
_RECREATE_PAUSE_SECONDS = 0.1
_CRD_KIND = "CustomResourceDefinition"
_WRITES = (strategy.Create, strategy.Replace, strategy.Recreate, strategy.Apply)
_Slot = tuple[str, str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One manifest to be applied for one version of one work."""

    step: plan.Step
    owner: ownership.Owner
    executor: options.Executor | None
    generation: int
    may_wait: bool
    """Whether what only others may have changed can wait for the slow round."""
    is_new: bool
    """Whether the work's record never listed the object, so that it is probably not there."""
    context: dict[str, object]
    """Fields of every log line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one manifest."""

    step: plan.Step
    condition: status.Condition
    place: Place | None = None
    live: Json | None = None
    """The object, as the cluster last showed it."""
    problem: str = ""
    """Why it could not be looked at."""
    is_denied: bool = False
    should_retry: bool = False
    """Whether trying again soon may help."""
    wait_seconds: float = 0.0
    """How long a repair has to wait, because somebody undoes them all."""

    @property
    def is_well(self) -> bool:
        """Whether the object is there as it should be."""
        is_there = self.place is not None and self.live is not None
        return is_there and self.condition.status == status.TRUE and not self.wait_seconds

    @property
    def result(self) -> reporting.Result:
        """What the status says about applying it."""
        return reporting.Result(meta=self.step.meta, condition=self.condition)

    @property
    def observation(self) -> reporting.Observation:
        """What the status says about the object."""
        return reporting.Observation(live=self.live, problem=self.problem)


class _Contested(Exception):
    """Another manager owns a field that was to be applied."""


class Applier:
    """Writes to the cluster."""

    def __init__(
        self,
        client: KubeClient,
        *,
        discovery: Discovery,
        observer: Observer,
        permissions: Permissions,
        repairs: Repairs,
        journal: Journal,
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._observer = observer
        self._permissions = permissions
        self._repairs = repairs
        self._journal = journal
        # What we wrote last and what the cluster made of it; lost at a restart, which costs one write per object.
        self._settled: dict[_Slot, strategy.Settled] = {}

    async def serves(self, kinds: set[identity.Kind]) -> dict[identity.Kind, identity.ResourceType | plan.NotServed]:
        """Ask discovery how the cluster serves these kinds; those it does not know are missing."""
        found: dict[identity.Kind, identity.ResourceType | plan.NotServed] = {}
        for kind in kinds:
            try:
                resource = await self._resolve(kind)
            except errors.UnknownKind:
                continue
            except errors.KubeError as error:
                found[kind] = plan.NotServed(problem=error.message)
            else:
                found[kind] = identity.ResourceType(
                    group=resource.group,
                    version=resource.version,
                    resource=resource.plural,
                    is_namespaced=resource.namespaced,
                )
        return found

    async def place(self, meta: status.ResourceMeta) -> Place | None:
        """Return where the object of a manifest lives, or nothing if its kind is not served."""
        if not meta.resource:
            return None
        resource = await self._resolve(identity.Kind(meta.group, meta.version, meta.kind))
        return Place(resource, meta.namespace if resource.namespaced else "", meta.name)

    async def place_of(self, resource: ownership.AppliedResource) -> Place:
        """Return where a recorded object lives; a kind that went is enough for a path, which will not be found."""
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
        return Place(served, resource.namespace, resource.name)

    async def look(self, place: Place) -> Json | None:
        """Return an object, from the watch if it stands, else from the API server."""
        known = self._observer.look(place)
        if known.is_watched:
            return known.live
        return await self._get(place)

    def forget(self, place: Place, owner: ownership.Owner) -> None:
        """Drop what was remembered of an object that is no longer this owner's."""
        slot = _slot(place, owner)
        self._settled.pop(slot, None)
        self._repairs.forget(slot)

    async def apply(self, task: Task) -> Outcome:
        """Bring one object to its wanted state."""
        step = task.step
        place: Place | None = None
        try:
            place = await self.place(step.meta)
            if place is None or step.problem:
                refused = conditions.not_applied(step.problem, generation=task.generation)
                # The kind may come with a CRD; a manifest that is wrong stays wrong.
                return Outcome(step=step, condition=refused, place=place, should_retry=not step.meta.resource)
            denial = await self._denial(task, place)
            if denial:
                refused = conditions.not_applied(denial, generation=task.generation)
                self._journal.info(Phrase.APPLY_FAILED, {**task.context, Key.REASON: denial}, v=2)
                return Outcome(step=step, condition=refused, place=place, live=await self.look(place), is_denied=True)
            return await self._write(task, place)
        except errors.KubeError as error:
            self._journal.error(Phrase.APPLY_RESOURCE_FAILED, {**task.context, **where(place)}, err=error)
            condition = conditions.not_applied(error.message, generation=task.generation)
            can_help = not isinstance(error, errors.Malformed)
            failed = Outcome(step=step, condition=condition, place=place, should_retry=can_help)
            return await self._looked(failed)

    async def _looked(self, failed: Outcome) -> Outcome:
        """Say what is there of an object that could not be written."""
        if failed.place is None:
            return failed
        try:
            return replace(failed, live=await self.look(failed.place))
        except errors.Malformed:
            # No such object can exist.
            return failed
        except errors.KubeError as error:
            return replace(failed, problem=error.message)

    async def _write(self, task: Task, place: Place) -> Outcome:
        """Decide and write, again if somebody else was quicker."""
        pause = _FIRST_PAUSE_SECONDS
        slot = _slot(place, task.owner)
        live = None if self._can_guess(task, place) else await self.look(place)
        for attempt in range(1, _ATTEMPTS + 1):
            action = plan.action(task.step, live=live, owner=task.owner, last=self._settled.get(slot))
            is_repair = task.may_wait and isinstance(action, _WRITES) and slot in self._settled
            wait = self._repairs.seconds_to_wait(slot) if is_repair else 0.0
            if wait > 0:
                kept = conditions.applied(generation=task.generation)
                return Outcome(step=task.step, condition=kept, place=place, live=live, wait_seconds=wait)
            try:
                outcome = await self._carry_out(task, place, action=action, live=live)
            except _Contested as contested:
                # Only another wish, or force, helps. No storm of retries.
                condition = conditions.not_applied(str(contested), generation=task.generation)
                return Outcome(step=task.step, condition=condition, place=place, live=live)
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
                if attempt == _ATTEMPTS or (isinstance(error, errors.NotFound) and live is None):
                    raise
            else:
                if is_repair and _is_changed(live, outcome.live):
                    self._repairs.note(slot)
                return outcome
            await asyncio.sleep(pause)
            pause *= 5
            live = await self._get(place)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _can_guess(self, task: Task, place: Place) -> bool:
        """Whether to try creating at once: if the object is there after all, nothing happens but a refusal."""
        kind = task.step.treatment.update_strategy.type
        is_known = self._observer.look(place).is_watched
        return (
            task.is_new and not is_known and not task.step.is_complete and kind in (options.UPDATE, options.CREATE_ONLY)
        )

    async def _carry_out(self, task: Task, place: Place, *, action: strategy.Action, live: Json | None) -> Outcome:
        applied = conditions.applied(generation=task.generation)
        match action:
            case strategy.Refuse(problem=problem, is_about_ignored_fields=about_fields):
                say = conditions.fields_not_ignored if about_fields else conditions.not_applied
                refused = say(problem, generation=task.generation)
                return Outcome(step=task.step, condition=refused, place=place, live=live)
            case strategy.Leave(reason=reason):
                if reason == "read-only":
                    self._journal.info(Phrase.READ_ONLY, {**task.context, **where(place)})
                return Outcome(step=task.step, condition=applied, place=place, live=live)
            case strategy.Replace(can_wait=True) if task.may_wait:
                return Outcome(step=task.step, condition=applied, place=place, live=live)
            case _:
                pass
        wish = _wish(task, live)
        with self._observer.asking(place):
            written = await self._send(task, place, action=action)
            owners = strategy.followup(wish, written)
            if owners is not None:
                written = await self._patch(place, owners.body)
            self._observer.learn(place, written)
        self._settled[_slot(place, task.owner)] = strategy.settled(wish, written)
        if place.resource.kind == _CRD_KIND:
            self._discovery.invalidate()
        return Outcome(step=task.step, condition=applied, place=place, live=written)

    async def _send(self, task: Task, place: Place, *, action: strategy.Action) -> Json:
        resource = place.resource
        told = {**task.context, **where(place)}
        match action:
            case strategy.Create(body=body):
                written = await self._client.create(resource, body)
                self._journal.info(Phrase.CREATED, told)
            case strategy.Replace(body=body, recreate_if_immutable=recreate):
                try:
                    written = await self._client.update(resource, body)
                except errors.Invalid as error:
                    if not recreate or "immutable" not in error.message:
                        raise
                    return await self._recreate(place, dict(body), uid=body["metadata"]["uid"], told=told)
                self._journal.info(Phrase.UPDATED, told)
            case strategy.Recreate(body=body, uid=uid):
                return await self._recreate(place, dict(body), uid=uid, told=told)
            case strategy.Apply(body=body, field_manager=manager, force=force, notes=notes):
                for note in notes:
                    self._journal.warning(note, told)
                written = await self._apply(resource, dict(body), write=Write(field_manager=manager, force=force))
                self._journal.info(Phrase.APPLIED, {**told, Key.FIELD_MANAGER: manager})
            case strategy.PatchMetadata(body=body):
                written = await self._patch(place, body)
            case _:
                raise AssertionError(f"{type(action).__name__} writes nothing")
        return written

    async def _apply(self, resource: ResourceType, body: Json, *, write: Write) -> Json:
        try:
            return await self._client.apply(resource, body, write=write)
        except errors.Conflict as error:
            raise _Contested(error.message) from error

    async def _recreate(self, place: Place, body: Json, *, uid: str, told: dict[str, object]) -> Json:
        """Delete and create what cannot be changed."""
        for field in ("resourceVersion", "uid", "creationTimestamp"):
            body["metadata"] = {key: value for key, value in body["metadata"].items() if key != field}
        which = Deletion(uid=uid)
        await self._client.delete(place.resource, place.name, namespace=place.namespace, deletion=which)
        self._journal.info(Phrase.DELETED, {**told, Key.REASON: "it has to be created anew to be changed"})
        for _ in range(_RECREATE_LOOKS):
            if await self._get(place) is None:
                break
            await asyncio.sleep(_RECREATE_PAUSE_SECONDS)
        written = await self._client.create(place.resource, body)
        self._journal.info(Phrase.CREATED, told)
        return written

    async def _patch(self, place: Place, body: object) -> Json:
        return await self._client.patch(place.resource, place.name, change=Patch(body=body), namespace=place.namespace)

    async def _get(self, place: Place) -> Json | None:
        with self._observer.asking(place):
            try:
                found = await self._client.get(place.resource, place.name, namespace=place.namespace)
            except errors.NotFound:
                found = None
            self._observer.learn(place, found)
        return found

    async def _denial(self, task: Task, place: Place) -> str:
        """Ask whether the work's executor may do this; returns why not."""
        step = task.step
        if task.executor is None or step.is_complete:
            return ""
        question = Question(
            executor=task.executor,
            meta=step.meta,
            is_owned=step.is_owned,
            work=task.owner.uid,
            generation=task.generation,
        )
        return await self._permissions.denial(question, resource=place.resource, manifest=dict(step.manifest))

    async def delete(self, place: Place, *, uid: str, version: str = "") -> Json | None:
        """Delete one life, or one version, of an object; returns it if it is still there, held by something."""
        which = Deletion(uid=uid, resource_version=version)
        with self._observer.asking(place):
            answer = await self._client.delete(place.resource, place.name, namespace=place.namespace, deletion=which)
            held = None if answer.get("kind") == "Status" else answer
            self._observer.learn(place, held)
        return held

    async def let_go(self, place: Place, patch: object) -> None:
        """Take our owner reference off an object; gone is as good."""
        try:
            await self._patch(place, patch)
        except errors.NotFound:
            return

    async def get(self, place: Place) -> Json | None:
        """Return an object from the API server itself."""
        return await self._get(place)

    async def _resolve(self, kind: identity.Kind) -> ResourceType:
        return await self._discovery.resolve(f"{kind.group}/{kind.version}" if kind.group else kind.version, kind.kind)


def _wish(task: Task, live: Json | None) -> strategy.Wish:
    treatment = task.step.treatment
    return strategy.Wish(manifest=task.step.manifest, live=live, strategy=treatment.update_strategy, owner=task.owner)


def _is_changed(before: Json | None, after: Json | None) -> bool:
    """Whether a write did something; a write that says what is already so is not counted by the API server either."""
    return before is None or after is None or not objects.is_same(before, after)


def _slot(place: Place, owner: ownership.Owner) -> _Slot:
    """Name an object of one owner; records do not know its kind, and need not."""
    return owner.uid, place.resource.group, place.resource.plural, place.namespace, place.name


def where(place: Place | None) -> dict[str, object]:
    """Return the fields that name an object in the journal."""
    if place is None:
        return {}
    resource = place.resource
    return {
        Key.GVR: f"{resource.group}/{resource.version}, Resource={resource.plural}",
        Key.RESOURCE_NAMESPACE: place.namespace,
        Key.RESOURCE_NAME: place.name,
    }
