"""OTEL_* variables: what switches traces on, and what is only a problem for the log."""

import subprocess
import sys

import pytest

from maestropy.telemetry import configuration, tracing
from maestropy.telemetry.configuration import Choice

OTLP = {"OTEL_TRACES_EXPORTER": "otlp"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        pytest.param({}, Choice(), id="nothing-set"),
        pytest.param({"OTEL_TRACES_EXPORTER": "", "OTEL_EXPORTER_OTLP_ENDPOINT": ""}, Choice(), id="chart-default"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, Choice(), id="endpoint-alone"),
        pytest.param({"OTEL_TRACES_EXPORTER": "none"}, Choice(), id="none"),
        pytest.param({**OTLP, "OTEL_SDK_DISABLED": "true"}, Choice(), id="disabled"),
        pytest.param(OTLP, Choice("otlp"), id="otlp"),
        pytest.param({"OTEL_TRACES_EXPORTER": " Console "}, Choice("console"), id="console"),
        pytest.param({**OTLP, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, Choice("otlp"), id="protocol"),
        pytest.param(
            {
                **OTLP,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
            },
            Choice("otlp"),
            id="protocol-of-traces-first",
        ),
    ],
)
def test_choice(environ: dict[str, str], expected: Choice) -> None:
    assert configuration.choose(environ, is_installed=lambda: True) == expected


@pytest.mark.parametrize(
    ("environ", "is_installed", "problem"),
    [
        pytest.param({"OTEL_TRACES_EXPORTER": "zipkin"}, True, "zipkin is not supported; set it to otlp", id="zipkin"),
        pytest.param({**OTLP, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, True, "usually 4318", id="grpc"),
        pytest.param(OTLP, False, "needs the extra otel: run pip install '.[otel]'", id="extra-missing"),
    ],
)
def test_a_problem_switches_traces_off(environ: dict[str, str], is_installed: bool, problem: str) -> None:
    chosen = configuration.choose(environ, is_installed=lambda: is_installed)
    assert not chosen.exporter
    assert problem in chosen.problem


def test_a_value_that_the_sdk_rejects_stops_no_process() -> None:
    problems: list[str] = []
    environ = {"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_MAX_QUEUE_SIZE": "1"}
    assert configuration.open_tracer(environ, service="maestro", report=problems.append) is tracing.OFF
    assert len(problems) == 1
    assert problems[0].startswith("no traces: the SDK does not accept the OTEL_* variables: ")


def test_a_process_runs_without_traces_and_is_told_why() -> None:
    problems: list[str] = []
    tracer = configuration.open_tracer({"OTEL_TRACES_EXPORTER": "jaeger"}, service="maestro", report=problems.append)
    assert tracer is tracing.OFF
    assert len(problems) == 1
    assert configuration.trace_ids(tracer) is None


def test_no_process_imports_opentelemetry_before_a_variable_asks_for_it() -> None:
    program = """
import sys
import maestropy, maestropy.agent.main, maestropy.cli.main, maestropy.server.main
from maestropy.telemetry import configuration
configuration.open_tracer({}, service="maestro", report=print)
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
