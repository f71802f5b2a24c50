# ruff: noqa: E501 - log lines are as long as they are
"""The cause of a stopped request: every row of the runbook's error analysis, as a record near the gap."""

import csv
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.journal.phrases import StatusWriterPhrase
from maestropy.trace.logs import tracer
from maestropy.trace.logs.judge import database_checks
from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from maestropy.trace.logs.read import phrases, record_reader, scan
from tests.trace_request_logs import AGENT, BASE, SERVERS, TYPE, LoggedRequest, extensions, klog, records, write, zap

CREATE = LoggedRequest(work="nginx")
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)
DELETE = LoggedRequest(work="nginx", action="delete", version=1, at=BASE + 60, op_id=CREATE.operation)
BEFORE, AFTER = LoggedRequest(work="before", at=BASE - 120), LoggedRequest(work="after", at=BASE + 240)
ID, OP = CREATE.resource, CREATE.operation
SERVER, OTHER_SERVER, _ = SERVERS
CONTROLLERS = 'logger="maestro-server.maestro-controllers"'
WORK = f'logger="ManifestWorkController" manifestWorkName="{ID}" op-id="{OP}"'
Line = tuple[str, float, str]


def line(pod: str, after: float, body: str, *, level: str = "E") -> Line:
    return pod, after, klog(BASE + after, "file.go:1", body, level)


def traced(
    folder: Path, logged_requests: Sequence[LoggedRequest], lines: Sequence[Line], generation: str = "G4"
) -> list[Trace]:
    """Write the requests and, in order of time, the lines; return the traces."""
    write(folder, [BEFORE, *logged_requests, AFTER], generation)
    for pod, _, text in lines:
        log = folder / f"{pod}.log"
        before, after = _cut(log.read_text(), AFTER.at)
        log.write_text(f"{before}{text}\n{after}")
    read = scan.scan_all([str(folder)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    wanted = frozenset({ID})
    return sorted(
        tracer.traces(read.records, environment, options=Options(), wanted=wanted), key=lambda each: each.start
    )


def _cut(log: str, at: float) -> tuple[str, str]:
    """Cut a log where the last request starts; no other line is of that minute."""
    moment = datetime.fromtimestamp(at, tz=UTC)
    found = min(place for place in (log.find(f" {moment:%H:%M}:"), log.find(f"T{moment:%H:%M}:")) if place >= 0)
    place = log.rfind("\n", 0, found) + 1
    return log[:place], log[place:]


def codes(trace: Trace) -> list[str]:
    return [finding.code for finding in trace.findings]


HANDLE_FAILED = '"Failed to handle the event" err="{}" ' + CONTROLLERS + ' key="0c9b8a76-5f4e-4d3c-8b2a-19f8e7d6c5b4"'
STOPPED = [
    *(
        pytest.param(1, line(SERVER, 0.01, f'"{phrase}" {CONTROLLERS} channel="events"'), "MT-203", id=phrase)
        for phrase in (
            "recreate the listener for channel due to the connection loss",
            "recreate the listener due to ping failed",
            "Context cancelled, stopping channel monitor",
        )
    ),
    pytest.param(1, line(SERVER, 0.05, HANDLE_FAILED.format("error filtering event with id (x): error obtaining the event lock: timeout")), "MT-204", id="no-lock-for-its-event"),
    *(
        pytest.param(2, line(AGENT, 0.06, f'"{phrase}"'), "MT-301", id=phrase)
        for phrase in (
            "the cloudevents client is disconnected",
            "reconnecting the cloudevents client",
            "the cloudevents client reconnect failed",
            "failed to subscribe after connection",
            "failed to receive cloudevents",
            "mqtt client error",
            "MQTT error message",
            "stop the cloudevents receiver",
        )
    ),
    pytest.param(2, line(AGENT, 0.06, '"event clustername and agent clustername do not match, ignore" eventClusterName="mgmt-1" agentClusterName="mgmt-9"'), "MT-302", id="agent-of-another-cluster"),
    pytest.param(2, line(AGENT, 0.06, '"event clustername and agent clustername do not match, ignore" eventClusterName="mgmt-7" agentClusterName="mgmt-1"'), "MT-306", id="event-of-another-cluster-says-nothing"),
    pytest.param(2, line(AGENT, 0.06, '"invalid event" err="x"'), "MT-305", id="invalid-event"),
    pytest.param(5, line(SERVER, 0.25, '"failed to receive cloudevents" err="EOF" logger="maestro-server"'), "MT-601", id="server-off-the-broker"),
    pytest.param(7, line(SERVER, 0.285, f'"recreate the listener for channel due to the connection loss" {CONTROLLERS} channel="status_events"'), "MT-801", id="status-listener-lost"),
    *(
        pytest.param(7, line(SERVER, 0.285, HANDLE_FAILED.format(error)), "MT-802", id=error)
        for error in ("failed to get status event x: boom", "error getting status event with id(x)", "failed to get resource x: boom")
    ),
    pytest.param(8, line(SERVER, 0.289, '"failed to send event, unregister subscriber" err="EOF" subscriber="aa"'), "MT-903", id="stream-broken"),
    pytest.param(8, line(SERVER, 0.289, '"send channel is full, dropping heartbeat"'), "MT-904", id="slow-client"),
]  # fmt: skip


@pytest.mark.parametrize(("last", "said", "code"), STOPPED)
def test_component_record_near_the_gap_is_the_cause(tmp_path: Path, last: int, said: Line, code: str) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=last)], [said])
    assert (trace.verdict, trace.failed_stage, codes(trace)) == (RequestVerdict.INCOMPLETE, last + 1, [code])


