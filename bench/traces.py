"""What do traces cost: CPU time of the server and of PostgreSQL for each create and each status, by sampling ratio?

    python -m bench.traces [--rounds 60] [--requests 64] [--ratio 0.01]

As `bench.history`: one server in this process, without the transport, so the share of the traces is larger here than
in production. Rounds with and without traces alternate on the same server and database. Every request has an operation
ID, as clients send it. Spans go to a receiver in another process; the thread that exports them is in the figures.
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from rich.console import Console
from rich.table import Table

from bench import history
from maestropy.journal import Journal
from maestropy.sandbox.otlp_receiver import OtlpReceiver
from maestropy.sandbox.postgres import PostgresCluster
from maestropy.server.telemetry.request_spans import RequestSpans
from maestropy.store.migrations import migrate
from maestropy.telemetry import configuration, otel, tracing
from maestropy.wire.events import event
from tests.stack import harness

QUEUE = 65_536


class Load(history.Load):
    """The same requests, with operation IDs, and traces in place of the history."""

    def __init__(self, server: harness.InProcess, tracer: tracing.Tracer) -> None:
        super().__init__(server)
        self._server = server
        self._tracers = {"on": tracer, "off": tracing.OFF}
        self._operations: dict[str, str] = {}

    def turn(self, side: history.Side) -> None:
        """Turn the traces on or off, in the log too."""
        tracer = self._tracers[side.name]
        object.__setattr__(self._server.context, "spans", RequestSpans(tracer))
        trace_ids = configuration.trace_ids(tracer)
        for journal in gc.get_objects():
            if isinstance(journal, Journal):
                journal._output = journal._output._replace(trace_id_of=trace_ids)

    def creates(self, side: history.Side, count: int) -> Iterator[event.CloudEvent]:
        """Yield requests for new works."""
        for created in super().creates(side, count):
            self._operations[created.text(event.RESOURCE_ID)] = str(uuid.uuid4())
            yield self._named(created)

    def statuses(self, side: history.Side, *, value: str, message: str) -> Iterator[event.CloudEvent]:
        """Yield a status of each of the last works."""
        return map(self._named, super().statuses(side, value=value, message=message))

    def _named(self, sent: event.CloudEvent) -> event.CloudEvent:
        operation = {event.OPERATION_ID_KEY: self._operations[sent.text(event.RESOURCE_ID)]}
        return replace(sent, extensions={**sent.extensions, event.LOG_TRACING: json.dumps(operation)})


async def measure(folder: Path, tracer: tracing.Tracer, *, rounds: int, count: int) -> Table:
    """Return the table of all figures."""
    cluster = PostgresCluster(folder / "data", max_connections=60, is_ephemeral=True)
    address = cluster.start()
    try:
        await migrate.migrate(address)
        postmaster = int((folder / "data" / "postgres" / "postmaster.pid").read_text().split()[0])
        on, off = history.Side(name="on"), history.Side(name="off")
        async with harness.in_process(address) as server:
            await server.add_consumer(history.CONSUMER)
            load = Load(server, tracer)
            for number in range(rounds + 3):
                for side in (on, off) if number % 2 else (off, on):
                    await history.one_round(load, side, count=count, postmaster=postmaster)
    finally:
        cluster.stop()
    return history.table(on, off)


def _receive(endpoint: Connection) -> None:
    with OtlpReceiver() as receiver:
        endpoint.send(receiver.endpoint)
        endpoint.recv()


def main(words: Sequence[str] | None = None) -> None:
    """Measure once, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.traces", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="rounds of each way")
    parser.add_argument("--requests", type=int, default=64, help="requests of each kind at once")
    parser.add_argument("--ratio", type=float, default=0.01, help="the share of requests that are traced")
    options = parser.parse_args(words)
    ours, theirs = multiprocessing.Pipe()
    receiving = multiprocessing.get_context("spawn").Process(target=_receive, args=(theirs,))
    receiving.start()
    try:
        tracer = otel.OtelTracer(
            OTLPSpanExporter(endpoint=f"{ours.recv()}/v1/traces"),
            resource=otel.resource("maestro", {}),
            sampler=ParentBased(TraceIdRatioBased(options.ratio)),
            queue_size=QUEUE,
        )
        with tempfile.TemporaryDirectory(prefix="maestropy-bench-") as place:
            measured = measure(Path(place), tracer, rounds=options.rounds, count=options.requests)
            Console(width=110).print(asyncio.run(measured))
        tracer.close()
        print(tracer.counts())
        ours.send("end")
    finally:
        receiving.join(10)
        receiving.kill()


if __name__ == "__main__":
    main()
