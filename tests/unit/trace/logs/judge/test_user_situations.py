# ruff: noqa: E501 - log lines are as long as they are
"""Situations that a user wrote down with their truth: errors of clusters, logs that begin late, clients, clocks, delays.

Each is an excerpt in the form of their logs: lines of a Go server and agent around one request.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs import tracing
from maestropy.trace.logs.model import Options, RequestVerdict, StageState, Trace
from maestropy.trace.report import coverage
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, lines_g4
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    SERVER,
    Line,
    alive,
    at,
    codes,
    concluded,
    lines_of,
    status,
    sync_failed,
    traced,
    write,
)

SECOND = "maestro-1"
SOURCE = "mw-client-example"
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)

ANONYMOUS = 'deployments.apps "web" is forbidden: User "system:anonymous" cannot patch resource "deployments"'
GRANTS = (
    'roles.rbac.authorization.k8s.io "r" is forbidden: user "system:serviceaccount:a:b" (groups=["g"]) is attempting to grant RBAC permissions not currently held:'
    '\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
)
CALL = 'conversion webhook for hypershift.openshift.io/v1alpha1, Kind=HostedCluster failed: Post "https://operator.svc:443/convert": service "operator" not found'
EXPIRED = (
    'Internal error occurred: failed calling webhook "v.io": failed to call webhook: Post "https://v.svc:443/x": tls: failed to verify '
    "certificate: x509: certificate has expired or is not yet valid: current time 2026-01-15T09:00:05Z is after 2026-01-14T00:00:00Z"
)


@pytest.mark.parametrize(("error", "code", "says"), [
    ('persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized', "MT-407", "not RBAC"),
    ('pods "p" is forbidden: unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount]', "MT-407", "not RBAC"),
    ('pods "p" is forbidden: no PriorityClass with name system-hcp was found', "MT-407", "not RBAC"),
    ('pods "p" is forbidden: error looking up service account a/builder: serviceaccount "builder" not found', "MT-407", "not RBAC"),
    ('namespaces "kube-system" is forbidden: this namespace may not be deleted', "MT-407", "not RBAC"),
    ('storageclasses.storage.k8s.io "gp3" is forbidden: updates to parameters are forbidden.', "MT-407", "not RBAC"),
    ('ingresses.networking.k8s.io "i" is forbidden: can not set both `spec.ingressClassName` and annotation', "MT-407", "not RBAC"),
    ('deployments.apps "web" is forbidden: not yet ready to handle request', "MT-409", "API server"),
    (ANONYMOUS, "MT-418", "not RBAC"),
    (ANONYMOUS.replace("anonymous", "serviceaccount:a:b"), "MT-403", "service account"),
    (GRANTS, "MT-403", "service account"),
    ('pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set finalizers on: , <nil>', "MT-403", "service account"),
    (EXPIRED, "MT-423", "caBundle"),
    (CALL, "MT-423", "service"),
    ("Internal error occurred: resource quota evaluation timed out", "MT-423", "quota"),
    ("etcdserver: request is too large", "MT-424", "Split the object"),
    ("Request entity too large: limit is 3145728", "MT-424", "Split the object"),
    ("failed to create typed patch object (default/web; apps/v1, Kind=Deployment): .spec.replica: field not declared in schema", "MT-404", "field"),
    ("request to convert CR from an invalid group/version: foo.io/v1alpha1", "MT-404", "field"),
    ("unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1", "MT-409", "apiservices"),
])  # fmt: skip
def test_error_of_the_cluster_leads_to_whoever_can_end_it(tmp_path: Path, error: str, code: str, says: str) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    lines += [sync_failed(CREATE, 0.1 + attempt / 10, error) for attempt in range(6)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.FAILED, 4, code), "certain")
    assert says in " ".join((CODES[code].cause, *CODES[code].advice))


def test_certificate_of_a_webhook_is_named_with_its_end(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE, applied=False), *alive(SERVER), *alive(AGENT, 3.0)]
    lines += [sync_failed(CREATE, 0.1 + attempt / 10, EXPIRED) for attempt in range(6)]
    detail = traced(tmp_path, lines)["nginx", "create"].findings[0].detail
    assert detail.startswith("the certificate of v.svc:443 was valid until 2026-01-14T00:00:00Z; ")


def test_denial_whose_reason_is_redacted_is_not_surely_one_of_rights(tmp_path: Path) -> None:
    denied = status(CREATE, 0.3, applied="False", message="[redacted]: is forbidden")
    trace = traced(tmp_path, [*lines_of(CREATE, applied=False, agent=False), denied, *alive(SERVER)])["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.FAILED, 4, "MT-403"), "likely")


def finding(trace: Trace, code: str) -> str:
    return next(one.detail for one in trace.findings if one.code == code)


def errors(trace: Trace) -> set[str]:
    return {one.code for one in trace.findings if one.entry.severity == "error"}


def searched(folder: Path, lines: Sequence[Line]) -> Trace:
    """Return the request as it is judged in large logs, which are searched and not read whole."""
    tracer = tracing.RequestTracer([str(write(folder, lines))], options=Options(), now=BASE + 86400, whole=0)
    logs = tracer.judge(tracer.find([CREATE.resource]), frozenset({CREATE.resource}), [CREATE.resource])
    return logs.traces[-1]


def subscribed(seconds: float, pod: str = SECOND, *, word: str = "registered a", source: str = SOURCE) -> Line:
    return at(seconds, pod, f'"{word} broadcaster client" id="11111111-2222-3333-4444-555555555555" source="{source}"')


def unheard(*second: Line) -> list[Line]:
    """Return a request whose status only the first server broadcasts, which has no clients."""
    no_clients = at(0.2885, SERVER, '"no clients registered on this instance" logger="maestro-server"')
    lines = [*lines_of(replace(CREATE, until=8)), no_clients, *alive(SERVER), *alive(AGENT), *alive(SECOND)]
    # A log in which nothing happens for long: what is searched for is far from the request.
    idle = [at(-1900 + number / 2, SECOND, f'"Heartbeat {number}" logger="maestro-server"') for number in range(3000)]
    return [
        *lines,
        at(-2000, SECOND, '"Starting gRPC server"'),
        at(-2000, SERVER, '"Starting gRPC server"'),
        *idle,
        *second,
    ]


def test_update_after_a_status_that_its_client_missed_supersedes_it(tmp_path: Path) -> None:
    judged = traced(tmp_path, [*unheard(subscribed(-1950)), *lines_of(UPDATE)])
    assert (judged["nginx", "create"].verdict, codes(judged["nginx", "create"])) == (RequestVerdict.SUPERSEDED, set())
    assert judged["nginx", "update"].verdict is RequestVerdict.COMPLETE


LISTENER = at(-2, SECOND, '"recreate the listener for channel due to the connection loss" channel="status_events"')


@pytest.mark.parametrize("more", [[], [LISTENER]], ids=["silent", "listener-lost"])
def test_client_of_a_server_that_did_not_broadcast_does_not_know_the_status(tmp_path: Path, more: list[Line]) -> None:
    lines = unheard(subscribed(-1950), *more)
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.INCOMPLETE, 8, "MT-801"), "likely")
    assert [stage.state for stage in trace.stages[7:]] == [StageState.MISSING, StageState.PENDING]
    assert finding(trace, "MT-801").startswith(f"{SECOND}, where a client of {SOURCE} is subscribed, did not broadcast")
    assert concluded(searched(tmp_path, lines)) == concluded(trace)


@pytest.mark.parametrize("left", [
    [],
    [subscribed(-1950, source="another")],
    [subscribed(-1950), subscribed(-60, word="unregistered")],
], ids=["never", "of-another-source", "unsubscribed"])  # fmt: skip
def test_without_a_client_of_the_source_no_server_has_to_broadcast(tmp_path: Path, left: list[Line]) -> None:
    trace = traced(tmp_path, unheard(*left))["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-901"})


@pytest.mark.parametrize("begins", [-600.0, -5.0], ids=["all-logs-cover-it", "servers-begin-late"])
def test_agent_that_retries_a_work_of_before_the_logs_has_received_it(tmp_path: Path, begins: float) -> None:
    error = 'Deployment.apps "d" is invalid: spec.selector: Invalid value: field is immutable'
    lines = [sync_failed(CREATE, seconds, error) for seconds in (0.0, 300.0)]
    lines += [at(begins, AGENT, "still here"), at(begins, SERVER, '"Heartbeat" logger="maestro-server"')]
    (trace,) = traced(tmp_path, [*lines, *alive(AGENT, 301.0), *alive(SERVER, 301.0)]).values()
    assert (concluded(trace), errors(trace)) == ((RequestVerdict.FAILED, 4, "MT-404"), {"MT-404"})
    assert trace.confidence == "likely", "it may have been applied before, and fail since"
    assert {stage.state for stage in trace.stages[:3]} <= {StageState.UNKNOWN, StageState.NOT_OBSERVABLE}


def test_one_error_of_a_work_of_before_the_logs_is_not_its_first(tmp_path: Path) -> None:
    lines = [sync_failed(CREATE, 0.0, 'admission webhook "v" denied the request: no'), *alive(AGENT, 1.0)]
    (trace,) = traced(tmp_path, [at(-9.0, AGENT, "still here"), *lines]).values()
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.FAILED, 4, "MT-407"), "likely")
    assert errors(trace) == {"MT-407"}


def test_server_whose_log_is_missing_published_it_behind_a_message_broker(tmp_path: Path) -> None:
    ring = '"newly added server instances and removed server instances from the hash ring"'
    start = [
        at(-9, SERVER, '"mqtt is connected" brokerHost="maestro-mqtt:1883"'),
        at(-5, SERVER, f'{ring} addedMembers="Set{{maestro-0, maestro-1}}" removedMembers="Set{{}}"'),
    ]
    lines = [*start, *lines_of(replace(CREATE, without=frozenset({2}))), *alive(SERVER), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-004"})
    assert trace.stages[1].note.startswith("logs of 1 of 2 server instances: none of maestro-1")


@pytest.mark.parametrize(("end", "verdict"), [(600.0, RequestVerdict.UNKNOWN), (70.0, RequestVerdict.PENDING)])
def test_status_of_the_conditions_before_shows_that_the_agent_has_the_update(
    tmp_path: Path, end: float, verdict: RequestVerdict
) -> None:
    reported = lines_of(UPDATE, agent=False)
    early = status(UPDATE, 60.281, applied="True", generation=1, sequence=0)
    trace = traced(tmp_path, [*lines_of(CREATE, agent=False), *reported, early, *alive(SERVER, end)])["nginx", "update"]
    assert trace.verdict is verdict
    assert not codes(trace) & {"MT-603"}
    assert verdict is RequestVerdict.PENDING or "has this version" in finding(trace, "MT-416")


def test_status_that_another_instance_took_at_once_was_not_left_to_nobody(tmp_path: Path) -> None:
    # Below -v=2 no line of an instance that leaves the status to another shows which one it was.
    delete = replace(CREATE, action="delete", at=BASE + 60, without=frozenset({3, 5, 6, 7, 8, 9}))
    named = f'logger="maestro-server" op-id="{CREATE.operation}" resourceID="{CREATE.resource}"'
    lines = [
        line for line in lines_of(CREATE, delete) if '"Received event"' not in line[2] and '"Sending' not in line[2]
    ]
    for seconds, word in ((60.13, "update"), (62.04, "delete")):
        lines += [at(seconds, pod, f'"received status update for resource" {named}') for pod in (SERVER, SECOND)]
        lines += [
            at(
                seconds + 0.001,
                SECOND,
                f'"skipping resource status update as it is not owned by the current instance" {named}',
            )
        ]
        lines += [at(seconds + 0.005, SERVER, f'"handle resource status update by the current instance" {named}')]
        lines += [at(seconds + 0.010, SERVER, f'"resource status {word} event was sent" {named}')]
    lines += [*alive(SERVER), *alive(SECOND), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "delete"]
    assert "MT-011" not in codes(trace)
    assert trace.stages[6].first == pytest.approx(BASE + 62.05)


def shifted(pod: str, seconds: float, *requests: LoggedRequest) -> list[Line]:
    """Return requests of three servers and an agent, one of whose clocks is ahead."""
    lines = []
    for one, moment, line in (line for logged in requests for line in lines_g4(logged)):
        body = line.partition("] ")[2]
        lines.append(
            at(moment - BASE + (seconds if one == pod else 0.0), one, body) if one == pod else (one, moment, line)
        )
    return lines


@pytest.mark.parametrize("seconds", [-40.0, -4.0, -1.0, 1.0, 10.0])
@pytest.mark.parametrize("pod", SERVERS)
def test_server_whose_clock_differs_makes_no_requests_and_no_failures(tmp_path: Path, pod: str, seconds: float) -> None:
    works = [LoggedRequest(work=f"w{number}", at=BASE + 100 * number + number / 1000) for number in range(6)]
    lines = shifted(pod, seconds, *works)
    judged = traced(tmp_path, lines)
    assert {trace.verdict for trace in judged.values()} == {RequestVerdict.COMPLETE}
    assert len(judged) == len(works)
    assert max(trace.duration for trace in judged.values()) < 0.5
    environment = tracing.environment_of([str(tmp_path)], now=BASE + 86400)
    skews = {writer.pod: writer.skew for writer in environment.writers}
    assert skews == pytest.approx({**dict.fromkeys((*SERVERS, AGENT), 0.0), pod: seconds}, abs=0.1)


def test_publishing_of_a_request_that_no_log_shows_is_no_difference_of_clocks(tmp_path: Path) -> None:
    # The only arrival is that of the update, the only record of publishing that of the create.
    create = replace(CREATE, without=frozenset({1}))
    update = replace(UPDATE, at=BASE + 60.001, without=frozenset({2}))
    write(tmp_path, [line for logged in (create, update) for line in lines_g4(logged)])
    environment = tracing.environment_of([str(tmp_path)], now=BASE + 86400)
    assert [writer.skew for writer in environment.writers] == [0.0] * 4


@pytest.mark.parametrize("seconds", [90.0, -90.0])
def test_logs_that_end_together_are_compared_by_the_same_clock(tmp_path: Path, seconds: float) -> None:
    logged = LoggedRequest(work="nginx", agent_clock=seconds)
    ends = [at(100.0, pod, "still here") for pod in SERVERS] + [at(100.0 + seconds, AGENT, "still here")]
    write(tmp_path, [*lines_g4(logged), *ends])
    environment = tracing.environment_of([str(tmp_path)], now=BASE + 86400)
    window = coverage.common(environment.writers)
    assert window.last == pytest.approx(BASE + 100, abs=0.1)
    assert not [gap for gap in coverage.gaps(environment) if "ends at" in gap]


def test_agent_that_could_not_publish_its_status_is_named_with_the_times(tmp_path: Path) -> None:
    late = replace(CREATE, at=BASE + 70, without=frozenset({1, 2, 3, 4}), op_id=CREATE.operation)
    error = f"Failed to publish resource {CREATE.resource}: the cloudevents client is not ready"
    lines = [*lines_of(replace(CREATE, until=4)), *lines_of(late), *alive(SERVER), *alive(AGENT)]
    lines += [sync_failed(CREATE, 0.2 + attempt * 8, error) for attempt in range(8)]
    lines += [
        at(0.195, AGENT, '"the cloudevents client is disconnected" err="EOF"', "E"),
        at(69.0, AGENT, '"mqtt is connected" brokerHost="x:1883"'),
    ]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-011"})
    detail = finding(trace, "MT-011")
    assert detail.startswith(f"the agent could not publish its status from 09:00:01.323 to 09:01:11.361: {error}; ")
    assert detail.endswith(f"{AGENT} was disconnected from 09:00:01.318 to 09:01:10.123")
    assert next(one.confidence for one in trace.findings) == "likely"


@pytest.mark.parametrize(("back", "expected"), [(59.0, {"MT-011"}), (None, set())], ids=["back", "end-not-logged"])
def test_server_without_a_broker_before_it_published_is_named(
    tmp_path: Path, back: float | None, expected: set[str]
) -> None:
    late = replace(CREATE, at=BASE + 60, without=frozenset({1}), op_id=CREATE.operation)
    lost = at(-3.0, SERVER, '"the cloudevents client is disconnected" err="EOF"', "E")
    lines = [*lines_of(replace(CREATE, until=1)), *lines_of(late), lost, *alive(SERVER), *alive(AGENT)]
    lines += [] if back is None else [at(back, SERVER, '"mqtt is connected" brokerHost="x:1883"')]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, expected)


@pytest.mark.parametrize(("restarted", "code"), [([SERVER, SECOND], "MT-601"), ([SECOND], "MT-603")])
def test_servers_that_all_restart_as_the_status_is_sent_are_named(
    tmp_path: Path, restarted: list[str], code: str
) -> None:
    lines = [*lines_of(replace(CREATE, until=5)), at(-60, SECOND, '"Starting gRPC server"'), *alive(AGENT)]
    lines += [line for pod in (SERVER, SECOND) for line in alive(pod)]
    lines += [at(3.0, pod, '"Starting gRPC server" logger="maestro-server"') for pod in restarted]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 6, code)
    assert code == "MT-603" or f"{SECOND} restarted at 09:00:04.123" in finding(trace, code)


@pytest.mark.parametrize("body", [
    'Observed a panic: "invalid memory address" (runtime error)\npanic: again\ngoroutine 312 [running]:',
    '"Observed a panic" panic="invalid memory address" panicGoValue="x" stacktrace="goroutine 312 [running]"',
], ids=["text", "structured"])  # fmt: skip
def test_panic_of_an_agent_that_restarts_is_quoted(tmp_path: Path, body: str) -> None:
    lines = [*lines_of(replace(CREATE, until=3)), *alive(SERVER), *alive(AGENT), at(0.1, AGENT, body, "E")]
    lines += [at(seconds, AGENT, '"Caches are synced" logger="x"') for seconds in (-60.0, 12.0, 44.0)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-417")
    detail = finding(trace, "MT-417")
    assert "it panicked at 09:00:01.223: " in detail
    assert "invalid memory address" in detail
    assert "goroutine" not in detail


@pytest.mark.parametrize(("clients", "duration", "delays"), [(1, 3.3, {"MT-011"}), (2, 0.3, set())])
def test_status_that_is_sent_again_after_its_stream_broke_arrived_then(
    tmp_path: Path, clients: int, duration: float, delays: set[str]
) -> None:
    sent = next(line for line in lines_of(CREATE) if "send the event to status subscribers" in line[2])
    body = sent[2].partition("] ")[2]
    lines = [*lines_of(CREATE), *alive(SERVER), *alive(AGENT), subscribed(-5, SERVER)]
    lines += [at(0.29 + number / 1000, SERVER, body) for number in range(1, clients)]
    lines += [
        at(
            0.4,
            SERVER,
            '"failed to send event, unregister subscriber" err="transport is closing" subscriber="11111111"',
            "E",
        ),
        at(0.4, SERVER, '"unregistered broadcaster client" id="11111111-2222-3333-4444-555555555555"'),
        subscribed(3.0, SERVER),
        at(3.3, SERVER, body),
    ]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, delays)
    assert trace.duration == pytest.approx(duration, abs=0.05)


def test_status_of_an_attempt_before_the_success_is_none_that_was_sent_again(tmp_path: Path) -> None:
    later = replace(CREATE, at=BASE + 20, without=frozenset({1, 2, 3}), op_id=CREATE.operation)
    errors = [sync_failed(CREATE, 0.2 * 2**attempt, 'namespaces "y" not found') for attempt in range(6)]
    lines = [*lines_of(CREATE, applied=False), *errors, *lines_of(later), *alive(SERVER), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-415"})


def test_instance_without_an_agent_for_an_event_is_behind_the_grpc_broker(tmp_path: Path) -> None:
    left = at(0.04, SERVER, '"Event should not be processed by this instance" logger="maestro-server" event="d2a4c1de"')
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=1)), left, *alive(SERVER)])["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.INCOMPLETE, 3, "MT-301"), "likely")
    assert "sources/maestro" not in finding(trace, "MT-301")
    assert "MT-205" not in codes(trace)
