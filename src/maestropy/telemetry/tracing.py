"""Record spans: what every process asks a tracer for, and the tracer that does nothing.

Spans are recorded when they have ended, with their times, because requests change tasks, batches and processes on their
way. `otel` has the tracer that exports them. A tracer never blocks and never raises.
"""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from maestropy.telemetry.trace_context import SpanContext

Attributes = Mapping[str, str | int | bool]


class SpanKind(enum.Enum):
    """What a span does at the border of its process."""

    INTERNAL = "internal"
    SERVER = "server"
    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span that has ended."""

    name: str
    context: SpanContext
    start: float
    """In seconds since the epoch, like `end`."""
    end: float
    parent: int = 0
    """The ID of a span of the same trace; 0: the span is a root."""
    kind: SpanKind = SpanKind.INTERNAL
    links: Sequence[SpanContext] = ()
    attributes: Attributes = field(default_factory=dict)
    error: str = ""
    """Why it failed; empty if it did not."""


class SpanCounts(NamedTuple):
    """What became of the recorded spans."""

    exported: int = 0
    failed: int = 0
    """The collector did not take them."""
    dropped: int = 0
    """The queue was full."""


class Tracer(Protocol):
    """Decides which requests are traced, and takes their spans."""

    @property
    def is_on(self) -> bool:
        """Whether spans are exported at all; check it before anything that costs time."""

    def sampled(self, operation_id: str, resource_id: str = "", version: int = 0) -> SpanContext | None:
        """Return the trace of a request and the span that published it; None if the request is not traced."""

    def continued(self, parent: SpanContext) -> bool:
        """Return whether a span below `parent`, of another process, is recorded."""

    def new_trace(self) -> SpanContext:
        """Return a new trace, with the ID of its first span; the caller has decided that it is sampled."""

    def new_span_id(self) -> int:
        """Return the ID of a span that nobody names beforehand."""

    def record(self, span: Span) -> None:
        """Export a span, later and in the background."""

    def counts(self) -> SpanCounts:
        """Return what became of the recorded spans."""

    def close(self) -> None:
        """Export what is queued, for a few seconds at most; blocks."""


class _Off:
    """Records nothing."""

    is_on: Final = False

    def sampled(self, operation_id: str, resource_id: str = "", version: int = 0) -> None:
        """Trace no request."""

    def continued(self, parent: SpanContext) -> bool:  # noqa: ARG002 - the protocol names it
        """Continue no trace."""
        return False

    def new_trace(self) -> SpanContext:
        """Return the context that names nothing."""
        return SpanContext(0, 0, is_sampled=False)

    def new_span_id(self) -> int:
        """Return the ID that names nothing."""
        return 0

    def record(self, span: Span) -> None:
        """Drop the span."""

    def counts(self) -> SpanCounts:
        """Return zeros."""
        return SpanCounts()

    def close(self) -> None:
        """Do nothing."""


OFF: Final[Tracer] = _Off()
