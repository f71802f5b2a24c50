"""What an adapter may ask the world for, as values.

The pipeline yields them and is sent their answers; whoever performs them decides what the world is: Maestro, a
Kubernetes API, a recording. Nothing here does anything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.event import Event
from maestropy.adapter.report import Report
from maestropy.adapter.resource import Resource
from maestropy.sdk.work import Work


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the resource of an event from the API. Answer: a Resource, or None if it is gone."""

    event: Event


@dataclass(frozen=True, slots=True)
class Locate:
    """Choose the cluster for what has none yet. Answer: the name of a consumer."""

    resource: Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Find works, on all clusters by labels, or one by name. Answer: a list of works."""

    labels: Mapping[str, str] = field(default_factory=dict)
    consumer: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Create a work, or patch the one that is stored in this version. Answer: the work as stored."""

    work: Work
    consumer: str
    patch: Mapping[str, Any] | None = None
    """None to create."""
    version: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Ask for a work's end; it is gone when a query no longer finds it. Answer: None."""

    name: str
    consumer: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Wait until works are as wanted, or the time is over. Answer: the works as they are then."""

    labels: Mapping[str, str]
    until: Callable[[Sequence[Work]], bool]
    seconds: float


@dataclass(frozen=True, slots=True)
class Tell:
    """Send a report to whoever is to know. Answer: None."""

    event: Event
    resource: Resource
    report: Report


Effect = Fetch | Locate | Query | Apply | Delete | Await | Tell
Answer = Resource | Sequence[Work] | Work | str | None
