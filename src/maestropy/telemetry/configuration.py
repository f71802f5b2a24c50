"""Decide from the OTEL_* variables whether spans are exported, and open the tracer.

Off unless OTEL_TRACES_EXPORTER names an exporter. Charts of Maestro always pass the variable, often empty, so nothing
here stops a process: what cannot be done is a problem for the log, and the process runs without traces.
"""

import functools
import importlib.util
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from maestropy import installation
from maestropy.telemetry import tracing, variables

_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OPERATIONS_REMEMBERED: Final = 8192
_SUPPORTED_PROTOCOL: Final = "http/protobuf"


class Choice(NamedTuple):
    """What the variables ask for."""

    exporter: str = ""
    """`otlp` or `console`; empty: no traces."""
    problem: str = ""
    """Why there are no traces although some are asked for."""


def choose(environ: Mapping[str, str], *, is_installed: Callable[[], bool]) -> Choice:
    """Read the variables; `is_installed` is asked only if they name an exporter."""
    exporter = environ.get(_EXPORTER, "").strip().lower()
    if exporter in ("", "none") or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return Choice()
    if exporter not in ("otlp", "console"):
        return Choice(problem=f"{_EXPORTER}={exporter[:64]} is not supported; set it to otlp, console or none")
    protocol = next((environ[name].strip() for name in _PROTOCOLS if environ.get(name)), _SUPPORTED_PROTOCOL)
    if exporter == "otlp" and protocol != _SUPPORTED_PROTOCOL:
        return Choice(
            problem=f"OTLP over {protocol[:64]} is not supported; set {_PROTOCOLS[1]}={_SUPPORTED_PROTOCOL} and the "
            "endpoint to the HTTP port of the collector, usually 4318"
        )
    if problem := variables.problem(environ):
        return Choice(problem=f"no traces: {problem}")
    if not is_installed():
        return Choice(problem=f"{_EXPORTER}={exporter} needs the extra otel: {installation.hint('otel')}")
    return Choice(exporter)


def is_installed() -> bool:
    """Return whether the extra `otel` is installed."""
    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


def trace_ids(tracer: tracing.Tracer) -> Callable[[str], str] | None:
    """Return what tells the log the trace of an operation ID; None if nothing is traced."""
    if not tracer.is_on:
        return None

    # Asked for nearly every log record, and mostly for the same few operations.
    @functools.lru_cache(maxsize=_OPERATIONS_REMEMBERED)
    def trace_id_of(operation_id: str) -> str:
        trace = tracer.sampled(operation_id) if operation_id else None
        return "" if trace is None else f"{trace.trace_id:032x}"

    return trace_id_of


def open_tracer(environ: Mapping[str, str], *, service: str, report: Callable[[str], None]) -> tracing.Tracer:
    """Return the tracer that the variables ask for; `report` gets the problems, now and later, from any thread."""
    choice = choose(environ, is_installed=is_installed)
    if choice.problem:
        report(choice.problem)
    if not choice.exporter:
        return tracing.OFF
    try:
        # The SDK is an extra and takes a quarter of a second to import; it reads variables at its import already.
        from maestropy.telemetry import otel  # noqa: PLC0415  the reason is the line above

        otel.report_problems(lambda problem: report(variables.without_secrets(problem, environ)))
        return otel.open_tracer(choice.exporter, service=service, environ=environ)
    except Exception as error:  # noqa: BLE001 - a wrong variable must not stop the process, whatever the SDK raises
        report(rejected(error, environ))
        return tracing.OFF


def rejected(error: Exception, environ: Mapping[str, str]) -> str:
    """Return that the SDK does not start, for a reason that `variables` does not know."""
    given = ", ".join(sorted(name for name, text in environ.items() if name.startswith("OTEL_") and text))
    reason = variables.without_secrets(str(error) or type(error).__name__, environ)
    return f"no traces: the SDK does not accept the OTEL_* variables: {reason}; correct or unset one of {given}"