FAILED = [
    pytest.param(3, line(AGENT, 0.1, f'"failed to decode spec" err="manifests are invalid" op-id="{OP}" eventType="{TYPE}.spec.create_request"'), 4, "MT-401", id="decoding-tells-the-op-id-only"),
    pytest.param(3, line(AGENT, 0.1, f'"failed to handle spec event" err="boom" op-id="{OP}" eventType="{TYPE}.spec.create_request"'), 4, "MT-401", id="handling-tells-the-op-id-only"),
    *(
        pytest.param(4, line(AGENT, 0.2, f'"controller failed to sync" err="{error}" logger="ManifestWorkController.UnhandledError" key="{ID}"'), 4, code, id=error)
        for error, code in (
            ("configmaps nginx-cm is forbidden: User x cannot patch", "MT-403"),
            ("admission webhook w denied the request: forbidden by policy", "MT-407"),
            ("namespaces x not found", "MT-406"),
        )
    ),
    pytest.param(4, line(AGENT, 0.2, f'"not allowed to apply the resource" err="configmaps is forbidden" {WORK}'), 4, "MT-410", id="executor"),
    pytest.param(4, line(AGENT, 0.24, f'"controller failed to sync" err="Failed to publish resource {ID}: EOF" key="{ID}"'), 5, "MT-501", id="publishing-fails-in-the-same-controller"),
    pytest.param(6, line(SERVER, 0.28, f'"failed to decode status" err="unmatched original source id foo" logger="maestro-server" op-id="{OP}" eventType="{TYPE}.status.update_request"'), 7, "MT-602", id="another-source"),
    pytest.param(8, line(SERVER, 0.289, f'"failed to handle resource" err="boom" resourceID="{ID}"'), 9, "MT-905", id="not-encoded"),
]  # fmt: skip


@pytest.mark.parametrize(("last", "said", "stage", "code"), FAILED)
def test_error_of_the_request_is_the_only_finding(tmp_path: Path, last: int, said: Line, stage: int, code: str) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=last)], [said])
    assert (trace.verdict, trace.failed_stage, codes(trace)) == (RequestVerdict.FAILED, stage, [code])
    assert trace.findings[0].evidence


OLD = [
    pytest.param(2, AGENT, klog(BASE + 0.06, "reflector.go:1", '"Unhandled Error" err="failed to receive cloudevents, EOF" logger="UnhandledError"', "E"), 3, "MT-301", id="wrapped-by-the-library"),
    pytest.param(4, AGENT, klog(BASE + 0.2, "base_controller.go:1", '"Unhandled Error" err="\\"ManifestWorkController\\" controller failed to sync \\"nginx\\", err: x is forbidden"', "E"), 4, "MT-403", id="wrapped-apply-error"),
    pytest.param(6, SERVER, klog(BASE + 0.28, "sourceclient.go:1", f"failed to handle status event, failed to handle resource status update {ID}: failed to create status event", "E"), 7, "MT-707", id="status-not-stored"),
    pytest.param(7, SERVER, zap(BASE + 0.285, "controllers/status.go:1", "Failed to handle the event 8a39: failed to get status event 8a39: boom", "ERROR"), 8, "MT-802", id="status-event-not-read"),
    pytest.param(8, SERVER, zap(BASE + 0.289, "event/event.go:1", f"failed to handle resource {ID}: boom", "ERROR"), 9, "MT-905", id="not-encoded"),
    pytest.param(8, SERVER, zap(BASE + 0.289, "server/grpc.go:1", "failed to send heartbeat: EOF", "ERROR"), 9, "MT-903", id="stream-broken"),
]  # fmt: skip


