"""What do traces add to a request that is not sampled: the CPU time of exactly the calls that they add.

    python -m bench.trace_calls

`bench.traces` measures whole requests, where the noise of a machine is larger than the traces. Here only the added
calls run, in a loop without I/O, for requests that all differ; the least of many rounds counts, because other load can
only add to it. It is divided by the CPU time of a whole request in `bench/peers.json`. One in a hundred is sampled,
and costs what `--sampled` says: spans, and their export.
"""

import argparse
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from bench import figures
from maestropy.server.telemetry.request_spans import RequestSpans
from maestropy.telemetry import configuration, otel, tracing
from maestropy.wire.events import event

PEERS = Path(__file__).parent / "peers.json"
ROUNDS = 60
REQUESTS = 2_000
RATIO = 0.01
SAMPLED_US = 270.0
"""The most that a sampled request took more in `bench.traces`: 79 % of 338 µs."""
LOG_LINES = 3
"""Log records with the operation ID that a server writes at -v=2 about one create or one status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """What the calls get of one request."""

    operation_id: str
    outgoing: event.CloudEvent


class _Nowhere(SpanExporter):
    def export(self, spans: Sequence[object]) -> SpanExportResult:  # noqa: ARG002 - the interface names it
        return SpanExportResult.SUCCESS


def requests(count: int) -> list[Passing]:
    """Return requests that all differ."""
    made = []
    for _ in range(count):
        operation_id, resource_id = str(uuid.uuid4()), str(uuid.uuid4())
        extensions: dict[str, str | int] = {
            event.RESOURCE_ID: resource_id,
            event.RESOURCE_VERSION: 1,
            event.CLUSTER_NAME: "cluster1",
            event.LOG_TRACING: f'{{"{event.OPERATION_ID_KEY}":"{operation_id}"}}',
        }
        outgoing = event.CloudEvent(
            id=resource_id, source="maestro", type="io.open-cluster-management.works.v1alpha1", extensions=extensions
        )
        made.append(Passing(operation_id=operation_id, outgoing=outgoing))
    return made


def create(spans: RequestSpans, trace_id_of: Callable[[str], str], passing: Passing) -> None:
    """Make the calls that traces add to a create and its delivery."""
    spans.may_trace(passing.operation_id)
    for _ in range(LOG_LINES):
        trace_id_of(passing.operation_id)
    spans._tracer.sampled(passing.operation_id, passing.outgoing.id, 1)
    spans.dispatch(passing.outgoing, is_resync=False, now=0.0)


def status(spans: RequestSpans, trace_id_of: Callable[[str], str], passing: Passing) -> None:
    """Make the calls that traces add to a status and its way to one subscriber."""
    spans.may_trace(passing.operation_id)
    for _ in range(LOG_LINES):
        trace_id_of(passing.operation_id)
    spans._tracer.sampled(passing.operation_id, passing.outgoing.id, 1)
    spans.dispatch_status(passing.outgoing, is_resync=False, now=0.0)


def microseconds(calls: Callable[..., None], tracer: tracing.Tracer, rounds: int) -> float:
    """Return the CPU time of the calls for one request that is not sampled."""
    trace_id_of = configuration.trace_ids(tracer) or (lambda _: "")
    spans, least = RequestSpans(tracer), float("inf")
    for _ in range(rounds):
        some = [each for each in requests(REQUESTS) if tracer.sampled(each.operation_id) is None]
        forget = getattr(tracer, "_decide_operation", None)
        if forget is not None:
            forget.cache_clear()
        begun = time.thread_time()
        for passing in some:
            calls(spans, trace_id_of, passing)
        least = min(least, (time.thread_time() - begun) / len(some))
    return least * 1e6


def main(words: Sequence[str] | None = None) -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.trace_calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--sampled", type=float, default=SAMPLED_US, help="µs of CPU of a sampled request")
    options = parser.parse_args(words)
    tracer = otel.OtelTracer(
        _Nowhere(),
        resource=otel.resource("maestro", {}),
        sampler=ParentBased(TraceIdRatioBased(RATIO)),
        queue_size=2048,
    )
    measured = figures.read(PEERS)["measures"]
    whole = {
        "create": ("deliveries", "create and deliver, server CPU ms each", create),
        "status": ("statuses", "statuses to 1 subscriber, server CPU ms each", status),
    }
    for name, (measure, figure, calls) in whole.items():
        request = statistics.median(measured[measure][figure]["python"]) * 1000
        added = microseconds(calls, tracer, options.rounds)
        off = microseconds(calls, tracing.OFF, options.rounds)
        share = ((1 - RATIO) * (added - off) + RATIO * options.sampled) / request
        print(f"{name}: {added - off:.2f} µs added to {request:.0f} µs, {share:+.2%} at 1 % sampled")
    tracer.close()


if __name__ == "__main__":
    main()
