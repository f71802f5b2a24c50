"""Recorded incidents of a Go Maestro are judged right: MQTT and gRPC broker, a real API server, several moments."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from maestropy.trace.logs import tracing
from maestropy.trace.logs.model import Options, Trace
from tests import trace_incidents


@pytest.mark.parametrize(("name", "count"), [("b", 19), ("cb4", 8)])
def test_every_verdict_is_right(incidents: Path, name: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert trace_incidents.scored(incidents / name) == (count, count), capsys.readouterr().out


@pytest.mark.long
@pytest.mark.parametrize("whole", [0, 1 << 30], ids=["searched", "read-whole"])
def test_one_request_and_all_requests_agree(incidents: Path, whole: int) -> None:
    options = Options()
    for moment in sorted(incidents.glob("*/snap-*")):
        judged, _ = trace_incidents.traces_of(moment)
        for resource in sorted({trace.key.resource for trace in judged}):
            tracer = tracing.RequestTracer([str(moment)], options=options, now=trace_incidents.NOW, whole=whole)
            found = tracer.judge(tracer.find([resource]), frozenset({resource}), [resource])
            expected = [trace for trace in judged if trace.key.resource == resource]
            assert conclusions(found.traces) == conclusions(expected), (moment.name, resource)


def conclusions(traces: Sequence[Trace]) -> list[tuple[str, str, int | None, str]]:
    ordered = sorted(traces, key=lambda trace: trace.start)
    return [
        (each.key.action, each.verdict.value, each.failed_stage, each.main_finding.code if each.main_finding else "")
        for each in ordered
    ]
