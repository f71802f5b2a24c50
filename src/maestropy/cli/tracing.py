"""Trace the requests of client commands, if the OTEL_* variables ask for it."""

import contextlib
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
    from maestropy.telemetry import configuration, variables

    def warn(problem: str) -> None:
        print(f"Warning: traces: {problem}", file=sys.stderr)  # noqa: T201 - the terminal is where a command reports

    choice = configuration.choose(os.environ, is_installed=configuration.is_installed)
    if choice.problem:
        warn(choice.problem)
    if not choice.exporter:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            from maestropy.telemetry import otel

            otel.report_problems(lambda problem: warn(variables.without_secrets(problem, os.environ)))
            stack.enter_context(otel.application(choice.exporter, service="maestro-client", environ=os.environ))
        except Exception as error:  # noqa: BLE001 - a wrong variable must not stop the command, whatever the SDK raises
            warn(configuration.rejected(error, os.environ))
        yield
