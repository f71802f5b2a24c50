"""Carry out what the pipeline asks for, on whatever world it is given.

A world has three plugs: a transport (Maestro, a Kubernetes API, or one of yours), a target that names the cluster for
new works, and a catalogue that knows the resources and takes reports. Failures are thrown back into the pipeline,
which knows what they mean.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maestropy.adapter.effects import Answer, Apply, Await, Delete, Effect, Fetch, Locate, Query, Tell
from maestropy.adapter.event import Event
from maestropy.adapter.pipeline import Outcome, Pipeline
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource
from maestropy.sdk.targeting import Target
from maestropy.sdk.work import Work


class Transport(Protocol):
    """Carries works to clusters and brings their status back. Raises `maestropy.sdk.errors` and nothing else."""

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        """Return the works with these labels on all clusters; or, given a name, the one of that name, if it is there.

        A work that is being deleted is still there until nothing of it is left on its cluster.
        """

    async def create(self, work: Work, *, consumer: str) -> Work:
        """Store a new work; raises AlreadyExists."""

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        """Change the stored work of this version by a JSON merge patch; raises Conflict if it is another by now."""

    async def delete(self, name: str, *, consumer: str) -> None:
        """Ask for a work's end; one that is not there counts as ended."""

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        """Return the works with these labels as soon as `until` says so, or as they are when the time is over."""


class Catalogue(Protocol):
    """Knows what the resources are, and takes reports on them."""

    async def fetch(self, event: Event) -> Resource | None:
        """Return the resource as it is now; None if it is gone."""

    async def tell(self, event: Event, resource: Resource, report: Report) -> None:
        """Hand over a report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where effects happen."""

    transport: Transport
    catalogue: Catalogue
    target: Target

    async def perform(self, effect: Effect) -> Answer:
        """Carry one effect out."""
        match effect:
            case Fetch(event):
                return await self.catalogue.fetch(event)
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
            case Await():
                return await self.transport.wait(labels=effect.labels, until=effect.until, seconds=effect.seconds)
            case Tell():
                await self.catalogue.tell(effect.event, effect.resource, effect.report)
                return None


class Performs(Protocol):
    """Anything that carries effects out: a world, a dry run, a recorder around one."""

    async def perform(self, effect: Effect) -> Answer:
        """Carry one effect out."""


async def drive(pipeline: Pipeline, world: Performs) -> Outcome:
    """Run a pipeline to its end."""
    try:
        effect = next(pipeline)
        while True:
            try:
                answer = await world.perform(effect)
            except Exception as error:  # noqa: BLE001 - the pipeline judges it
                effect = pipeline.throw(error)
            else:
                effect = pipeline.send(answer)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        pipeline.close()
