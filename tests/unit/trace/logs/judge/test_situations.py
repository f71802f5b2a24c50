# ruff: noqa: E501 - log lines are as long as they are
"""Situations of the field, each as a few lines of a Go server and agent, and what the trace must conclude."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs import tracer
from maestropy.trace.logs.judge import database_checks
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from maestropy.trace.logs.read import scan
from maestropy.trace.report import coverage
from tests.trace_request_logs import AGENT, BASE, SERVERS, TYPE, LoggedRequest, extensions, klog, lines_g4

CREATE = LoggedRequest(work="nginx")
OTHER = LoggedRequest(work="other", at=BASE + 0.05)
SERVER = "maestro-0"
Line = tuple[str, float, str]


def lines_of(*requests: LoggedRequest, agent: bool = True, applied: bool = True) -> list[Line]:
    """Return the lines of requests on one server and one agent; without ids where the agent applies."""
    lines: list[Line] = []
    for logged in requests:
        for pod, at, line in lines_g4(logged):
            is_apply = '"Server side applied"' in line or '"Deleted resource"' in line or '"Resource is removed' in line
            if (pod == AGENT and not agent) or (is_apply and not applied) or "not owned" in line:
                continue
            lines.append((AGENT if pod == AGENT else SERVER, at, line.replace(pod, SERVER) if pod != AGENT else line))
    return list(dict.fromkeys(lines))


def at(seconds: float, pod: str, body: str, level: str = "I") -> Line:
    return pod, BASE + seconds, klog(BASE + seconds, "file.go:1", body, level)


def status(
    logged: LoggedRequest, seconds: float, *, applied: str, message: str = "", generation: int = 0, sequence: int = 7
) -> Line:
    """Return the line of a server at -v=4 that stores a status, with its conditions."""
    condition = {"type": "Applied", "status": applied, "observedGeneration": generation or logged.version,
                 "reason": "AppliedManifestWorkFailed", "message": "Failed to apply manifest work"}  # fmt: skip
    manifest = {
        "conditions": [{**condition, "message": f"Failed to apply manifest: {message}"}],
        "resourceMeta": {"kind": "ConfigMap", "name": "cm"},
    }
    event = {"specversion": "1.0", "id": "e", "source": "mgmt-1-work-agent", "type": f"{TYPE}.status.update_request",
             "data": {"conditions": [condition], "resourceStatus": [manifest]}, "clustername": "mgmt-1",
             "resourceid": logged.resource, "resourceversion": str(logged.version), "sequenceid": str(logged.sequence + sequence),
             "metadata": json.dumps({"name": logged.work, "uid": logged.resource})}  # fmt: skip
    text = json.dumps(json.dumps(event, separators=(",", ":")))
    return at(
        seconds,
        SERVER,
        f'"Updating resource status" logger="maestro-server" resourceID="{logged.resource}" event={text}',
    )


def sync_failed(logged: LoggedRequest, seconds: float, error: str, key: str = "") -> Line:
    return at(
        seconds, AGENT, f'"controller failed to sync" err={json.dumps(error)} key="{key or logged.resource}"', "E"
    )


def alive(pod: str, until: float = 600.0) -> list[Line]:
    return [at(until, pod, "still here")]


def write(folder: Path, lines: Sequence[Line]) -> Path:
    for pod in {pod for pod, _, _ in lines}:
        own = sorted((moment, line) for one, moment, line in lines if one == pod)
        (folder / f"{pod}.log").write_text("".join(f"{line}\n" for _, line in own))
    return folder


def traced(folder: Path, lines: Sequence[Line], options: Options | None = None) -> dict[tuple[str, str], Trace]:
    options = options or Options()
    read = scan.scan_all([str(write(folder, lines))], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=options)
    return {
        (trace.key.work_name, trace.key.action): trace
        for trace in tracer.traces(read.records, environment, options=options)
    }


def codes(trace: Trace) -> set[str]:
    return {finding.code for finding in trace.findings}


def concluded(trace: Trace) -> tuple[RequestVerdict, int | None, str]:
    main = trace.main_finding
    return trace.verdict, trace.failed_stage, main.code if main else ""


INVALID = 'ConfigMap "cm" is invalid: data: Required value'


def test_failed_apply_that_only_the_server_logged_is_a_failure(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE, agent=False), status(CREATE, 0.3, applied="False", message=INVALID), *alive(SERVER)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-404")
    assert trace.main_finding is not None
    assert INVALID in trace.main_finding.detail


def test_status_of_the_version_before_proves_nothing(tmp_path: Path) -> None:
    update = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)
    lines = [*lines_of(CREATE, update, agent=False), status(CREATE, 0.3, applied="True"), *alive(SERVER)]
    stale = status(update, 60.3, applied="True", generation=1)
    assert traced(tmp_path, [*lines, stale])["nginx", "update"].verdict is RequestVerdict.UNKNOWN
    again = replace(update, at=BASE + 60.1, without=frozenset({1, 2}))
    fresh = [*lines_of(again, agent=False), status(again, 60.381, applied="True", sequence=0)]
    assert traced(tmp_path, [*lines, stale, *fresh])["nginx", "update"].verdict is RequestVerdict.COMPLETE


def test_error_without_an_id_belongs_to_the_work_that_repeats_it(tmp_path: Path) -> None:
    denial = "configmaps \"evil\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no"
    lines = [*lines_of(CREATE, OTHER, applied=False), *alive(SERVER), *alive(AGENT)]
    for attempt in range(6):
        moment = 0.2 + 0.1 * 2**attempt
        lines.append(
            at(
                moment,
                AGENT,
                f'"WARNING: Failed to create ConfigMap/evil -n default: {denial.replace(chr(34), chr(92) + chr(34))}" component="c" reason="r"',
            )
        )
        lines.append(sync_failed(OTHER, moment + 0.001, denial))
    lines.append(sync_failed(OTHER, 599, denial))
    traces = traced(tmp_path, lines)
    assert traces["nginx", "create"].verdict is RequestVerdict.COMPLETE
    assert concluded(traces["other", "create"]) == (RequestVerdict.FAILED, 4, "MT-407")


def test_object_that_only_one_work_declares_is_its_object(tmp_path: Path) -> None:
    logs = [line for line in lines_of(CREATE, OTHER, applied=False) if '"receive the event' not in line[2]]
    for logged, name in ((CREATE, "a"), (OTHER, "b")):
        event = {"id": "x", "source": "s", "type": f"{TYPE}.spec.create_request", "clustername": "mgmt-1",
                 "data": {"manifests": [{"kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}]},
                 "resourceid": logged.resource, "resourceversion": 0, "metadata": json.dumps({"name": logged.work})}  # fmt: skip
        logs.append(
            at(logged.at - BASE, SERVER, f'"receive the event from client" event={json.dumps(json.dumps(event))}')
        )
    logs.append(
        at(
            0.2,
            AGENT,
            '"Created resource because it was missing" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="b"',
        )
    )
    traces = traced(tmp_path, [*logs, *alive(SERVER), *alive(AGENT)])
    assert [len(traces[work, "create"].stages[3].records) for work in ("nginx", "other")] == [0, 1]


def test_transient_error_before_a_success_is_history(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), sync_failed(CREATE, 0.1, 'namespaces "x" not found'), status(CREATE, 0.3, applied="True"),
             *alive(SERVER), *alive(AGENT)]  # fmt: skip
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-415"})


def test_error_long_after_the_success_does_not_flip_the_verdict(tmp_path: Path) -> None:
    lines = [*lines_of(CREATE), *alive(SERVER, 4000), *alive(AGENT, 4000)]
    assert traced(tmp_path, lines)["nginx", "create"].verdict is RequestVerdict.COMPLETE
    trace = traced(tmp_path, [*lines, *(sync_failed(CREATE, 3000 + number, INVALID) for number in range(3))])[
        "nginx", "create"
    ]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-414"})


@pytest.mark.parametrize(("errors", "verdict"), [(1, RequestVerdict.COMPLETE), (14, RequestVerdict.FAILED)])
def test_modified_object_is_a_failure_only_while_it_lasts(tmp_path: Path, errors: int, verdict: RequestVerdict) -> None:
    error = 'Operation cannot be fulfilled on configmaps "cm": the object has been modified; please apply your changes to the latest version and try again'
    retries = [sync_failed(CREATE, 0.19 + 0.05 * 2**number, error) for number in range(errors)]
    trace = traced(tmp_path, [*lines_of(CREATE, applied=False), *retries, *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert trace.verdict is verdict
    assert ("MT-413" in codes(trace)) is (verdict is RequestVerdict.FAILED)


@pytest.mark.parametrize(("error", "code"), [
    ('configmaps "x" is forbidden: ValidatingAdmissionPolicy \'p\' denied request: no', "MT-407"),
    ('admission webhook "w.example.com" denied the request: no', "MT-407"),
    ('Internal error occurred: failed calling webhook "w": Post "https://w.svc:443": dial tcp: connect: connection refused', "MT-423"),
    ('pods "x" is forbidden: violates PodSecurity "restricted:latest"', "MT-407"),
    ('pods "x" is forbidden: exceeded quota: q, requested: pods=1', "MT-407"),
    ('configmaps "x" is forbidden: User "system:serviceaccount:a:b" cannot create resource "configmaps"', "MT-403"),
    ('configmaps "x" is forbidden: unable to create new content in namespace y because it is being terminated', "MT-419"),
    ('namespaces "y" not found', "MT-406"),
    ('Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.a', "MT-408"),
    ('Operation cannot be fulfilled on x "y": the object has been modified; please apply your changes', "MT-413"),
    ('the server doesn\'t have a resource type "Teapot"', "MT-405"),
    ('Deployment.apps "d" is invalid: spec.selector: Invalid value: field is immutable', "MT-404"),
    ('ConfigMap "c" is invalid: data: Forbidden: field is immutable when `immutable` is set', "MT-404"),
    ("data: Forbidden: field is immutable when `immutable` is set", "MT-404"),
    ('Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than `image`', "MT-404"),
    ('Get "https://10.0.0.1:443/api": net/http: TLS handshake timeout', "MT-409"),
    ("etcdserver: request timed out", "MT-409"),
    ("something new", "MT-499"),
])  # fmt: skip
def test_apply_errors_have_the_advice_that_fits(tmp_path: Path, error: str, code: str) -> None:
    errors = [sync_failed(CREATE, 0.2 + 0.05 * 2**number, error) for number in range(14)]
    trace = traced(
        tmp_path, [*lines_of(replace(CREATE, until=5), applied=False), *errors, *alive(SERVER), *alive(AGENT)]
    )["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, code)


def test_errors_that_end_without_a_new_status_are_not_overcome(tmp_path: Path) -> None:
    """The agent goes on for long; a success would have changed the status, and its log has the statuses it sends."""
    error = 'configmaps "x" is forbidden: User "a" cannot create resource "configmaps"'
    errors = [sync_failed(CREATE, 0.2 + 0.05 * 2**number, error) for number in range(7)]
    trace = traced(tmp_path, [*lines_of(CREATE, applied=False), *errors, *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-403")


def test_error_that_the_server_redacts_is_classified_by_the_agents_log(tmp_path: Path) -> None:
    error = 'secrets "s" is forbidden: User "system:serviceaccount:a:b" cannot create resource "secrets"'
    lines = [
        *lines_of(replace(CREATE, until=5), applied=False),
        *(sync_failed(CREATE, 0.2 + 0.05 * 2**number, error) for number in range(4)),
        status(CREATE, 0.3, applied="False", message="[redacted]"),
    ]
    trace = traced(tmp_path, [*lines, *alive(SERVER), *alive(AGENT)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, "MT-403")
    assert "secrets" in trace.findings[0].detail


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("[redacted]: is forbidden", "MT-403"),
        ("[redacted]: denied request, is forbidden", "MT-407"),
        ("[redacted]", "MT-499"),
    ],
)
def test_redacted_error_without_the_agents_log_is_classified_by_its_phrases(
    tmp_path: Path, message: str, code: str
) -> None:
    lines = [*lines_of(replace(CREATE, until=2)), status(CREATE, 0.3, applied="False", message=message)]
    trace = traced(tmp_path, [*lines, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.FAILED, 4, code)


def test_names_of_applied_manifest_works_are_no_requests(tmp_path: Path) -> None:
    lines = [
        *lines_of(CREATE),
        sync_failed(CREATE, 300, "x", key=f"{'ab' * 32}-{CREATE.resource}"),
        *alive(SERVER),
        *alive(AGENT),
    ]
    assert list(traced(tmp_path, lines)) == [("nginx", "create")]


def test_mqtt_without_an_agent_stops_at_stage_3_and_names_the_subscriber(tmp_path: Path) -> None:
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=2)), *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-301")
    assert "sources/maestro/consumers/mgmt-1/sourceevents" in str(trace.main_finding)


def test_grpc_broker_without_an_agent_stops_at_stage_3(tmp_path: Path) -> None:
    started = [at(-5, SERVER, '"Starting gRPC server"'), at(-5, SERVER, '"Setting up grpc broker"')]
    trace = traced(tmp_path, [*started, *lines_of(replace(CREATE, until=1)), *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-301")


def test_agent_that_shut_down_while_handling_is_named_with_its_time(tmp_path: Path) -> None:
    stop = at(0.5, AGENT, "Received SIGTERM or SIGINT signal, shutting down controller.")
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=3)), stop, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-417")
    assert "shut down at 09:00:01.623" in str(trace.main_finding)


def test_agent_whose_log_ends_while_servers_go_on_was_killed(tmp_path: Path) -> None:
    lines = [at(-number, AGENT, "busy") for number in range(60)]
    trace = traced(tmp_path, [*lines, *lines_of(replace(CREATE, until=3)), *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-417")
    assert "ends at 09:00:01.201" in str(trace.main_finding)


def test_agent_that_stopped_before_the_request_did_not_receive_it(tmp_path: Path) -> None:
    late = LoggedRequest(work="late", at=BASE + 120, until=2)
    stop = at(60, AGENT, '"Shutting down ..." logger="ManifestWorkController"')
    trace = traced(tmp_path, [*lines_of(CREATE, late), stop, *alive(SERVER)])["late", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-301")
    assert "shut down at 09:01:01.123" in str(trace.main_finding)


def test_server_killed_before_it_published_cites_the_end_of_its_log(tmp_path: Path) -> None:
    busy = [at(-number, SERVER, "busy") for number in range(60)]
    lines = [*busy, *lines_of(replace(CREATE, until=1)), *(("maestro-1", *line[1:]) for line in alive("maestro-1"))]
    lines.append(at(1, "maestro-1", '"Received event from channel" channel="events" extra="1"'))
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-210")
    assert f"log of {SERVER} ends at 09:00:01.123" in str(trace.main_finding)


GRPC = [at(-5, SERVER, '"Starting gRPC server"'), at(-5, SERVER, '"Setting up grpc broker"')]
LOST = '"the cloudevents client is disconnected" err="grpc connection is disconnected"'


@pytest.mark.parametrize(("lines", "code"), [
    ([at(0.3, AGENT, LOST, "E")], "MT-210"),
    ([at(0.3, AGENT, LOST, "E"), at(6, SERVER, "goes on")], "MT-209"),
    ([at(0.3, AGENT, LOST, "E"), at(8, "maestro-1", '"Received event from channel" channel="events" extra="1"')], "MT-209"),
    ([], "MT-209"),
])  # fmt: skip
def test_agent_that_loses_its_server_shows_that_this_was_killed(tmp_path: Path, lines: list[Line], code: str) -> None:
    agent = at(-4, SERVER, '"registering subscriber" subID="s1" id="s1" clusterName="mgmt-1"')
    received = lines_of(LoggedRequest(work="before", at=BASE - 3), replace(CREATE, until=1))
    trace = traced(tmp_path, [*GRPC, agent, *received, *lines, at(5, AGENT, "goes on")])["nginx", "create"]
    assert (trace.failed_stage, trace.main_finding.code if trace.main_finding else "") == (2, code)
    if code == "MT-210":
        assert f"the log of {SERVER} ends at 09:00:01.123" in str(trace.main_finding)


@pytest.mark.parametrize("seconds", [0.05, 10.0], ids=["before", "after"])
def test_publish_error_of_an_event_that_reached_the_agent_is_history(tmp_path: Path, seconds: float) -> None:
    event = CREATE.event("db")
    body = f'"Failed to handle the event" err="failed to get event {event}: Event with id=\'{event}\' not found" key="{event}"'
    lines = [*lines_of(CREATE), at(seconds, SERVER, body, "E"), *alive(SERVER), *alive(AGENT)]
    assert traced(tmp_path, lines)["nginx", "create"].verdict is RequestVerdict.COMPLETE
    unreceived = [*lines_of(replace(CREATE, until=2)), *lines[-3:]]
    assert concluded(traced(tmp_path, unreceived)["nginx", "create"]) == (RequestVerdict.FAILED, 2, "MT-204")


def test_status_that_cannot_be_published_shows_that_the_work_was_handled(tmp_path: Path) -> None:
    error = f"Failed to publish resource {CREATE.resource}: the cloudevents client is not ready"
    lines = [*lines_of(replace(CREATE, until=3)), sync_failed(CREATE, 0.3, error), *alive(SERVER), *alive(AGENT)]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), codes(trace)) == ((RequestVerdict.FAILED, 5, "MT-501"), {"MT-501"})


@pytest.mark.parametrize(("until", "suffix"), [(8, ".go:"), (7, ".py:")], ids=["Go", "ours"])
def test_client_may_be_connected_to_the_server_whose_log_is_missing(tmp_path: Path, until: int, suffix: str) -> None:
    ring = '"newly added server instances and removed server instances from the hash ring"'
    start = [
        at(-9, SERVER, '"Starting gRPC server"'),
        at(-5, SERVER, f'{ring} addedMembers="Set{{maestro-0, maestro-1}}" removedMembers="Set{{}}"'),
    ]
    update = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60, until=until)
    lines = [*start, *lines_of(replace(CREATE, until=until), update), *alive(SERVER), *alive(AGENT)]
    judged = traced(tmp_path, [(pod, moment, line.replace(".go:", suffix)) for pod, moment, line in lines])
    for action in ("create", "update"):
        trace = judged["nginx", action]
        assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-004"})


@pytest.mark.parametrize("others", [(), ("somebody-else",), ("maestro-cli",)], ids=["nobody", "another", "watch-ended"])
def test_healthy_request_of_the_command_line_has_no_findings(others: tuple[str, ...], tmp_path: Path) -> None:
    """It subscribes for `watch` only: that no client of it is connected is no reason to warn."""
    lines = [at(-9, SERVER, '"Starting gRPC server"')]
    for number, source in enumerate(others):
        client = f'id="c{number}" source="{source}"'
        lines.append(at(-5, SERVER, f'"registered a broadcaster client" {client}'))
        if source == "maestro-cli":
            lines.append(at(0.1, SERVER, f'"unregistered broadcaster client" {client}'))
    lines += [*lines_of(replace(CREATE, until=7)), *alive(SERVER), *alive(AGENT)]
    judged = traced(
        tmp_path, [(pod, moment, line.replace("mw-client-example", "maestro-cli")) for pod, moment, line in lines]
    )
    trace = judged["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, set())
    assert [stage.note for stage in trace.stages[7:]] == ["the command line does not subscribe"] * 2


def test_client_that_left_is_no_failure_and_is_named(tmp_path: Path) -> None:
    client = 'id="c1" source="mw-client-example"'
    lines = [at(-9, SERVER, '"Starting gRPC server"'), at(-5, SERVER, f'"registered a broadcaster client" {client}'),
             at(-4, SERVER, '"registered a broadcaster client" id="c2" source="somebody-else"'),
             at(0.1, SERVER, f'"unregistered broadcaster client" {client}'),
             *lines_of(replace(CREATE, until=8)), *alive(SERVER), *alive(AGENT)]  # fmt: skip
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.COMPLETE, {"MT-901"})
    assert "client of mw-client-example unsubscribed at" in trace.findings[0].detail


def test_hanging_api_server_stops_all_controllers(tmp_path: Path) -> None:
    progress = [at(-number, AGENT, '"Reconciling ManifestWork" manifestWorkName="x"') for number in range(2, 40, 2)]
    trace = traced(tmp_path, [*progress, *lines_of(replace(CREATE, until=3)), *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-409")


def test_unreachable_api_server_is_seen_in_failed_watches(tmp_path: Path) -> None:
    error = (
        'failed to list *v1.ConfigMap: Get \\"https://10.0.0.1\\": dial tcp 10.0.0.1:443: connect: connection refused'
    )
    watch = at(2, AGENT, f'"Failed to watch" err="{error}" logger="UnhandledError" reflector="x"', "E")
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=3)), watch, *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-409")


def test_instance_that_only_the_ring_names_makes_its_stages_not_observable(tmp_path: Path) -> None:
    ring = at(
        -5,
        SERVER,
        '"newly added server instances and removed server instances from the hash ring" addedMembers="Set{maestro-0, maestro-1}" removedMembers="Set{}"',
    )
    trace = traced(tmp_path, [ring, *lines_of(replace(CREATE, until=6)), *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert (trace.stages[6].state.value, "MT-004" in codes(trace)) == ("not-observable", True)
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    assert any("none of maestro-1" in gap for gap in coverage.gaps(environment))


@pytest.mark.parametrize(("members", "missing"), [
    ('readyInstanceIDs=["maestro-0"] count=0 addedMembers=0', ()),
    ('readyInstanceIDs=["maestro-0","maestro-1"] count=3 addedMembers=3', ("maestro-1",)),
    ("count=2 addedMembers=2", ()),
    ('addedMembers="Set{maestro-0}" removedMembers="Set{}"', ()),
])  # fmt: skip
def test_number_of_gained_consumers_is_no_instance(tmp_path: Path, members: str, missing: tuple[str, ...]) -> None:
    message = '"newly added server instances and removed server instances from the hash ring"'
    write(tmp_path, [at(-5, SERVER, f"{message} {members}"), *lines_of(CREATE)])
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    assert environment.missing == missing


def test_status_that_the_only_given_server_left_to_others_is_not_a_failure(tmp_path: Path) -> None:
    left = at(
        0.28,
        SERVER,
        f'"skipping resource status update as it is not owned by the current instance" resourceID="{CREATE.resource}"',
    )
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=6)), left, *alive(SERVER), *alive(AGENT)])[
        "nginx", "create"
    ]
    assert trace.verdict is not RequestVerdict.FAILED
    assert "MT-004" in codes(trace)


def test_spec_that_was_sent_again_shows_no_clock_skew(tmp_path: Path) -> None:
    # The first delivery came from an instance whose log is missing; this one repeats it a minute later.
    resent = at(
        60, SERVER, f'"Sending event" eventType="{TYPE}.spec.create_request" extensions={extensions(CREATE, version=1)}'
    )
    lines = [*lines_of(replace(CREATE, without=frozenset({2}))), resent, *alive(SERVER), *alive(AGENT)]
    read = scan.scan_all([str(write(tmp_path, lines))], now=BASE + 86400)
    tracer.read_environment(read.records, read.writers, options=Options())
    assert [writer.skew for writer in read.writers] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("deleted", "created"),
    [
        pytest.param(60, 120, id="after-a-minute"),
        # Half a second after the first status: one server's clock orders both without tolerance.
        pytest.param(0.2, 0.4, id="at-once"),
    ],
)
def test_recreated_work_is_judged_by_its_own_records(tmp_path: Path, deleted: float, created: float) -> None:
    delete = LoggedRequest(work="nginx", action="delete", at=BASE + deleted)
    again = LoggedRequest(work="nginx", at=BASE + created, until=3, op_id="again")
    read = scan.scan_all(
        [str(write(tmp_path, [*lines_of(CREATE, delete, again), *alive(SERVER), *alive(AGENT)]))], now=BASE + 86400
    )
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    judged = sorted(tracer.traces(read.records, environment, options=Options()), key=lambda trace: trace.start)
    assert [(each.key.action, each.key.incarnation, each.verdict.value, each.failed_stage) for each in judged] == [
        ("create", 1, "complete", None), ("delete", 1, "complete", None), ("create", 2, "incomplete", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(("applied", "verdict", "stage"), [("True", "complete", None), ("False", "failed", 4)])
def test_stored_status_shows_what_the_logs_do_not(
    tmp_path: Path, applied: str, verdict: str, stage: int | None
) -> None:
    trace = traced(tmp_path, [*lines_of(CREATE, agent=False), *alive(SERVER)])["nginx", "create"]
    assert trace.verdict is RequestVerdict.UNKNOWN
    results: database_checks.CheckResults = {
        "resource": [{"version": 1, "status_version": "1"}],
        "conditions": [{"type": "Applied", "status": applied, "message": "Failed to apply manifest work"}],
        "manifests": [] if applied == "True" else [{"kind": "ConfigMap", "message": INVALID}],
    }
    refined = database_checks.refined(trace, results)
    assert (refined.verdict.value, refined.failed_stage, "MT-404" in codes(refined)) == (
        verdict,
        stage,
        applied == "False",
    )


def test_recreated_work_is_another_incarnation_without_a_confirmed_deletion(tmp_path: Path) -> None:
    delete = LoggedRequest(work="nginx", action="delete", at=BASE + 60, until=5)
    again = LoggedRequest(work="nginx", at=BASE + 120, op_id="again")
    read = scan.scan_all(
        [str(write(tmp_path, [*lines_of(CREATE, delete, again), *alive(SERVER), *alive(AGENT)]))], now=BASE + 86400
    )
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    judged = sorted(tracer.traces(read.records, environment, options=Options()), key=lambda trace: trace.start)
    assert [(each.key.action, each.key.incarnation, each.verdict.value) for each in judged] == [
        ("create", 1, "complete"), ("delete", 1, "incomplete"), ("create", 2, "complete"),
    ]  # fmt: skip


def test_one_line_that_is_cut_off_at_the_end_hides_nothing(tmp_path: Path) -> None:
    cut = at(601, SERVER, '"receive the event from client" event="{\\"specversion\\":\\"1.0\\",\\"id\\":')
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=3)), *alive(SERVER), *alive(AGENT), cut])[
        "nginx", "create"
    ]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 4, "MT-412")


def test_unknown_consumer_is_named(tmp_path: Path) -> None:
    notified = at(-60, SERVER, '"Received event from channel" channel="events" extra="an-older-event"')
    stray = replace(CREATE, until=1)
    lines = [(pod, moment, line.replace("mgmt-1", "mgmt-9")) for pod, moment, line in lines_of(stray)]
    trace = traced(tmp_path, [notified, *lines, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-201")
    assert "consumer mgmt-9" in str(trace.main_finding)


def test_unknown_consumer_is_no_absent_agent_behind_the_grpc_broker(tmp_path: Path) -> None:
    status_event = at(1, SERVER, '"Received event from channel" channel="status_events" extra="se-1"')
    broadcast = at(1.1, SERVER, f'"Broadcast the resource status" status_event="se-1" resourceID="{OTHER.resource}"')
    lines = [
        (pod, moment, line.replace("mgmt-1", "mgmt-9")) for pod, moment, line in lines_of(replace(CREATE, until=1))
    ]
    trace = traced(tmp_path, [*GRPC, *lines, status_event, broadcast, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-201")
    assert "consumer mgmt-9" in str(trace.main_finding)
    event = at(0.1, SERVER, '"Received event from channel" channel="events" extra="of-the-request"')
    trace = traced(tmp_path, [*GRPC, *lines, event, *alive(SERVER)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 3, "MT-301")


def test_unknown_consumer_is_named_where_announcements_are_not_logged(tmp_path: Path) -> None:
    lines = [
        (pod, moment, line.replace("mgmt-1", "mgmt-9")) for pod, moment, line in lines_of(replace(CREATE, until=1))
    ]
    trace = traced(tmp_path, [*lines_of(OTHER), *lines, *alive(SERVER), *alive(AGENT)])["nginx", "create"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-209")
    assert "consumer mgmt-9" in str(trace.main_finding)


def test_released_finalizer_ends_the_blame(tmp_path: Path) -> None:
    assert SERVERS  # the generator's names are replaced by one server
    delete = LoggedRequest(work="nginx", action="delete", at=BASE + 60, until=3)
    deleted = at(
        60.2,
        AGENT,
        f'"Deleted resource" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="cm" reason="manifestwork {CREATE.resource} is terminating"',
    )
    lines = [*lines_of(CREATE, delete), deleted, *alive(SERVER, 100), *alive(AGENT, 100)]
    assert concluded(traced(tmp_path, lines)["nginx", "delete"]) == (RequestVerdict.PENDING, 4, "MT-411")
    stuck = traced(tmp_path, [*lines, *alive(SERVER, 4000), *alive(AGENT, 4000)])["nginx", "delete"]
    assert concluded(stuck) == (RequestVerdict.INCOMPLETE, 4, "MT-425")
    severities = [CODES[code].severity for code in ("MT-411", "MW-007", "MT-425", "MW-107")]
    assert severities == ["warn", "warn", "error", "error"], "a work and its request look alike"
    removed = at(
        99,
        AGENT,
        '"Resource is removed successfully" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="cm"',
    )
    assert traced(tmp_path, [*lines, removed])["nginx", "delete"].verdict is RequestVerdict.PENDING


def test_export_of_event_lines_only_does_not_show_that_nothing_failed(tmp_path: Path) -> None:
    rows = [
        f'"{pod}","{line.replace(chr(34), chr(34) * 2)}"'
        for pod, _, line in sorted(lines_of(CREATE, applied=False), key=lambda line: line[1])
    ]
    (tmp_path / "export.csv").write_text("\n".join(['"pod_name","log"', *rows]) + "\n")
    read = scan.scan_all([str(tmp_path)], now=BASE + 86400)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    (trace,) = tracer.traces(read.records, environment, options=Options())
    assert (trace.verdict, "MT-416" in codes(trace)) == (RequestVerdict.UNKNOWN, True)