@pytest.mark.parametrize(("last", "pod", "said", "stage", "code"), OLD)
def test_causes_in_older_generations(tmp_path: Path, last: int, pod: str, said: str, stage: int, code: str) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=last)], [(pod, 0, said)], "G2")
    assert (trace.failed_stage, codes(trace)) == (stage, [code])
    assert trace.findings[0].evidence


@pytest.mark.parametrize("words", [
    "skipping create for resource that is marked as deleting; the delete event will propagate the delete",
    "skipping to publish create request for resource as it is not found",
])  # fmt: skip
def test_request_skipped_by_the_server_is_superseded(tmp_path: Path, words: str) -> None:
    (trace,) = traced(
        tmp_path, [replace(CREATE, until=1)], [line(SERVER, 0.04, f'"{words}" {CONTROLLERS} resourceID="{ID}"')]
    )
    assert (trace.verdict, codes(trace)) == (RequestVerdict.SUPERSEDED, ["MT-206"])
    assert trace.findings[0].evidence


def test_event_left_to_an_instance_without_log_is_not_observable(tmp_path: Path) -> None:
    left = line(
        SERVER,
        0.04,
        f'"Event is processed by another worker" {CONTROLLERS} event="0c9b8a76-5f4e-4d3c-8b2a-19f8e7d6c5b4"',
        level="I",
    )
    (trace,) = traced(tmp_path, [replace(CREATE, until=1)], [left])
    assert (trace.failed_stage, codes(trace)) == (3, ["MT-306", "MT-205"])
    assert {finding.confidence for finding in trace.findings} == {"possible"}


NOT_FOUND = '"skipping resource as it is not found" {} resourceID="{}"'


@pytest.mark.parametrize(("last", "verdict"), [(6, RequestVerdict.UNKNOWN), (7, RequestVerdict.COMPLETE)])
def test_status_of_a_deleted_resource_has_its_code(tmp_path: Path, last: int, verdict: RequestVerdict) -> None:
    (trace,) = traced(
        tmp_path, [replace(CREATE, until=last)], [line(SERVER, 0.287, NOT_FOUND.format(CONTROLLERS, ID), level="I")]
    )
    assert (trace.verdict, codes(trace)) == (verdict, ["MT-703"])


@pytest.mark.parametrize(("found", "code", "result"), [
    ("foundVersion=2 wantVersion=1", "MT-704", "stale"),
    ('foundSequenceID="2" wantSequenceID="1"', "MT-705", "duplicate"),
])  # fmt: skip
def test_stale_status_supersedes_the_request(tmp_path: Path, found: str, code: str, result: str) -> None:
    stale = line(
        SERVER,
        0.28,
        f'"Updating status for stale resource; disregard it" logger="maestro-server" resourceID="{ID}" op-id="{OP}" {found}',
        level="I",
    )
    (trace,) = traced(tmp_path, [replace(CREATE, until=6)], [stale])
    assert (trace.verdict, codes(trace)) == (RequestVerdict.SUPERSEDED, [code])
    assert [status_update.result for status_update in trace.details.value.status_updates] == [result]


def test_status_whose_order_is_not_known_is_followed_by_one_that_is_stored(tmp_path: Path) -> None:
    unordered = line(
        SERVER,
        0.21,
        f'"{StatusWriterPhrase.UNORDERED}" logger="maestro-server" resourceID="{ID}" op-id="{OP}" '
        'foundSequenceID="2" wantSequenceID="1" reason="sequenceid 1 is not newer"',
        level="W",
    )
    (trace,) = traced(tmp_path, [CREATE], [unordered])
    assert trace.verdict == RequestVerdict.COMPLETE


def test_unchanged_later_status_completes_the_request(tmp_path: Path) -> None:
    handled = line(
        SERVER,
        60.272,
        f'"handle resource status update by the current instance" logger="maestro-server" op-id="{UPDATE.operation}" resourceID="{ID}"',
        level="I",
    )
    _, update = traced(tmp_path, [CREATE, replace(UPDATE, until=6)], [handled])
    assert (update.verdict, codes(update)) == (RequestVerdict.COMPLETE, ["MT-706"])


