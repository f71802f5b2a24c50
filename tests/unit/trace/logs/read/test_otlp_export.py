"""An OTLP export is read as the logs of its processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from maestropy import trace
from maestropy.trace.logs.read.inputs import otlp_export

OPERATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SERVER, AGENT = "maestro", "maestro-agent"
STEPS: tuple[tuple[str, str, dict[str, str | int]], ...] = (
    (SERVER, "accept spec request", {"maestro.action": "create_request", "maestro.source": "cs"}),
    (SERVER, "commit spec", {}),
    (SERVER, "dispatch spec", {"maestro.action": "create_request"}),
    (AGENT, "receive spec", {"maestro.action": "create_request"}),
    (AGENT, "apply work", {}),
    (AGENT, "send status", {"maestro.sequence_id": "77"}),
    (SERVER, "receive status", {"maestro.outcome": "Store"}),
    (SERVER, "commit status", {"maestro.outcome": "Store", "maestro.sequence_id": "77"}),
    (SERVER, "dispatch status", {"maestro.sequence_id": "77"}),
)


def span(name: str, number: int, attributes: dict[str, str | int], *, error: str = "") -> dict[str, Any]:
    begin = 1_768_467_600_000_000_000 + number * 100_000_000
    own = {
        "op-id": OPERATION,
        "maestro.resource_id": "9d4af525-076d-57e3-84a1-5db3e309b559",
        "maestro.resource_version": 1,
        "maestro.consumer": "cluster1",
        **attributes,
    }
    values = [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in own.items()
    ]
    status = {"code": 2, "message": error} if error else {}
    times = {"startTimeUnixNano": str(begin), "endTimeUnixNano": str(begin + 10_000_000)}
    return {
        "traceId": "0a" * 16,
        "spanId": f"{number:016x}",
        "name": name,
        "attributes": values,
        "status": status,
    } | times


def export(folder: Path, spans: list[tuple[str, dict[str, Any]]]) -> Path:
    """Write one line for each span, as a collector does that flushes often."""
    path = folder / "traces.json"
    lines = []
    for service, exported in spans:
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
        scope = {"scope": {"name": "maestropy"}, "spans": [exported]}
        lines.append(
            json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}, separators=(",", ":"))
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_complete_request_of_spans(tmp_path: Path) -> None:
    path = export(tmp_path, [(service, span(name, number, more)) for number, (service, name, more) in enumerate(STEPS)])
    (found,) = trace.requests(path)
    assert (found.verdict, found.key.op_id, found.key.action) == ("complete", OPERATION, "create")
    # The whole folder is read alike.
    assert [each.verdict for each in trace.requests(tmp_path)] == ["complete"]


def test_a_log_of_the_same_role_comes_before_the_spans(tmp_path: Path) -> None:
    """With both, each step would have happened twice; the export shows what has no log."""
    spans = [(service, span(name, number, more)) for number, (service, name, more) in enumerate(STEPS)]
    path = export(tmp_path, spans)
    with path.open("rb") as stream:
        server = otlp_export.logs(stream)[SERVER].read().decode()
    # A log line is written some microseconds after its span begins.
    (tmp_path / "server.log").write_text(server.replace("00000Z", "00042Z"))
    assert [each.verdict for each in trace.requests(tmp_path)] == ["complete"]


def test_an_error_of_a_span_is_the_cause(tmp_path: Path) -> None:
    spans = [(service, span(name, number, more)) for number, (service, name, more) in enumerate(STEPS[:4])]
    spans.append((AGENT, span("apply work", 4, {}, error='no matches for kind "Widget" in version "v1"')))
    (found,) = trace.requests(export(tmp_path, spans))
    assert found.verdict == "failed"
    assert found.failed_stage == 4


def test_a_line_that_is_no_export_is_named(tmp_path: Path) -> None:
    path = export(tmp_path, [(SERVER, span("accept spec request", 0, {}))])
    path.write_text(path.read_text() + '{"resourceSpans": 7}\n')
    with pytest.raises(Exception, match="line 2 is no OTLP export in JSON"):
        trace.requests(path)
