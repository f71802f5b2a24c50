"""Show the effects of an adapter without carrying them out: results come from a recording, or are defaults.

Without a recorded result no works are stored, every create of a valid work succeeds and no agent reports a status.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.decide import api_paths, deviation
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import (
    Apply,
    Await,
    CallApi,
    Delete,
    Effect,
    EffectResult,
    Fetch,
    Locate,
    PutStatus,
    Query,
    ReadSurroundings,
)
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource, from_event
from maestropy.adapter.transports import recording, surroundings
from maestropy.sdk.errors import ConfigError
from maestropy.sdk.work import Work
from maestropy.wire.works.status import Condition
from maestropy.wire.works.work import ManifestWork

PLACEHOLDER_CONSUMER = "the-target-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunInputs:
    """The inputs of a dry run."""

    event: Event
    resource: Resource | None = None
    """The resource; without it and without a recording, it is taken from the event."""
    consumer: str = PLACEHOLDER_CONSUMER
    recorded: recording.Recording | None = None


@dataclass(slots=True)
class DryRun:
    """Performs no effect and records every effect."""

    inputs: DryRunInputs
    effects: list[Effect] = field(default_factory=list)
    _results: dict[str, deque[Mapping[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        self._results = defaultdict(deque)
        for entry in self.inputs.recorded.answers if self.inputs.recorded else ():
            self._results[entry["effect"]].append(entry)

    @property
    def statuses(self) -> list[AdapterStatus]:
        """The statuses that would be reported."""
        return [effect.status for effect in self.effects if isinstance(effect, PutStatus)]

    @property
    def deviations(self) -> list[str]:
        """How what would be changed and reported deviates from the recording; nothing without one that tells."""
        recorded = self.inputs.recorded.writes if self.inputs.recorded else []
        writes = [write for effect in self.effects if (write := deviation.write_of(effect)) is not None]
        return deviation.deviations(recorded, writes) if recorded else []

    async def perform(self, effect: Effect) -> EffectResult:
        """Return the recorded result, or the default one."""
        self.effects.append(effect)
        recorded = self._results[recording.name_of(effect)]
        if recorded:
            return recording.recorded_result(recorded.popleft(), event=self.inputs.event)
        match effect:
            case Fetch(event):
                return self.inputs.resource or from_event(event)
            case Locate():
                return self.inputs.consumer
            case Apply():
                # As the client does before it sends a work.
                effect.work.validate()
                return _as_stored(effect)
            case Query() | Await():
                return []
            case Delete() | PutStatus():
                return None
            case CallApi(method="GET"):
                advice = "record a run with --record, and replay it"
                raise ConfigError("a dry run asks no server", doing=f"GET {effect.url}", advice=advice)
            case CallApi():
                return None
            case ReadSurroundings():
                return surroundings.read(effect)


def lines(effect: Effect) -> list[str]:  # noqa: C901, PLR0911 - one case per effect
    """Return the lines that show one effect."""
    match effect:
        case Fetch(event):
            return [f"read    {event.kind} {event.resource_id}"]
        case Locate():
            return ["choose  a cluster"]
        case Query(name=""):
            return [f"find    works with {', '.join(f'{key}={value}' for key, value in effect.labels.items())}"]
        case Query():
            return [f"find    work {effect.consumer}/{effect.name}"]
        case Apply():
            verb = "create" if effect.patch is None else "patch "
            inside = [f"        {_identity(manifest)}" for manifest in effect.work.manifest_work.manifests]
            return [f"{verb}  work {effect.consumer}/{effect.work.name} ({effect.reason})", *inside]
        case Delete():
            return [f"delete  work {effect.consumer}/{effect.name} ({effect.reason})"]
        case Await():
            return [f"wait    up to {effect.seconds:g} s"]
        case PutStatus():
            conditions = [f"        {_shown(condition)}" for condition in effect.status.conditions]
            return [f"report  generation {effect.status.generation}", *conditions]
        case CallApi():
            return [f"call    {effect.method} {effect.url}", *_host_note(effect.url)]
        case ReadSurroundings():
            names = [*effect.variables, *effect.files]
            return [f"read    the environment: {', '.join(names)}"] if names else []


def _host_note(url: str) -> list[str]:
    """Return where a request with a host of its own really goes: a token is sent to the HyperFleet API only."""
    if "://" not in url:
        return []
    return [f"        a real run asks HYPERFLEET_API_URL for {api_paths.full_path(url)}, whatever host the task names"]


def _shown(condition: Condition) -> str:
    message = f": {condition.message}" if condition.message else ""
    return f"{condition.type}={condition.status} {condition.reason}{message}"


def _identity(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata") or {}
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest.get('kind')} {namespace}{metadata.get('name')}"


def _as_stored(effect: Apply) -> Work:
    version = effect.version + 1
    metadata = {
        **effect.work.manifest_work.metadata,
        "namespace": effect.consumer,
        "generation": version,
        "resourceVersion": str(version),
    }
    return Work.wrap(ManifestWork({**effect.work.manifest_work.body, "metadata": metadata}))