HELD = f'appliedManifestWorkName="{"f" * 64}-{ID}" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="held"'


@pytest.mark.parametrize("pending", [False, True], ids=["verbosity-2", "verbosity-4"])
def test_deletion_blocked_by_finalizer_is_reported(tmp_path: Path, *, pending: bool) -> None:
    lines = [
        line(
            AGENT,
            60.1,
            f'"Deleted resource" logger="AppliedManifestWorkFinalizer" {HELD} reason="manifestwork {ID} is terminating"',
            level="I",
        )
    ]
    if pending:
        lines.append(
            line(
                AGENT,
                62,
                f'"resources pending deletions" logger="AppliedManifestWorkFinalizer" appliedManifestWorkName="{"f" * 64}-{ID}" numOfResources=1',
                level="I",
            )
        )
    *_, delete = traced(tmp_path, [CREATE, replace(DELETE, until=3)], lines)
    assert (delete.verdict, delete.failed_stage, codes(delete)) == (RequestVerdict.PENDING, 4, ["MT-411"])
    assert "default/held" in delete.findings[0].detail


def _report(logged: LoggedRequest, at: float) -> list[Line]:
    """One more report of our own agent, which says that it is still deleting."""
    again = replace(logged, at=logged.at + at)
    told = (
        f'op-id="{OP}" eventType="{TYPE}.status.update_request" extensions={extensions(again, version=1, status=True)}'
    )
    handled = f'logger="maestro-server" op-id="{OP}" resourceID="{ID}"'
    sent = again.at - BASE
    return [
        line(AGENT, sent, f'"Sending event" {told}', level="I"),
        line(SERVER, sent + 0.01, f'"Received event" logger="maestro-server" {told}', level="I"),
        line(SERVER, sent + 0.02, f'"received status update for resource" {handled}', level="I"),
        line(SERVER, sent + 0.03, f'"handle resource status update by the current instance" {handled}', level="I"),
        line(SERVER, sent + 0.04, f'"resource status update event was sent" {handled}', level="I"),
    ]


@pytest.mark.parametrize("is_held", [True, False])
def test_blocked_deletion_with_our_agent_is_reported(tmp_path: Path, *, is_held: bool) -> None:
    deleted = line(AGENT, 60.1, f'"Deleted resource" logger="AppliedManifestWorkFinalizer" {HELD}', level="I")
    first, second = _report(DELETE, 0.09), _report(DELETE, 0.2)
    logged_requests = [CREATE, replace(DELETE, until=3)]
    traced(tmp_path, logged_requests, [*first, deleted, *(second if is_held else [])])
    log = tmp_path / f"{AGENT}.log"
    log.write_text(log.read_text().replace(".go:", ".py:"))
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    (delete,) = (
        trace for trace in tracer.traces(read.records, environment, options=Options()) if trace.key.action == "delete"
    )
    assert (delete.failed_stage, codes(delete)) == ((4, ["MT-411"]) if is_held else (5, ["MT-503"]))


def test_repeated_status_does_not_change_the_skew(tmp_path: Path) -> None:
    write(tmp_path, [CREATE, AFTER])
    log = tmp_path / f"{AGENT}.log"
    again = next(each for each in log.read_text().splitlines() if '"Sending event"' in each)
    with log.open("a") as stream:
        stream.write(klog(BASE + 200, "baseclient.go:183", again.split("] ", 1)[1]) + "\n")
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    assert [writer.skew for writer in environment.writers] == [0.0] * len(environment.writers)


def test_search_in_large_logs_includes_every_component_phrase() -> None:
    reasons = {
        RecordKind.DISCONNECTED, RecordKind.LISTENER_LOST, RecordKind.FOREIGN_EVENT, RecordKind.OTHER_CLUSTER, RecordKind.DATABASE, RecordKind.STREAM_BROKEN,
        RecordKind.SLOW_CLIENT, RecordKind.OTHER_INSTANCE, RecordKind.DECODE_FAILED, RecordKind.STATUS_FAILED, RecordKind.AGENT_SUBSCRIBED, RecordKind.CLIENT_SUBSCRIBED,
        RecordKind.CLIENT_UNSUBSCRIBED, RecordKind.SUBSCRIBED,
    }  # fmt: skip
    messages = [text for text, phrase in phrases.STRUCTURED.items() if phrase.kind in reasons]
    lines = [b'I0115 09:00:01.123456       1 file.go:1] "%b" err="x"' % message for message in messages]
    assert [line for line in lines if not record_reader.is_of_component(line)] == []


