"""Requests that are older than the logs, and known only by the statuses that follow them."""

from pathlib import Path

from maestropy.trace.logs import tracing
from maestropy.trace.logs.model import Trace
from tests.trace_request_logs import BASE, TYPE, klog

ID = "111cbcec-f199-5203-925c-5b633a123ea2"


def trace(tmp_path: Path, **lines_of: list[tuple[float, str]]) -> Trace:
    """Return the only request that the logs of these pods show."""
    for pod, lines in lines_of.items():
        text = "\n".join(klog(BASE + at, "event_server.go:98", line) for at, line in lines)
        (tmp_path / f"{pod.replace('_', '-')}.log").write_text(f"{text}\n")
    (found,) = tracing.request(tmp_path, ID)
    return found


def test_unchanged_status_does_not_show_that_a_work_was_applied(tmp_path: Path) -> None:
    """The stored status may say that it was not; the line says nothing of it."""
    unchanged = f'"status update changes nothing" resourceID="{ID}" reason="the status is unchanged"'
    found = trace(tmp_path, maestro_0=[(0.0, unchanged), (400.0, '"Heartbeat"')])
    assert (found.verdict, found.failed_stage) == ("unknown", None)
    assert found.main_finding is not None
    assert found.main_finding.code == "MT-416"


def test_resynced_status_of_an_old_work_blames_no_server(tmp_path: Path) -> None:
    """The create was received long before; every server start makes the agents send their statuses again."""
    kind = f'eventType="{TYPE}.status.resync_response"'
    extensions = (
        f'{{"clustername":"c1","resourceid":"{ID}","resourceversion":"1","sequenceid":"2123071289848500224",'
        '"statushash":"4e45cb"}'
    )
    received = f'"Received event" logger="maestro-server" {kind} extensions={extensions}'
    named = f'logger="maestro-server" resourceID="{ID}"'
    update = f'"received status update for resource" {named}'
    broadcast = f'"Broadcast the resource status" status_event="e1" resourceID="{ID}" eventID="e1" source="s1"'
    found = trace(
        tmp_path,
        maestro_0=[
            (0.0, received),
            (0.1, update),
            (0.2, f'"skipping resource status update as it is not owned by the current instance" {named}'),
            (0.5, f'{broadcast} instanceID="maestro-0" statusEventType="StatusUpdate"'),
            (400.0, '"Heartbeat"'),
        ],
        maestro_1=[
            (0.2, received),
            (0.3, update),
            (0.31, f'"handle resource status update by the current instance" {named}'),
            (0.4, f'"resource status update event was sent" {named}'),
            (0.5, f'{broadcast} instanceID="maestro-1" statusEventType="StatusUpdate"'),
            (400.0, '"Heartbeat"'),
        ],
    )
    assert (found.verdict, found.failed_stage) == ("unknown", None)
    assert not [finding for finding in found.findings if finding.entry.severity == "error"]
