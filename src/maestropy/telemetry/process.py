"""Open the log and the tracer of a process: each of them names the other's problems and traces."""

import asyncio
from collections.abc import Callable, Mapping

from maestropy.journal import emit
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import LifecyclePhrase
from maestropy.telemetry import configuration, tracing


def open_log(
    *, clock: Callable[[], float], verbosity: int, log_format: str, service: str, environ: Mapping[str, str]
) -> tuple[emit.Journal, tracing.Tracer]:
    """Return the log on standard error and the tracer that the OTEL_* variables ask for; needs a running event loop."""
    loop = asyncio.get_running_loop()

    def warn(problem: str) -> None:
        journal.warning(LifecyclePhrase.TRACING_PROBLEM, {LogKey.REASON: problem})

    def report(problem: str) -> None:
        # Exports run in a thread of their own, and the log belongs to the event loop.
        loop.call_soon_threadsafe(warn, problem)

    tracer = configuration.open_tracer(environ, service=service, report=report)
    journal = emit.Journal(
        emit.stderr(),
        clock=clock,
        verbosity=verbosity,
        format="json" if log_format == "json" else "text",
        trace_id_of=configuration.trace_ids(tracer),
    )
    return journal, tracer
