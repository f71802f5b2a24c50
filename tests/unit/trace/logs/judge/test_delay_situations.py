# ruff: noqa: E501 - log lines are as long as they are
"""Situations that a person on call wrote down with their truth: rejected or without effect, delayed, lost on the way.

Each is an excerpt in the form of their logs: lines of a Go server and agent around one request.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from maestropy import trace as library
from maestropy.cli import main
from maestropy.trace.findings.codes import CODES
from maestropy.trace.logs.model import RequestVerdict, StageState
from tests.trace_request_logs import AGENT, BASE, SERVERS, TYPE, LoggedRequest, lines_g4
from tests.unit.trace.logs.judge.test_apply_situations import ALIVE, another_status, finding
from tests.unit.trace.logs.judge.test_situations import (
    CREATE,
    OTHER,
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


def arrival(logged: LoggedRequest, *, value: str = "1", version: int = 0) -> Line:
    """Return the line of a server at -v=4 that receives a request, with its manifests."""
    manifest = {"kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "default"}, "data": {"a": value}}
    event = {"id": logged.event("ce"), "source": "mw-client-example", "type": f"{TYPE}.spec.{logged.action}_request",
             "clustername": "mgmt-1", "resourceid": logged.resource, "resourceversion": version,
             "data": None if logged.action == "delete" else {"manifests": [manifest]},
             "metadata": json.dumps({"name": logged.work, "uid": logged.resource})}  # fmt: skip
    text = json.dumps(json.dumps(event, separators=(",", ":")))
    return at(logged.at - BASE, SERVER, f'"receive the event from client" op-id="{logged.operation}" event={text}')


def announced(seconds: float, event: str = "e") -> Line:
    return at(seconds, SERVER, f'"Received event from channel" logger="maestro-server.maestro-controllers" channel="events" extra="{event}"')  # fmt: skip


def with_manifests(logged: LoggedRequest, **values: object) -> list[Line]:
    lines = [line for line in lines_of(logged) if '"receive the event' not in line[2]]
    moment = logged.at - BASE + 0.03
    return [arrival(logged, **values), announced(moment, logged.event("db")), *lines]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [0, 1])
def test_update_with_the_manifests_of_the_version_before_is_a_no_op(tmp_path: Path, version: int) -> None:
    same = replace(CREATE, action="update", version=2, at=BASE + 30)
    next_one = replace(CREATE, action="update", version=2, at=BASE + 90, op_id="op-next")
    lines = [*with_manifests(CREATE), arrival(same, version=version), *with_manifests(next_one, value="2", version=1)]
    write(tmp_path, [*lines, *ALIVE])
    create, no_op, update = library.requests(tmp_path)
    assert [create.verdict, no_op.verdict, update.verdict] == [RequestVerdict.COMPLETE, RequestVerdict.NO_OP, RequestVerdict.COMPLETE]  # fmt: skip
    assert codes(no_op) == {"MT-202"}


def repeated(*, value: str, error: float = 0.0, is_applied: bool = True) -> list[Line]:
    """Return a create, and an update with the manifests of `value` that a Go agent reports only before it acts on it."""
    update = replace(CREATE, action="update", version=2, at=BASE + 30)
    sent = [line for line in with_manifests(update, value=value, version=1) if "Server side applied" not in line[2]]
    early = status(update, 30.2815, applied="True", generation=1, sequence=0)
    first = status(CREATE, 0.2815, applied="True" if is_applied else "False", message="denied", sequence=0)
    errors = [sync_failed(CREATE, 30 + error, "context deadline exceeded")] if error else []
    lines = [*with_manifests(CREATE, value="1"), first, *sent, early, *errors]
    return [line for line in lines if is_applied or "Server side applied" not in line[2]]


def test_version_that_repeats_an_applied_one_needs_no_status_of_its_own(tmp_path: Path) -> None:
    trace = traced(tmp_path, [*repeated(value="1"), *ALIVE])["nginx", "update"]
    assert concluded(trace) == (RequestVerdict.COMPLETE, None, "")
    assert trace.stages[3].note == "nothing to change: the same manifests were applied before"


def test_errors_long_after_a_repeated_version_are_of_later_reconciliations(tmp_path: Path) -> None:
    trace = traced(tmp_path, [*repeated(value="1", error=20.0), *ALIVE])["nginx", "update"]
    assert trace.verdict is RequestVerdict.COMPLETE


@pytest.mark.parametrize("lines", [
    repeated(value="2"), repeated(value="1", is_applied=False), repeated(value="1", error=0.3)
], ids=["other manifests", "not applied before", "error at once"])  # fmt: skip
def test_early_status_proves_nothing_without_an_applied_version_to_repeat(tmp_path: Path, lines: list[Line]) -> None:
    trace = traced(tmp_path, [*lines, *ALIVE])["nginx", "update"]
    assert trace.verdict is not RequestVerdict.COMPLETE
    assert trace.failed_stage == 4


def nameless(line: Line) -> Line:
    """Return a line as a Go server behind the gRPC broker writes it: of two messages about statuses, without the ID."""
    pod, moment, text = line
    if '"handle resource status' in text or 'event was sent"' in text:
        # It writes them before and after the record that has the ID.
        return pod, moment + (0.001 if "was sent" in text else -0.001), text.partition(" logger=")[0]
    return line


def test_deletion_that_is_broadcast_before_its_record_is_confirmed(tmp_path: Path) -> None:
    delete = replace(CREATE, action="delete", at=BASE + 30)
    again = replace(CREATE, at=BASE + 30.4)
    lines = [nameless(line) for line in lines_of(CREATE, delete, again)]
    sent = next(line for line in lines if '"resource status delete event was sent"' in line[2])
    late = at(30.291, SERVER, '"resource status delete event was sent"')
    write(tmp_path, [*(line for line in lines if line is not sent), late, *ALIVE])
    first, deleted, second = library.requests(tmp_path)
    assert [one.verdict for one in (first, deleted, second)] == [RequestVerdict.COMPLETE] * 3
    assert [one.key.incarnation for one in (first, deleted, second)] == [1, 1, 2]
    assert [record.at for record in deleted.stages[6].records][-1] == pytest.approx(late[1], abs=0.001)


def test_update_without_an_event_may_be_rejected_or_without_effect(tmp_path: Path) -> None:
    update = replace(CREATE, action="update", version=2, at=BASE + 30)
    lines = [*with_manifests(CREATE), arrival(update, value="2"), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "update"]
    assert concluded(trace) == (RequestVerdict.INCOMPLETE, 2, "MT-212")
    assert not any("consumer" in advice for advice in CODES["MT-212"].advice)


def test_delete_of_what_never_was_is_not_called_a_failure(tmp_path: Path) -> None:
    delete = LoggedRequest(work="absent", action="delete", at=BASE + 30)
    trace = traced(tmp_path, [*with_manifests(CREATE), arrival(delete), *ALIVE])["absent", "delete"]
    assert (trace.verdict, codes(trace)) == (RequestVerdict.UNKNOWN, {"MT-202"})
    assert "there is no such resource, or the server rejected it" in finding(trace, "MT-202")


def test_re_publish_is_no_delivery(tmp_path: Path) -> None:
    again = '"Re-published undelivered resource" logger="maestro-server.maestro-controllers" resourceID="{}" consumerName="mgmt-1" age="10m0s"'
    lines = [*lines_of(replace(CREATE, until=2), OTHER), at(300, SERVER, again.format(CREATE.resource)), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (trace.failed_stage, "MT-304" in codes(trace)) == (3, False)
    assert "re-published at 09:05:01" in trace.stages[1].note


def broken_stream(name: str, seconds: float) -> list[Line]:
    return [
        at(seconds, SERVER, f'"failed to send event, unregister subscriber" err="transport is closing" subscriber="{name}"', "E"),
        at(seconds + 0.001, SERVER, f'"unregistered broadcaster client" id="{name}" source="mw-client-example"'),
    ]  # fmt: skip


def subscribed(name: str) -> Line:
    return at(-1, SERVER, f'"registered a broadcaster client" id="{name}" source="mw-client-example"')


def test_stream_that_breaks_as_the_status_is_sent_loses_it(tmp_path: Path) -> None:
    lines = [subscribed("one"), *lines_of(CREATE), *broken_stream("one", 0.29), *ALIVE]
    trace = traced(tmp_path, lines)["nginx", "create"]
    assert (concluded(trace), trace.confidence) == ((RequestVerdict.FAILED, 9, "MT-903"), "certain")


def test_stream_that_breaks_beside_another_loses_nothing(tmp_path: Path) -> None:
    lines = [subscribed("one"), subscribed("two"), *lines_of(CREATE), *broken_stream("one", 0.29), *ALIVE]
    assert traced(tmp_path, lines)["nginx", "create"].verdict is RequestVerdict.COMPLETE


def test_status_that_is_sent_again_after_a_broken_stream_arrives(tmp_path: Path) -> None:
    lines = [subscribed("one"), *lines_of(CREATE), *broken_stream("one", 0.29), *another_status(CREATE, 9.0), *ALIVE]
    assert traced(tmp_path, lines)["nginx", "create"].verdict is RequestVerdict.COMPLETE


def test_restart_of_the_agent_that_delayed_a_request_is_named(tmp_path: Path) -> None:
    late = replace(CREATE, at=BASE + 12, without=frozenset({1, 2}), op_id=CREATE.operation)
    received = [
        (pod, moment, line.replace("create_request", "resync_response")) for pod, moment, line in lines_of(late)
    ]
    restart = at(11.5, AGENT, '"Caches are synced"')
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=3)), restart, *received, *ALIVE])["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert finding(trace, "MT-011") == f"{AGENT} restarted at 09:00:12.623"


def test_restart_of_the_server_that_delayed_a_request_is_named(tmp_path: Path) -> None:
    late = replace(CREATE, at=BASE + 12, without=frozenset({1}), op_id=CREATE.operation)
    restart = at(11.5, SERVER, '"Starting gRPC server" logger="maestro-server"')
    trace = traced(tmp_path, [*lines_of(replace(CREATE, until=1)), restart, *lines_of(late), *ALIVE])["nginx", "create"]
    assert finding(trace, "MT-011") == f"{SERVER} restarted at 09:00:12.623"


def test_status_that_no_instance_took_explains_the_delay(tmp_path: Path) -> None:
    left = list(lines_g4(replace(CREATE, until=6)))
    missing = next(pod for pod in SERVERS if not any(one == pod and "not owned" in line for one, _, line in left))
    skip = f'"skipping resource status update as it is not owned by the current instance" logger="maestro-server" op-id="{CREATE.operation}" resourceID="{CREATE.resource}"'
    lines = [*left, at(0.272, missing, skip), at(20, SERVERS[0], '"Resyncing resource status from consumers" logger="maestro-server" consumers=["mgmt-1"]')]  # fmt: skip
    lines += lines_g4(replace(CREATE, at=BASE + 20.1, without=frozenset({1, 2, 3, 4})))
    trace = traced(tmp_path, [*lines, *(line for pod in (*SERVERS, AGENT) for line in alive(pod))])["nginx", "create"]
    assert trace.verdict is RequestVerdict.COMPLETE
    assert finding(trace, "MT-011").startswith("no server instance took the status of 09:00:01")
    assert "requested again at 09:00:21" in finding(trace, "MT-011")


def test_server_log_that_begins_after_the_agent_received_it_does_not_cover_its_arrival(tmp_path: Path) -> None:
    topic = at(-5, AGENT, '"subscribed to mqtt broker" topic="sources/maestro/consumers/mgmt-1/sourceevents" QoS=1')
    lines = [topic, *(line for line in lines_of(CREATE) if line[0] == AGENT or line[1] > BASE + 0.2), *ALIVE]
    (trace,) = traced(tmp_path, lines).values()
    assert trace.verdict is RequestVerdict.COMPLETE
    assert codes(trace) == {"MT-002"}
    assert [stage.state for stage in trace.stages[:2]] == [StageState.NOT_OBSERVABLE] * 2


def test_one_id_on_two_consumers_is_two_works(tmp_path: Path) -> None:
    twin = "maestro-agent-of-the-other"
    second = [
        (twin if pod == AGENT else "maestro-of-the-other", moment, line.replace("mgmt-1", "mgmt-2").replace(CREATE.event("db"), "other-event"))
        for pod, moment, line in lines_of(replace(CREATE, at=BASE + 4, op_id="op-twin"))
    ]  # fmt: skip
    lines = [
        *lines_of(replace(CREATE, without=frozenset({4}))),
        *second,
        *ALIVE,
        *alive(twin),
        *alive("maestro-of-the-other"),
    ]
    lines += [
        sync_failed(CREATE, 0.2 * 4**attempt, 'ConfigMap "cm" is invalid: data: Required value') for attempt in range(5)
    ]
    write(tmp_path, lines)
    by_consumer = {one.key.consumer: concluded(one) for one in library.requests(tmp_path)}
    assert by_consumer["mgmt-1"] == (RequestVerdict.FAILED, 4, "MT-404")
    assert by_consumer["mgmt-2"][0] is RequestVerdict.COMPLETE


def test_rows_of_an_export_without_times_are_read_in_the_order_of_their_lines(tmp_path: Path) -> None:
    works = [LoggedRequest(work=f"w{number}", at=BASE + 4 * number) for number in range(5)]
    lines = lines_of(*works, applied=False)
    for number, logged in enumerate(works):
        text = f'"INFO: Created ConfigMap/w{number} -n default because it was missing" component="c" reason="r"'
        lines.append(at(logged.at - BASE + 0.15, AGENT, text))
    rows = [
        f'{pod},"{line.replace(chr(34), chr(34) * 2)}"'
        for pod, _, line in sorted(lines, key=lambda line: hash(line[2]) % 97)
    ]
    (tmp_path / "export.csv").write_text("pod_name,log\n" + "\n".join(rows) + "\n")
    traces = library.requests(tmp_path)
    assert {
        trace.key.work_name: [record.detail.split()[2] for record in trace.stages[3].records] for trace in traces
    } == {f"w{number}": [f"ConfigMap/w{number}"] for number in range(5)}


def test_parts_of_a_rotated_log_are_one_log(tmp_path: Path) -> None:
    client = at(-2, SERVER, '"registered a broadcaster client" id="one" source="mw-client-example"')
    start = at(-3, SERVER, '"Starting gRPC server" logger="maestro-server"')
    gone = at(0.05, SERVER, '"unregistered broadcaster client" id="one" source="mw-client-example"')
    lines = [start, client, gone, *lines_of(replace(CREATE, until=8)), *ALIVE]
    whole, rotated = tmp_path / "whole", tmp_path / "rotated"
    whole.mkdir()
    rotated.mkdir()
    write(whole, lines)
    for file in whole.iterdir():
        text = file.read_text().splitlines(keepends=True)
        parts = (text[:2], text[2:4], text[4:])
        for name, part in zip((f"{file.name}.2", f"{file.name}.1", file.name), parts, strict=True):
            (rotated / name).write_text("".join(part))
    (one,), (several,) = library.requests(whole), library.requests(rotated)
    assert (concluded(one), codes(one)) == (concluded(several), codes(several))
    assert (one.verdict, codes(one)) == (RequestVerdict.COMPLETE, {"MT-901"})


def test_work_name_on_two_consumers_is_listed_with_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "11111111-1111-4111-8111-111111111111"
    second = [(pod, moment, line.replace("mgmt-1", "mgmt-2").replace(CREATE.resource, other).replace(CREATE.event("db"), "e2"))
              for pod, moment, line in lines_of(replace(CREATE, at=BASE + 4, op_id="op-2"))]  # fmt: skip
    folder = str(write(tmp_path, [*lines_of(CREATE), *second, *ALIVE]))
    assert main.call(["trace", "request", "nginx", folder]) == 7
    said = capsys.readouterr().err
    assert f"{CREATE.resource}  consumer mgmt-1" in said
    assert f"{other}  consumer mgmt-2" in said
    assert main.call(["trace", "request", "nginx", folder, "--consumer", "mgmt-2"]) == 0
    assert other in capsys.readouterr().out
    assert main.call(["trace", "request", "nginx", folder, "--consumer", "mgmt-3"]) == 4
    assert "there are some of mgmt-1, mgmt-2" in capsys.readouterr().err


def test_one_path_may_stand_alone(tmp_path: Path) -> None:
    folder = write(tmp_path, [*lines_of(CREATE), *ALIVE])
    assert (
        len(library.requests(str(folder)))
        == len(library.requests(folder))
        == len(library.request(folder, "nginx"))
        == 1
    )
    with pytest.raises(library.InvalidArguments, match="give a path, or a list of paths"):
        library.requests([3])  # type: ignore[list-item]
