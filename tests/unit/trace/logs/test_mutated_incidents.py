"""Situations that were made from recorded logs are judged as their truths say."""

import json
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace.logs import tracer, tracing
from maestropy.trace.logs.model import Options, Trace
from maestropy.trace.logs.read import scan
from tests import trace_incidents, trace_mutations
from tests.peers.incidents import truth
from tests.unit.trace.logs.mutated_incidents import MUTATIONS, Mutation
from tests.unit.trace.logs.test_incidents import conclusions
from tests.unit.trace.report.test_page import model_of


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_truth(mutation: Mutation, incidents: Path, tmp_path: Path) -> None:
    folder = trace_mutations.write(mutation.made(incidents), tmp_path / "logs")
    read = scan.scan_all([str(folder)], now=trace_incidents.NOW)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    traces = sorted(tracer.traces(read.records, environment, options=Options()), key=lambda trace: trace.start)
    requests = [as_document(trace) for trace in traces]
    wrong = [reason for expected in mutation.truths for reason in differences(expected, requests)]
    notes = " ".join(f"{finding.code} {finding.detail}" for finding in tracer.log_findings(environment))
    wrong += [f"the notes do not say {word}: {notes}" for word in mutation.notes if word not in notes]
    if mutation.count not in (None, len(requests)):
        wrong.append(f"{len(requests)} requests instead of {mutation.count}")
    assert not wrong, "\n".join(wrong)


def differences(expected: truth.Truth, requests: list[truth.Request]) -> list[str]:
    """Return what is wrong with the request that a truth is about."""
    own = [one for one in requests if expected.work in ("", one["work"]) and one["action"] == expected.action]
    if len(own) <= expected.nth:
        return [f"{expected.work} {expected.action}: not among the requests"]
    request = own[expected.nth]
    codes = [(finding["code"], finding["detail"][:80]) for finding in request["findings"]]
    wrong = truth.differences(expected, request)
    said = f"{request['verdict']} at {request['failedStage']} {codes}"
    return [f"{request['work']} {expected.action}: {', '.join(wrong)}; said {said}"] if wrong else []


def as_document(trace: Trace) -> truth.Request:
    return {
        "work": trace.key.work_name,
        "action": trace.key.action,
        "verdict": str(trace.verdict),
        "failedStage": trace.failed_stage,
        "findings": [
            {"code": finding.code, "stage": finding.entry.stage or None, "detail": finding.detail}
            for finding in trace.findings
        ],
    }


NEIGHBOUR = next(mutation for mutation in MUTATIONS if mutation.name == "error of another object near a killed agent")


@pytest.mark.parametrize("form", ["text", "json", "html", "md"])
def test_error_that_nothing_ties_to_a_request_is_shown_nearby(form: str, incidents: Path, tmp_path: Path) -> None:
    folder = trace_mutations.write(NEIGHBOUR.made(incidents), tmp_path / "logs")
    output = ["--output", form] if form != "text" else []
    command = "requests" if form == "html" else "request"
    name = [] if form == "html" else ["after5"]
    main.call(["trace", command, *name, str(folder), *output, "--out", str(tmp_path / "report")])
    report = (tmp_path / "report").read_text()
    if form == "html":
        report = json.dumps(model_of(report))
    assert "Nearby, not tied to the request" in report
    assert "elsewhere" in report


def test_nearby_errors_are_neither_certain_nor_the_cause(incidents: Path, tmp_path: Path) -> None:
    folder = trace_mutations.write(NEIGHBOUR.made(incidents), tmp_path / "logs")
    (trace,) = (trace for trace in trace_incidents.traces_of(folder)[0] if trace.key.work_name == "after5")
    (near,) = (finding for finding in trace.findings if finding.code == "MT-010")
    assert (near.confidence, near.entry.severity, len(near.evidence)) == ("possible", "info", 1)
    assert trace.main_finding is not None
    assert trace.main_finding is not near
    others = (trace for trace in trace_incidents.traces_of(folder)[0] if trace.key.work_name != "after5")
    assert not any(finding.code == "MT-010" for trace in others for finding in trace.findings)


@pytest.mark.parametrize("whole", [0, 1 << 30], ids=["searched", "read-whole"])
@pytest.mark.parametrize("name", ["agent's clock set back an hour", "server's clock set forward"])
def test_one_request_and_all_requests_agree_where_a_clock_was_set(
    name: str, whole: int, incidents: Path, tmp_path: Path
) -> None:
    mutation = next(mutation for mutation in MUTATIONS if mutation.name == name)
    folder = trace_mutations.write(mutation.made(incidents), tmp_path / "logs")
    judged, _ = trace_incidents.traces_of(folder)
    for resource in {trace.key.resource for trace in judged if trace.key.work_name in ("evil", "after1", "after4")}:
        request_tracer = tracing.RequestTracer([str(folder)], options=Options(), now=trace_incidents.NOW, whole=whole)
        found = request_tracer.judge(request_tracer.find([resource]), frozenset({resource}), [resource])
        expected = [trace for trace in judged if trace.key.resource == resource]
        assert conclusions(found.traces) == conclusions(expected), resource
