"""Define the effects that the pipeline yields, as values.

The pipeline yields an effect and is sent its result. A performer carries effects out: through Maestro, on a Kubernetes
API, or from a recording.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.work import Work


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the resource of an event from the API. Result: a Resource, or None if it is gone."""

    event: Event


@dataclass(frozen=True, slots=True)
class Locate:
    """Choose the consumer of a work that does not exist yet. Result: the name of a consumer."""

    resource: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Find works, on all clusters by labels, or one by name. Result: a list of works."""

    labels: Mapping[str, str] = field(default_factory=dict)
    consumer: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Create a work, or patch the one that is stored in this version. Result: the work as stored."""

    work: Work
    consumer: str
    patch: Mapping[str, Any] | None = None
    """None to create."""
    version: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Request the deletion of a work; it is gone when a query no longer finds it. Result: None."""

    name: str
    consumer: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Wait until `until` is true, or the time is over. Result: the works as they are then."""

    labels: Mapping[str, str]
    until: Callable[[Sequence[Work]], bool]
    seconds: float
    author: Callable[..., Any] | None = None
    """The function of the adapter's author that `until` calls, if it calls one: it then runs in a thread."""


@dataclass(frozen=True, slots=True)
class PutStatus:
    """Report the adapter's status to the HyperFleet API. Result: None."""

    event: Event
    resource: Resource
    status: AdapterStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CallApi:
    """Make a request to the HyperFleet API that a task asks for. Result: the JSON of the response."""

    method: str
    url: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSurroundings:
    """Read the time, environment variables and files. Result: Surroundings."""

    variables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the process around an adapter holds."""

    now: str
    """As RFC 3339."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those that are set."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The contents of those that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAuthor:
    """Call code of the adapter's author. Result: what it returns.

    Not an effect for performers: the driver of the pipeline calls it in a thread, because it may block.
    """

    function: Callable[[], Any]
    """With its arguments."""
    author: Callable[..., Any]
    """The function that the author wrote, for messages."""


def doing(effect: "Effect") -> str:  # noqa: PLR0911 - one case per effect
    """Return what an effect does, as it reads after "while"."""
    match effect:
        case Fetch(event):
            return f"reading {event.kind} {event.resource_id} from the API"
        case Locate():
            return "choosing a cluster"
        case Query():
            return "finding works"
        case Apply():
            return f"applying work {effect.consumer}/{effect.work.name}"
        case Delete():
            return f"deleting work {effect.consumer}/{effect.name}"
        case Await():
            return "waiting for the works"
        case PutStatus():
            return "reporting the status to the API"
        case CallApi():
            return f"calling {effect.method} {effect.url}"
        case ReadSurroundings():
            return "reading the environment"


Effect = Fetch | Locate | Query | Apply | Delete | Await | PutStatus | CallApi | ReadSurroundings
EffectResult = Resource | Sequence[Work] | Work | str | Mapping[str, Any] | Surroundings | None
