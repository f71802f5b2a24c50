"""What would an adapter do? Carries effects out on recorded answers, or on none, and keeps a list of them.

Where nothing is recorded the world is empty: no works are stored, every create succeeds and no agent answers.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter import recording
from maestropy.adapter.effects import Answer, Apply, Await, Delete, Effect, Fetch, Locate, Query, Tell
from maestropy.adapter.event import Event
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource, known_from
from maestropy.sdk.work import Work
from maestropy.wire.work import ManifestWork

NOWHERE = "the-target-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a dry run knows of the world."""

    event: Event
    resource: Resource | None = None
    """The resource; without it and without a recording, the little the event says."""
    consumer: str = NOWHERE
    recorded: recording.Recording | None = None


@dataclass(slots=True)
class DryRun:
    """Performs nothing and remembers what it was asked for."""

    given: Given
    asked: list[Effect] = field(default_factory=list)
    _answers: dict[str, deque[Mapping[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self._answers = defaultdict(deque)
        for entry in self.given.recorded.answers if self.given.recorded else ():
            self._answers[entry["effect"]].append(entry)

    @property
    def reports(self) -> list[Report]:
        """What would be reported."""
        return [each.report for each in self.asked if isinstance(each, Tell)]

    async def perform(self, effect: Effect) -> Answer:
        """Answer as the recording does, or as an empty world would."""
        self.asked.append(effect)
        waiting = self._answers[recording.name_of(effect)]
        if waiting:
            return recording.answer_in(waiting.popleft(), event=self.given.event)
        match effect:
            case Fetch(event):
                return self.given.resource or known_from(event)
            case Locate():
                return self.given.consumer
            case Apply():
                return _as_stored(effect)
            case Query() | Await():
                return []
            case Delete() | Tell():
                return None


def lines(asked: Effect) -> list[str]:
    """Return what to show of one effect."""
    match asked:
        case Fetch(event):
            return [f"read    {event.kind} {event.resource_id}"]
        case Locate():
            return ["choose  a cluster"]
        case Query(name=""):
            return [f"find    works with {', '.join(f'{key}={value}' for key, value in asked.labels.items())}"]
        case Query():
            return [f"find    work {asked.consumer}/{asked.name}"]
        case Apply():
            verb = "create" if asked.patch is None else "patch "
            inside = [f"        {_identity(each)}" for each in asked.work.manifest_work.manifests]
            return [f"{verb}  work {asked.consumer}/{asked.work.name} ({asked.reason})", *inside]
        case Delete():
            return [f"delete  work {asked.consumer}/{asked.name} ({asked.reason})"]
        case Await():
            return [f"wait    up to {asked.seconds:g} s"]
        case Tell():
            told = [
                f"        {each.type}={each.status} {each.reason}{f': {each.message}' if each.message else ''}"
                for each in asked.report.conditions
            ]
            return [f"report  generation {asked.report.generation}", *told]


def _identity(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata") or {}
    where = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest.get('kind')} {where}{metadata.get('name')}"


def _as_stored(effect: Apply) -> Work:
    version = effect.version + 1
    metadata = {
        **effect.work.manifest_work.metadata,
        "namespace": effect.consumer,
        "generation": version,
        "resourceVersion": str(version),
    }
    return Work.wrap(ManifestWork({**effect.work.manifest_work.body, "metadata": metadata}))