PENDING: database_checks.CheckResults = {"resource": [{"version": 1}], "events": [{"reconciled_date": None}]}


@pytest.mark.parametrize(
    ("last", "answers", "code", "verdict"),
    [
        pytest.param(1, {"resource": [], "events": []}, "MT-201", RequestVerdict.INCOMPLETE, id="no-row"),
        pytest.param(1, PENDING, "MT-203", RequestVerdict.INCOMPLETE, id="an-event-waits"),
        pytest.param(
            1,
            {**PENDING, "backlog": [{"event_type": "Delete", "count": 5000}]},
            "MT-208",
            RequestVerdict.INCOMPLETE,
            id="many",
        ),
        pytest.param(
            4,
            {"resource": [{"status_version": "1"}], "conditions": [{"type": "Applied", "status": "Unknown"}]},
            "MT-503",
            RequestVerdict.INCOMPLETE,
            id="answered-without-an-outcome",
        ),
        pytest.param(4, {"resource": [{"status_version": "1"}]}, "MT-502", RequestVerdict.COMPLETE, id="answered"),
        pytest.param(
            4, {"resource": [{"status_version": None}]}, "MT-503", RequestVerdict.INCOMPLETE, id="not-answered"
        ),
    ],
)
def test_database_result_refines_the_finding(
    tmp_path: Path, last: int, answers: database_checks.CheckResults, code: str, verdict: RequestVerdict
) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=last)], [])
    refined = database_checks.refined(trace, answers)
    assert (codes(refined), refined.verdict) == ([code], verdict)


def test_delete_traced_by_op_id_has_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path, [CREATE, replace(DELETE, op_id="op-of-the-delete")])
    assert main.call(["trace", "request", "--op-id", "op-of-the-delete", str(folder), "--nth", "-1"]) == 0
    assert "MT-008" in capsys.readouterr().out
    assert main.call(["trace", "request", ID, str(folder), "--nth", "-1"]) == 0
    assert "MT-008" not in capsys.readouterr().out


def test_unknown_identifier_refers_to_stage_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.call(["trace", "request", "--resource-id", "nobody", str(write(tmp_path, [CREATE]))]) == 4
    assert "Maestro server does not receive the spec request" in capsys.readouterr().err


def _export(folder: Path, *, zone: str = "") -> list[str]:
    """Write the exports of a runbook: rows of pod and line, of which its query keeps a few."""
    rows = {"server": [("pod_name", "log")], "agent": [("pod_name", "log")]}
    told = re.compile(rf"^(\S+\t|[IWEF]\d{{4}} )|{TYPE}|metadata")
    for pod, lines in records([CREATE], "G2").items():
        kept = [part for _, text in lines for part in text.split("\n") if told.search(part)]
        rows["agent" if pod == AGENT else "server"] += [(pod, each) for each in kept]
    for name, found in rows.items():
        stamped = [("TIMESTAMP" if row == ("pod_name", "log") else zone, *row) if zone else row for row in found]
        with (folder / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows(stamped)
        later = BASE + 400 * 86400
        os.utime(folder / f"{name}.csv", (later, later))
    return [str(folder / "server.csv"), str(folder / "agent.csv")]


def test_export_without_times_takes_the_year_of_other_logs(tmp_path: Path) -> None:
    read = scan.scan_all(_export(tmp_path), now=BASE + 500 * 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    (trace,) = tracer.traces(read.records, environment, options=Options())
    assert (trace.verdict, round(trace.duration, 1)) == (RequestVerdict.COMPLETE, 0.3)
    assert {stage.state.value for stage in trace.stages} == {"ok"}


def test_unreadable_times_are_reported(tmp_path: Path) -> None:
    read = scan.scan_all(_export(tmp_path, zone="1/15/2026, 9:00:01.123 AM"), now=BASE + 500 * 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    assert {log_finding.code for log_finding in tracer.log_findings(environment)} == {"MT-009"}


LOST = "the connection was lost: packet too large (0x95)"
TOO_LARGE = [
    pytest.param(2, line(SERVER, 0.05, f'"Failed to publish resource" err="Packet too large - The packet size is greater than Maximum Packet Size" {CONTROLLERS} resourceID="{ID}"'), RequestVerdict.FAILED, 2, id="the-broker-refuses-the-server"),
    pytest.param(2, line(SERVER, 0.06, f'"the cloudevents client is disconnected" err="{LOST}"'), RequestVerdict.INCOMPLETE, 3, id="the-broker-drops-the-server"),
    pytest.param(2, line(AGENT, 0.06, '"failed to receive cloudevents" err="rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5242880 vs. 4194304)"'), RequestVerdict.INCOMPLETE, 3, id="the-agent-takes-no-such-message"),
]  # fmt: skip


@pytest.mark.parametrize(("last", "said", "verdict", "stage"), TOO_LARGE)
def test_too_large_messages_have_their_code(
    tmp_path: Path, last: int, said: Line, verdict: RequestVerdict, stage: int
) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=last)], [said])
    assert (trace.verdict, trace.failed_stage, codes(trace)) == (verdict, stage, ["MT-303"])
    assert trace.findings[0].evidence


