"""Carry out the effects of the pipeline.

`LivePerformer` has three parts: a transport (Maestro, a Kubernetes API, or your own), a target that chooses the
consumer of new works, and a resource API that reads resources and takes statuses. Failures are thrown into the
pipeline, which classifies them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from maestropy.adapter import author_code
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import (
    Apply,
    Await,
    CallApi,
    CallAuthor,
    Delete,
    Effect,
    EffectResult,
    Fetch,
    Locate,
    PutStatus,
    Query,
    ReadSurroundings,
)
from maestropy.adapter.decide.pipeline import EventOutcome, Pipeline
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.transports import surroundings
from maestropy.sdk.targeting import Target
from maestropy.sdk.work import Work


class WorkTransport(Protocol):
    """Sends works to clusters and returns their status. Raises only errors of `maestropy.sdk.errors`."""

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return the works with these labels on all clusters; or, with a name, the work of that name, if it exists.

        A work that is being deleted exists until none of its objects is left on its cluster.
        """

    async def create(self, work: Work, *, consumer: str) -> Work:
        """Store a new work; raises AlreadyExists."""

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        """Change the stored work of this version by a JSON merge patch; raises Conflict if the version differs."""

    async def delete(self, name: str, *, consumer: str) -> None:
        """Request the deletion of a work; one that does not exist counts as deleted."""

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Return the works with these labels as soon as `until` is true, or when the time is over."""


class ResourceApi(Protocol):
    """Reads resources and takes adapter statuses."""

    async def fetch(self, event: Event) -> Resource | None:
        """Return the current resource; None if it is gone."""

    async def put_status(self, event: Event, resource: Resource, status: AdapterStatus) -> None:
        """Report the adapter status."""

    async def call(self, effect: CallApi) -> Any:
        """Make a request that a task asks for; returns the JSON of the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePerformer:
    """Carries effects out for real."""

    transport: WorkTransport
    resource_api: ResourceApi
    target: Target

    async def perform(self, effect: Effect) -> EffectResult:  # noqa: C901, PLR0911 - one case per effect
        """Carry one effect out and return its result."""
        match effect:
            case Fetch(event):
                return await self.resource_api.fetch(event)
            case Locate():
                return await self.target.consumer()
            case Query():
                return await self.transport.query(labels=effect.labels, consumer=effect.consumer, name=effect.name)
            case Apply(patch=None):
                return await self.transport.create(effect.work, consumer=effect.consumer)
            case Apply():
                return await self.transport.patch(
                    effect.work, consumer=effect.consumer, patch=effect.patch or {}, version=effect.version
                )
            case Delete():
                await self.transport.delete(effect.name, consumer=effect.consumer)
                return None
            case Await(author=None):
                return await self.transport.wait(labels=effect.labels, until=effect.until, seconds=effect.seconds)
            case Await():
                return await self._wait_for_author(effect)
            case PutStatus():
                await self.resource_api.put_status(effect.event, effect.resource, effect.status)
                return None
            case CallApi():
                response: EffectResult = await self.resource_api.call(effect)
                return response
            case ReadSurroundings():
                return surroundings.read(effect)

    async def _wait_for_author(self, effect: Await) -> Sequence[Work]:
        """Wait until the author's function is content with the works; it judges them in threads, one at a time."""
        assert effect.author
        author = effect.author
        changed = asyncio.Event()
        latest: Sequence[Work] = ()

        def observe(works: Sequence[Work]) -> bool:
            nonlocal latest
            latest = works
            changed.set()
            return False

        async def judged() -> Sequence[Work]:
            while True:
                await changed.wait()
                changed.clear()
                works = latest
                if await author_code.run(CallAuthor(function=partial(effect.until, works), author=author)):
                    return works

        try:
            return await self._first(effect, observe=observe, judged=judged())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _first(
        self,
        effect: Await,
        *,
        observe: Callable[[Sequence[Work]], bool],
        judged: Coroutine[Any, Any, Sequence[Work]],
    ) -> Sequence[Work]:
        """Return the works that were judged to be good, or those at the end of the time."""
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(self._waited(effect, until=observe), name="wait for a change of the works")
            judging = group.create_task(judged, name="judge the works")
            await asyncio.wait({waiting, judging}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            judging.cancel()
        return judging.result() if not judging.cancelled() else waiting.result()

    async def _waited(self, effect: Await, *, until: Callable[[Sequence[Work]], bool]) -> Sequence[Work]:
        return await self.transport.wait(labels=effect.labels, until=until, seconds=effect.seconds)


class Performer(Protocol):
    """Carries effects out: for real, as a dry run, or recorded."""

    async def perform(self, effect: Effect) -> EffectResult:
        """Carry one effect out and return its result."""


async def drive(
    pipeline: Pipeline, performer: Performer, *, call: Callable[[CallAuthor], Awaitable[Any]] = author_code.run
) -> EventOutcome:
    """Run a pipeline to its end; `call` calls the functions of the adapter's author."""
    try:
        step = next(pipeline)
        while True:
            try:
                result = await (call(step) if isinstance(step, CallAuthor) else performer.perform(step))
            except Exception as error:  # noqa: BLE001 - the pipeline classifies it
                step = pipeline.throw(error)
            else:
                step = pipeline.send(result)
    except StopIteration as end:
        outcome: EventOutcome = end.value
        return outcome
    finally:
        pipeline.close()
