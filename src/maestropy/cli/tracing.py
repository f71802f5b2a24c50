"""Trace the requests of client commands, if the OTEL_* variables ask for it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_EXPORTER = "OTEL_TRACES_EXPORTER"


@contextmanager
def traced_requests() -> Iterator[None]:
    """Export the spans of the requests inside; nothing is imported unless an exporter is named."""
    if not os.environ.get(_EXPORTER):
        yield
        return
    from maestropy.telemetry import configuration

    def warn(problem: str) -> None:
        print(f"Warning: traces: {problem}", file=sys.stderr)  # noqa: T201 - the terminal is where a command reports

    choice = configuration.choose(os.environ, is_installed=configuration.is_installed)
    if choice.problem:
        warn(choice.problem)
    if not choice.exporter:
        yield
        return
    from maestropy.telemetry import otel

    otel.report_problems(warn)
    with otel.application(choice.exporter, service="maestro-client", environ=os.environ):
        yield
