# ruff: noqa: E501 - log lines are as long as they are
"""Situations that people who did not know the code wrote down with their truth, and that were judged wrong at first.

Each is an excerpt of their logs: lines of a Go server and agent around one request, and of this project's agent where it
says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace import requests
from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs.judge import lifecycles
from maestropy.trace.logs.model import RequestVerdict, Trace
from tests.trace_request_logs import AGENT, BASE, LoggedRequest
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    OTHER,
    SERVER,
    Line,
    alive,
    at,
    concluded,
    lines_of,
    status,
    sync_failed,
    traced,
    write,
)

SECOND = "maestro-1"
TWIN = "maestro-agent-7d9f6c5b4-zzzzz"
OWN_RECORD = (
    f'Operation cannot be fulfilled on appliedmanifestworks.work.open-cluster-management.io "6363-{CREATE.resource}": '
    "the object has been modified; please apply your changes to the latest version and try again"
)
EXPIRED = (
    'Patch "https://10.96.0.1:443/api/v1/x": tls: failed to verify certificate: x509: certificate has expired or is not yet '
    "valid: current time 2026-01-15T09:00:05Z is after 2026-01-15T00:00:00Z"
)


def finding(trace: Trace, code: str) -> str:
    """Return the detail of a finding."""
    return next(one.detail for one in trace.findings if one.code == code)


def until(stage: int, *, work: str = "nginx", seconds: float = 0.0, **values: object) -> LoggedRequest:
    return replace(LoggedRequest(work=work, at=BASE + seconds, until=stage), **values)  # type: ignore[arg-type]


def test_conflict_over_the_agents_own_record_is_history(tmp_path: Path) -> None:
    # This project's agent logs a conflict, after which it tries again, as information.
    own = (
        f'"controller failed to sync" logger="ManifestWorkController.UnhandledError" key="{CREATE.resource}" '
        f'reason="{OWN_RECORD.replace(chr(34), chr(92) + chr(34))}"'
    )
    lines = [*lines_of(CREATE), at(0.25, AGENT, own), *alive(SERVER), *alive(AGENT)]
    lines = [(pod, moment, line.replace(".go:", ".py:")) for pod, moment, line in lines]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.COMPLETE, None, "")
    assert finding(trace, "MT-415") == OWN_RECORD


def test_conflict_over_the_agents_own_record_that_never_ends_is_a_failure(tmp_path: Path) -> None:
    lines = lines_of(until(3))
    lines += [sync_failed(CREATE, 0.2 * 2**attempt, OWN_RECORD) for attempt in range(9)]
    trace = traced(tmp_path, [*lines, *alive(SERVER), *alive(AGENT)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-413")


def test_conflict_over_an_object_of_the_work_stays_a_failure(tmp_path: Path) -> None:
    conflict = OWN_RECORD.replace("appliedmanifestworks.work.open-cluster-management.io", "configmaps")
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 1.0)]
    lines += [sync_failed(CREATE, 0.2 + attempt / 10, conflict) for attempt in range(6)]
    assert concluded(traced(tmp_path, lines)["nginx", "create"]) == (RequestVerdict.FAILED, 4, "MT-413")


def test_attempts_to_publish_that_failed_are_shown_with_their_delay(tmp_path: Path) -> None:
    first, late = until(2), until(9, seconds=40.0)
    lines = [line for line in lines_of(first) if '"Sending event"' not in line[2]]
    for attempt in range(4):
        tried = 0.05 + 10.0 * attempt
        named = f'logger="maestro-server.maestro-controllers" event="{late.event("db")}" resourceID="{late.resource}"'
        lines += [at(tried, SERVER, f'"Publishing resource for db row insert" {named}')]
        lines += [at(tried + 0.001, SERVER, f'"Failed to publish resource" err="the client is not ready" {named}', "E")]
        lines += [at(tried + 0.002, SERVER, f'"Failed to handle the event" err="the client is not ready" {named}', "E")]
    lines += [line for line in lines_of(late) if "receive the event from client" not in line[2]]
    lines = [line for line in lines if f'event="{first.event("db")}"' not in line[2]]
    trace = traced(tmp_path, [*lines, *alive(SERVER), *alive(AGENT)])["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert finding(trace, "MT-211").startswith("4 attempts failed, 09:00:01.174 to 09:00:31.175: ")
    assert finding(trace, "MT-211").endswith("the client is not ready")
    assert trace.stages[1].hop == pytest.approx(40.041, abs=0.01)
    assert trace.stages[2].hop == pytest.approx(0.037, abs=0.01)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        ("Unauthorized", "MT-418", "token"),
        ("the server has asked for the client to provide credentials", "MT-418", "token"),
        ('Get "https://10.96.0.1:443/api": remote error: tls: expired certificate', "MT-418", "certificate"),
        ('configmaps "x" is forbidden: unable to create new content in namespace old because it is being terminated', "MT-419", "Wait"),
        (EXPIRED, "MT-420", "renews"),
        ('Get "https://api:6443/api": x509: certificate signed by unknown authority', "MT-420", "CA"),
        ('failed calling webhook "x.y": Post "https://x.svc:443/m": x509: certificate signed by unknown authority', "MT-423", "caBundle"),
        ('configmaps "x" is forbidden: User "system:serviceaccount:a:b" cannot create resource "configmaps"', "MT-403", "Grant"),
    ],
)  # fmt: skip
def test_errors_of_credentials_certificates_and_terminating_namespaces(
    error: str, code: str, says: str, tmp_path: Path
) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    lines += [sync_failed(CREATE, 0.1 + attempt / 10, error) for attempt in range(6)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, code)
    assert says in " ".join(CODES[code].advice)


def test_expired_certificate_is_named_with_its_end(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    lines += [sync_failed(CREATE, 0.1 + attempt / 10, EXPIRED) for attempt in range(6)]
    detail = finding(traced(tmp_path, lines)["nginx", "create"], "MT-420")
    assert detail.startswith("the certificate of 10.96.0.1:443 was valid until 2026-01-15T00:00:00Z; ")


def test_rejected_credentials_of_a_watch_explain_a_work_that_is_not_handled(tmp_path: Path) -> None:
    watch = at(1.0, AGENT, '"Failed to watch" err="failed to list *v1.AppliedManifestWork: Unauthorized"', "E")
    lines = [*lines_of(until(3)), watch, *alive(SERVER), *alive(AGENT)]
    assert concluded(traced(tmp_path, lines)["nginx", "create"]) == (RequestVerdict.INCOMPLETE, 4, "MT-418")


def test_server_that_stops_after_it_took_the_status_is_named(tmp_path: Path) -> None:
    own = [line for line in lines_of(until(6)) if "received status update" not in line[2]]
    named = f'logger="maestro-server" op-id="{CREATE.operation}" resourceID="{CREATE.resource}"'
    lines = [
        *own,
        *alive(SERVER),
        *alive(AGENT),
        at(-60, SECOND, '"Starting gRPC server"'),
        at(-5, SECOND, "still here"),
    ]
    for pod in (SERVER, SECOND):
        lines.append(at(0.271, pod, f'"received status update for resource" {named}'))
    lines.append(
        at(0.272, SERVER, f'"skipping resource status update as it is not owned by the current instance" {named}')
    )
    lines.append(at(0.273, SECOND, f'"handle resource status update by the current instance" {named}'))
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 7, "MT-709")
    end = lifecycles.clock(BASE + 0.273)
    assert finding(trace, "MT-709").startswith(
        (f"the log of {SECOND} ends at {end}", f"the log of {SECOND} ends with this request at {end}")
    )


def test_delete_while_the_agent_is_away_names_the_end_of_its_log(tmp_path: Path) -> None:
    delete = until(2, seconds=44.0, action="delete")
    lines = [*lines_of(CREATE, delete), *alive(SERVER, 90.0), at(30, AGENT, "still here"), at(-20, AGENT, "still here")]
    trace = traced(tmp_path, lines)["nginx", "delete"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-301")
    assert f"the log of {AGENT} ends at {lifecycles.clock(BASE + 30)}" in finding(trace, "MT-301")


def test_agent_that_reports_after_its_log_ends_was_not_away(tmp_path: Path) -> None:
    delete = until(2, seconds=44.0, action="delete")
    later = [line for line in lines_of(until(9, work="later", seconds=60.0)) if line[0] != AGENT]
    lines = [
        *lines_of(CREATE, delete),
        *later,
        *alive(SERVER, 120.0),
        at(30, AGENT, "still here"),
        at(-20, AGENT, "still here"),
    ]
    trace = traced(tmp_path, lines)["nginx", "delete"]
    assert trace.main_finding is None or trace.main_finding.code != "MT-301"
    assert "the agent's log ends at" in finding(trace, "MT-002")


def test_agent_that_restarts_again_and_again_is_named_with_every_time(tmp_path: Path) -> None:
    starts = [at(seconds, AGENT, "maestro-agent version v0.0.0") for seconds in (-60.0, 15.0, 55.0, 95.0)]
    trace = traced(tmp_path, [*lines_of(until(3)), *starts, *alive(SERVER), *alive(AGENT, 96.0)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-417")
    times = ", ".join(lifecycles.clock(BASE + seconds) for seconds in (15.0, 55.0, 95.0))
    assert finding(trace, "MT-417") == f"{AGENT} restarted 3 times: {times}"


def of_twin(lines: Sequence[Line], seconds: float) -> list[Line]:
    """Return the lines of an agent as those of another one that writes them a moment later."""
    return [at(moment - BASE + seconds, TWIN, line.partition("] ")[2]) for pod, moment, line in lines if pod == AGENT]


def test_several_agents_of_one_consumer_are_named(tmp_path: Path) -> None:
    lines = lines_of(CREATE, OTHER)
    lines += [*of_twin(lines, 0.004), *alive(SERVER), *alive(AGENT), *alive(TWIN)]
    for trace in traced(tmp_path, lines).values():
        assert finding(trace, "MT-307") == f"{AGENT}, {TWIN} received the same request of mgmt-1"


def test_copy_of_an_agents_log_is_no_other_agent(tmp_path: Path) -> None:
    lines = lines_of(CREATE)
    lines += [*of_twin(lines, 0.0), *alive(SERVER), *alive(AGENT), *alive(TWIN)]
    assert concluded(traced(tmp_path, lines)["nginx", "create"]) == (RequestVerdict.COMPLETE, None, "")
    assert traced(tmp_path, lines)["nginx", "create"].findings == ()


def with_conditions(line: Line, *, available: str, manifest: str = "True") -> Line:
    """Return the line of a status with a condition Available, and another one of its manifest."""
    pod, moment, text = line
    first, _, rest = text.partition('\\"type\\":\\"Applied\\",\\"status\\":\\"True\\"')
    head, _, tail = rest.partition('\\"type\\":\\"Applied\\",\\"status\\":\\"True\\"')
    condition = f'\\"type\\":\\"Available\\",\\"status\\":\\"{available}\\",\\"message\\":\\"1 of 1 resources are not available\\"'
    own = f'{condition}}},{{\\"type\\":\\"Applied\\",\\"status\\":\\"True\\"'
    return pod, moment, f'{first}{own}{head}\\"type\\":\\"Applied\\",\\"status\\":\\"{manifest}\\"{tail}'


@pytest.mark.parametrize(("available", "is_said"), [("False", True), ("True", False)])
def test_applied_and_not_available_is_said(available: str, is_said: bool, tmp_path: Path) -> None:
    said = with_conditions(status(CREATE, 0.3, applied="True"), available=available)
    trace = traced(tmp_path, [*lines_of(CREATE, agent=False), said, *alive(SERVER)])["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert any(one.code == "MT-421" for one in trace.findings) is is_said
    if is_said:
        assert finding(trace, "MT-421") == "1 of 1 resources are not available"


def test_object_that_was_not_applied_outweighs_the_sum(tmp_path: Path) -> None:
    said = with_conditions(
        status(CREATE, 0.3, applied="True", message='namespaces "shop" not found'), available="True", manifest="False"
    )
    trace = traced(tmp_path, [*lines_of(CREATE, agent=False), said, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-406")


def test_resource_that_is_created_again_without_its_deletion_in_the_logs(tmp_path: Path) -> None:
    again = until(9, seconds=40.0, op_id="op-again")
    lines = [
        *lines_of(CREATE, agent=False),
        status(CREATE, 0.3, applied="False", message='namespaces "shop" not found'),
    ]
    lines += [*lines_of(again, agent=False), status(again, 40.3, applied="True"), *alive(SERVER)]
    assert main.call(["trace", "requests", str(write(tmp_path, lines)), "-o", "csv", "--index", "off"]) == 1
    first, second = requests([str(tmp_path)])
    assert concluded(first) == (RequestVerdict.FAILED, 4, "MT-406")
    assert (second.verdict, second.key.version, second.key.incarnation) == (RequestVerdict.COMPLETE, 1, 2)


def test_create_of_a_resource_that_exists_is_rejected_however_often_the_first_is_published(tmp_path: Path) -> None:
    repeated = until(1, seconds=40.0, op_id="op-again")
    named = f'logger="maestro-server.maestro-controllers" event="{CREATE.event("db")}" resourceID="{CREATE.resource}"'
    published = at(50.0, SERVER, f'"Publishing resource for db row insert" {named}')
    write(tmp_path, [*lines_of(CREATE, repeated), published, *alive(SERVER), *alive(AGENT)])
    verdicts = [(trace.verdict, trace.key.incarnation) for trace in requests([str(tmp_path)])]
    assert verdicts == [(RequestVerdict.COMPLETE, 1), (RequestVerdict.FAILED, 1)]


def test_work_that_is_named_like_the_resource_id_of_another_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    impostor = LoggedRequest(work=CREATE.resource, at=BASE + 1.0)
    failed = status(impostor, 1.3, applied="False", message='namespaces "shop" not found')
    lines = [*lines_of(CREATE), *lines_of(impostor, agent=False), failed, *alive(SERVER), *alive(AGENT)]
    traces = {trace.key.resource: trace for trace in traced(tmp_path, lines).values()}
    assert concluded(traces[CREATE.resource]) == (RequestVerdict.COMPLETE, None, "")
    assert concluded(traces[impostor.resource]) == (RequestVerdict.FAILED, 4, "MT-406")
    assert main.call(["trace", "request", CREATE.resource, str(tmp_path)]) == 7
    assert "name one of them with --resource-id" in capsys.readouterr().err
    assert main.call(["trace", "request", "--resource-id", CREATE.resource, str(tmp_path)]) == 0
    assert main.call(["trace", "request", impostor.resource, str(tmp_path)]) == 1


def test_late_delivery_names_the_time_without_a_connection(tmp_path: Path) -> None:
    first, late = until(2), until(9, seconds=89.0)
    resynced = [
        (pod, moment, line.replace("create_request", "resync_response"))
        for pod, moment, line in lines_of(late)
        if "receive the event from client" not in line and "db row" not in line and '"Sending event"' not in line[:120]
    ]
    lost = at(-10.0, AGENT, '"the cloudevents client is disconnected" err="EOF"', "E")
    failed = at(30.0, AGENT, '"the cloudevents client reconnect failed" err="i/o timeout"', "E")
    back = at(80.0, AGENT, '"mqtt is connected" brokerHost="maestro-mqtt:1883"')
    lines = [*lines_of(first), *resynced, lost, failed, back, *alive(SERVER), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    since, until_ = lifecycles.clock(BASE - 10.0), lifecycles.clock(BASE + 80.0)
    assert finding(trace, "MT-304") == f"the agent was disconnected from {since} to {until_}"


def test_agent_that_ended_after_its_errors_is_named_with_them(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), at(-1.0, AGENT, "maestro-agent version v0.0.0")]
    lines += [sync_failed(CREATE, 0.1 + attempt / 10, 'namespaces "shop" not found') for attempt in range(6)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-406")
    end = (
        f"the log of {AGENT} ends at {lifecycles.clock(BASE + 0.6)}, others go on until {lifecycles.clock(BASE + 600)}"
    )
    assert finding(trace, "MT-406") == f'namespaces "shop" not found; since then {end}'


def test_status_of_another_consumer_proves_nothing(tmp_path: Path) -> None:
    pod, moment, text = status(CREATE, 0.3, applied="True")
    foreign = (pod, moment, text.replace('clustername\\":\\"mgmt-1', 'clustername\\":\\"mgmt-2'))
    trace = traced(tmp_path, [*lines_of(CREATE, agent=False), foreign, *alive(SERVER)])["nginx", "create"]
    assert trace.verdict is RequestVerdict.UNKNOWN
    assert finding(trace, "MT-702") == "a status of consumer mgmt-2 is about this resource of mgmt-1"


def test_availability_of_what_was_replaced_is_not_said(tmp_path: Path) -> None:
    delete = until(2, seconds=44.0, action="delete")
    said = with_conditions(status(CREATE, 0.3, applied="True"), available="False")
    trace = traced(tmp_path, [*lines_of(CREATE, delete, agent=False), said, *alive(SERVER)])["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert not any(one.code == "MT-421" for one in trace.findings)


def test_log_that_is_no_servers_has_no_end_to_name() -> None:
    assert lifecycles.ends_with([], BASE, end=BASE + 60) is None