def _whole(size: int) -> Line:
    """Stage 2 at -v=5, with a payload of so many bytes."""
    event = {
        "specversion": "1.0", "id": CREATE.event("ce"), "source": "maestro", "type": f"{TYPE}.spec.create_request",
        "clustername": "mgmt-1", "resourceid": ID, "resourceversion": 1, "data": {"manifests": ["x" * size]},
    }  # fmt: skip
    return line(SERVER, 0.043, f'"Sending event" op-id="{OP}" event={json.dumps(json.dumps(event))}', level="I")


@pytest.mark.parametrize(("size", "code"), [(600 << 10, "MT-303"), (500 << 10, "MT-306")])
def test_large_event_is_recognised_by_its_size(tmp_path: Path, size: int, code: str) -> None:
    (trace,) = traced(tmp_path, [replace(CREATE, until=2)], [_whole(size)])
    assert (trace.failed_stage, codes(trace)) == (3, [code])
    assert ("about 600 KB" in trace.findings[0].detail) is (code == "MT-303")


def _received(logged: LoggedRequest, after: float) -> Line:
    spec = f'eventType="{TYPE}.spec.{logged.action}_request" extensions={extensions(logged, version=logged.version)}'
    return line(AGENT, after, f'"Received event" op-id="{logged.operation}" {spec}', level="I")


@pytest.mark.parametrize(("after", "is_stale"), [(61, True), (30, False)], ids=["after-version-2", "before-version-2"])
def test_older_version_received_after_a_newer_one_is_stale(tmp_path: Path, after: float, *, is_stale: bool) -> None:
    create, update = traced(tmp_path, [replace(CREATE, until=2), UPDATE], [_received(CREATE, after)])
    assert (create.verdict, create.superseded_by, update.verdict) == (
        RequestVerdict.SUPERSEDED, "update v2", RequestVerdict.COMPLETE,
    )  # fmt: skip
    assert ("MT-402" in codes(create)) is is_stale
    assert "MT-402" not in codes(update)
    if is_stale:
        assert [each.version for each in create.findings[-1].evidence] == [2, 1]


REFUSALS = [
    ("failed to parse cloud event type foo, too few parts", "MT-103"),
    ("unsupported action patch_request", "MT-103"),
    ("unauthorized to publish the event from source x", "MT-102"),
    ("failed to create resource: the consumer is unknown", "MT-201"),
]


@pytest.mark.parametrize(("reason", "code"), REFUSALS)
def test_logged_rejection_has_its_code(tmp_path: Path, reason: str, code: str) -> None:
    told = line(SERVER, 0.01, f'"request refused" op-id="{OP}" resourceID="{ID}" reason="{reason}"', level="W")
    (trace,) = traced(tmp_path, [replace(CREATE, until=0)], [told])
    assert (trace.verdict, trace.failed_stage, codes(trace)) == (RequestVerdict.FAILED, 2, [code])
    assert trace.stages[0].note.endswith("a later stage proves it")


def test_request_of_unknown_type_is_malformed(tmp_path: Path) -> None:
    asked = f'op-id="{OP}" eventID="x" eventType="com.example.patch" eventSource="mw" extensions={extensions(CREATE, version=0, name="nginx")}'
    told = f'op-id="{OP}" resourceID="{ID}" eventType="com.example.patch" reason="failed to parse cloud event type com.example.patch, too short"'
    lines = [
        line(SERVER, 0.0, f'"receive the event from client" {asked}', level="I"),
        line(SERVER, 0.01, f'"request refused" {told}', level="W"),
    ]
    (trace,) = traced(tmp_path, [replace(CREATE, until=0)], lines)
    assert (trace.verdict, trace.failed_stage, codes(trace)) == (RequestVerdict.FAILED, 2, ["MT-103"])
    assert "failed to parse" in trace.findings[0].detail
