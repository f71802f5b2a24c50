"""OTEL_* variables: what switches traces on, and what is only a problem for the log."""

import os
import subprocess
import sys

import pytest

from maestropy.telemetry import configuration, tracing, variables
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


@pytest.mark.parametrize(
    ("name", "text", "remedy"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "abc", "a whole number from 0"),
        ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "-1", "a whole number from 0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0", "a whole number from 1"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "1", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE (512) is greater than"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "abc", "a number above 0"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "set it to gzip"),
        ("OTEL_TRACES_SAMPLER", "sometimes", "one of always_on"),
        ("OTEL_TRACES_SAMPLER_ARG", "7", "a number from 0 to 1"),
        ("OTEL_TRACES_SAMPLER_ARG", "-1", "a number from 0 to 1"),
        ("OTEL_TRACES_SAMPLER_ARG", "nan", "a number from 0 to 1"),
    ],
)
def test_a_bad_variable_is_named_with_its_remedy(name: str, text: str, remedy: str) -> None:
    problems: list[str] = []
    environ = {**OTLP, "OTEL_TRACES_SAMPLER": "traceidratio", name: text}
    assert configuration.open_tracer(environ, service="maestro", report=problems.append) is tracing.OFF
    assert len(problems) == 1
    assert name in problems[0]
    assert remedy in problems[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("OTEL_TRACES_SAMPLER_ARG", "1e-3"),
        ("OTEL_TRACES_SAMPLER_ARG", "1"),
        ("OTEL_SPAN_LINK_COUNT_LIMIT", ""),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20abc==, x-team = platform,"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic YWJj/+="),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2.5"),
    ],
)
def test_good_variables_are_taken(name: str, text: str) -> None:
    environ = {**OTLP, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", name: text}
    assert configuration.choose(environ, is_installed=lambda: True) == Choice("otlp")


def test_no_message_has_the_value_of_a_header() -> None:
    environ = {**OTLP, "OTEL_EXPORTER_OTLP_HEADERS": "Bearer hunter2secret,a=b"}
    chosen = configuration.choose(environ, is_installed=lambda: True)
    assert chosen.problem.startswith("no traces: OTEL_EXPORTER_OTLP_HEADERS is malformed; set it to name=value")
    assert "hunter2" not in chosen.problem
    good = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer hunter2secret"}
    assert variables.without_secrets("invalid header 'Bearer hunter2secret' here", good) == "invalid header '…' here"
    assert "hunter2" not in configuration.rejected(ValueError("bad hunter2secret"), good)


BAD_IMPORT = """
import sys
from maestropy.telemetry import configuration, tracing, variables
variables.problem = lambda environ: ""
import os
print(configuration.open_tracer(os.environ, service="maestro", report=print) is tracing.OFF)
from maestropy.cli.tracing import traced_requests
with traced_requests():
    print("requested")
"""


def test_whatever_the_sdk_rejects_stops_no_process_and_no_command() -> None:
    bad = {"OTEL_TRACES_EXPORTER": "console", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "abc"}
    done = subprocess.run(
        [sys.executable, "-c", BAD_IMPORT], capture_output=True, text=True, check=True, env={**os.environ, **bad}
    )
    assert done.stdout.splitlines()[1:] == ["True", "requested"]
    for told in (done.stdout, done.stderr):
        assert told.count("no traces: the SDK does not accept the OTEL_* variables") == 1
        assert "one of OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_TRACES_EXPORTER" in told


def test_a_process_runs_without_traces_and_is_told_why() -> None:
    problems: list[str] = []
    tracer = configuration.open_tracer({"OTEL_TRACES_EXPORTER": "jaeger"}, service="maestro", report=problems.append)
    assert tracer is tracing.OFF
    assert len(problems) == 1
    assert configuration.trace_ids(tracer) is None


@pytest.mark.long
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
