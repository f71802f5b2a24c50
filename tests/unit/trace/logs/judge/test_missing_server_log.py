"""One life of a work on two servers of this project, behind MQTT at -v=4, with the log of one or more pods missing.

Each server handles each status: the faster one stores it, the other one finds it unchanged or, if it is late, stale.
The client is connected to the first server, which received its requests. Which server stores which status depends on
time alone. So the lines of a life are assigned to the servers in every way, and the truth is the same for all of them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from maestropy.trace.logs import tracing
from tests.trace_request_logs import AGENT, BASE, TYPE, klog

ID = "742d78df-41d3-5562-889b-c600137d25d0"
SOURCE = "source-1"
FIRST, SECOND = "maestro-0", "maestro-1"
STATUSES = ("created", "updated", "deleting", "deleted")
VERSIONS = {"created": 1, "updated": 2, "deleting": 2, "deleted": 2}
SENT = {"created": 0.06, "updated": 0.19, "deleting": 0.26, "deleted": 0.30}
"""When the agent sends each status."""
REQUESTS = {"create": (0.0, 1), "update": (0.15, 2), "delete": (0.22, 2)}
Line = tuple[str, float, str]


@dataclass(frozen=True, kw_only=True)
class Life:
    """How the two servers share the work."""

    stored_by: str
    """The number of the server that stores each of the four statuses."""
    late: float = 0.02
    """How long after a status is stored the other server handles it."""
    merged: str = ""
    """The status that the first server does not send, because the next one is stored by the time it sends."""
    is_export: bool = False
    """Whether lines of servers that name no event are left out, as the runbook's query does."""
    is_overtaken: bool = False
    """Whether the delete is published before the update is, which no agent receives then."""

    def lines(self) -> Iterator[Line]:
        """Return pod, time and text of every line."""
        yield from self._surroundings()
        for action, (at, version) in REQUESTS.items():
            yield from self._request(action, at, version)
        for number, status in enumerate(STATUSES):
            if status != "updated" or not self.is_overtaken:
                yield from self._status(status, FIRST if self.stored_by[number] == "0" else SECOND)

    def _surroundings(self) -> Iterator[Line]:
        ring = '"newly added server instances and removed server instances from the hash ring" logger="maestro-server"'
        for pod in (FIRST, SECOND):
            yield pod, -5, '"Starting gRPC server" logger="maestro-server"'
            yield pod, -4, '"subscribed to mqtt broker" logger="maestro-server" topic="sources/maestro/#" QoS=1'
            yield pod, -3, f'{ring} readyInstanceIDs=["{FIRST}","{SECOND}"] count=0 addedMembers=0'
            yield pod, 400, '"Heartbeat" logger="maestro-server"'
        yield FIRST, -2, f'"registered a broadcaster client" id="11111111-2222-3333-4444-555555" source="{SOURCE}"'
        yield AGENT, -2, '"subscribed to mqtt broker" topic="sources/maestro/consumers/c1/sourceevents" QoS=1'
        yield AGENT, 400, '"Heartbeat"'

    def _request(self, action: str, at: float, version: int) -> Iterator[Line]:
        kind = f"{TYPE}.spec.{action}_request"
        whole = {"specversion": "1.0", "id": f"ce-{action}", "source": SOURCE, "type": kind, "clustername": "c1",
                 "resourceid": ID, "resourceversion": version if action == "delete" else version - 1,
                 "metadata": metadata(is_deleting=False, name="ok"), "data": {"manifests": [manifest(version)]}
                 }  # fmt: skip
        yield FIRST, at, f'"receive the event from client" event={quoted(whole)}'
        if action == "update" and self.is_overtaken:
            return
        row = {"create": "insert", "update": "update", "delete": "delete"}[action]
        named = f'logger="maestro-server.maestro-controllers" event="event-{action}" resourceID="{ID}"'
        extensions = {"clustername": "c1", "resourceid": ID, "resourceversion": version, "originalsource": "",
                      "metadata": metadata(is_deleting=action == "delete")}  # fmt: skip
        event = f'eventType="{kind}" extensions={json.dumps(extensions)}'
        yield SECOND, at + 0.02, f'"Publishing resource for db row {row}" {named}'
        yield SECOND, at + 0.0201, f'"Sending event" {named} eventID="ce-{action}" {event}'
        yield AGENT, at + 0.022, f'"Received event" {event}'
        if action != "delete":
            word = "Created resource because it was missing" if action == "create" else "Updated resource"
            work = f'logger="ManifestWorkController" manifestWorkName="{ID}" gvr="/v1, Resource=configmaps"'
            yield AGENT, at + 0.03, f'"{word}" {work} resourceNamespace="default" resourceName="ok"'

    def _status(self, status: str, winner: str) -> Iterator[Line]:
        at, named = SENT[status], f'logger="maestro-server" resourceID="{ID}"'
        extensions = {"clustername": "c1", "resourceid": ID, "resourceversion": VERSIONS[status],
                      "sequenceid": sequence(status), "originalsource": "maestro",
                      "metadata": metadata(is_deleting=status.startswith("delet"))}  # fmt: skip
        kind = f"{TYPE}.status.update_request"
        event = f'eventType="{kind}" extensions={json.dumps(extensions)}'
        yield AGENT, at, f'"Sending event" {event}'
        for pod in (FIRST, SECOND):
            yield pod, at + 0.003, f'"Received event" logger="maestro-server" eventID="ce-{status}" {event}'
            yield from self._unless_export((pod, at + 0.004, f'"received status update for resource" {named}'))
        yield from self._unless_export(
            (winner, at + 0.01, f'"handle resource status update by the current instance" {named}')
        )
        if status == "deleted":
            yield winner, at + 0.0102, f'"resource status delete event was sent" {named}'
        else:
            yield winner, at + 0.0101, f'"Updating resource status" {named} event={quoted(whole_status(status))}'
            yield winner, at + 0.0102, f'"resource status update event was sent" {named}'
        loser = FIRST if winner == SECOND else SECOND
        yield from self._unless_export((loser, at + 0.01 + self.late, self._finds(status, at + 0.01 + self.late)))
        yield from self._sent(status, at + 0.013)

    def _unless_export(self, line: Line) -> list[Line]:
        return [] if self.is_export else [line]

    def _finds(self, status: str, at: float) -> str:
        """Return what the server that is later finds."""
        named = f'logger="maestro-server" resourceID="{ID}"'
        if status == "created" and at > REQUESTS["update"][0]:
            return f'"Updating status for stale resource; disregard it" {named} foundVersion=2 wantVersion=1'
        if status == "deleted" or at > SENT["deleted"] + 0.01:
            return f'"status update changes nothing" {named} reason="there is no such resource"'
        if status == "updated" and at > SENT["deleting"] + 0.01:
            ids = f'foundSequenceID="{sequence("deleting")}" wantSequenceID="{sequence("updated")}"'
            words = '"the order of a status update is not known; the agent is asked for its status"'
            return f'{words} {named} {ids} reason="older"'
        return f'"status update changes nothing" {named} reason="the status is unchanged"'

    def _sent(self, status: str, at: float) -> Iterator[Line]:
        if status == self.merged:
            at = SENT[STATUSES[STATUSES.index(status) + 1]] + 0.0129
        names = f'resourceID="{ID}" instanceID="{FIRST}" eventID="status-{status}" source="{SOURCE}"'
        kind = "StatusDelete" if status == "deleted" else "StatusUpdate"
        named = f'logger="maestro-server.maestro-controllers" status_event="status-{status}"'
        yield FIRST, at, f'"Broadcast the resource status" {named} {names} statusEventType="{kind}"'
        if status != self.merged:
            event = quoted(whole_status(status))
            yield FIRST, at + 0.003, f'"send the event to status subscribers" event={event} count=1'


def quoted(event: dict[str, object]) -> str:
    return json.dumps(json.dumps(event, separators=(",", ":")))


def metadata(*, is_deleting: bool, name: str = ID) -> str:
    leaving = {"deletionTimestamp": "2026-01-15T09:00:01Z"} if is_deleting else {}
    return json.dumps({"name": name, "namespace": "c1", "uid": ID, **leaving})


def manifest(version: int) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ok"}, "data": {"value": str(version)}}


def sequence(status: str) -> str:
    return str(2123047969035915264 + STATUSES.index(status) * 100_000_000)


def whole_status(status: str) -> dict[str, object]:
    version, kinds = VERSIONS[status], ["Deleted"] if status == "deleted" else ["Applied", "Available"]
    conditions = [{"type": kind, "status": "True", "observedGeneration": version} for kind in kinds]
    return {
        "specversion": "1.0", "id": f"ce-{status}", "source": "c1-work-agent", "type": f"{TYPE}.status.update_request",
        "clustername": "c1", "resourceid": ID, "resourceversion": str(version), "sequenceid": sequence(status),
        "originalsource": "maestro", "metadata": metadata(is_deleting=status.startswith("delet"), name="ok"),
        "data": {"conditions": conditions},
    }  # fmt: skip


def write(folder: Path, life: Life, *missing: str) -> Path:
    """Write the logs of a life without those of some pods."""
    folder.mkdir(parents=True)
    lines = sorted(life.lines(), key=lambda line: line[1])
    for pod in {FIRST, SECOND, AGENT} - set(missing):
        own = [klog(BASE + at, "module.py:1", text) for name, at, text in lines if name == pod]
        (folder / f"{pod}.log").write_text("\n".join(own) + "\n")
    return folder


def verdicts(folder: Path) -> dict[str, str]:
    """Return the verdict on each request; `request` and `requests` must agree."""
    all_of_them = {trace.key.action: str(trace.verdict) for trace in tracing.requests(folder)}
    assert all_of_them == {trace.key.action: str(trace.verdict) for trace in tracing.request(folder, ID)}
    return all_of_them


COMPLETE = {"create": "complete", "update": "complete", "delete": "complete"}
TABLE = [
    *(
        pytest.param(Life(stored_by=f"10{rest}"), missing, COMPLETE, id=f"stored-by-10{rest}-without-{name}")
        for rest in ("00", "01", "10", "11")
        for missing, name in (((SECOND,), "second"), ((SECOND, AGENT), "second-and-agent"))
    ),
    pytest.param(Life(stored_by="1000", late=0.06), (SECOND,), COMPLETE, id="first-server-late"),
    pytest.param(Life(stored_by="0001"), (SECOND, AGENT), COMPLETE, id="deletion-confirmed-by-the-missing-server"),
    pytest.param(Life(stored_by="1011", merged="updated"), (SECOND,), COMPLETE, id="status-of-update-merged"),
    pytest.param(Life(stored_by="1011", merged="updated"), (), COMPLETE, id="status-of-update-merged-all-logs"),
    pytest.param(Life(stored_by="0000", merged="created"), (), COMPLETE, id="status-of-create-merged-all-logs"),
    pytest.param(Life(stored_by="0000", merged="created"), (AGENT,), COMPLETE, id="status-of-create-merged-no-agent"),
    # That the first server was late shows that another one had been faster; which one stored the status, no log shows.
    pytest.param(
        Life(stored_by="1000", late=0.12, merged="created"), (SECOND,), COMPLETE | {"create": "unknown"},
        id="status-of-create-stale-on-the-first-server",
    ),
    pytest.param(
        Life(stored_by="0000", is_export=True), (FIRST,), dict.fromkeys(COMPLETE, "unknown"),
        id="export-without-the-server-that-stored-all",
    ),
    pytest.param(
        Life(stored_by="1001", is_export=True), (FIRST,), COMPLETE | {"update": "unknown"},
        id="export-without-the-server-that-stored-the-update",
    ),
    pytest.param(Life(stored_by="0001", is_export=True), (AGENT,), COMPLETE, id="export-without-the-agent"),
]  # fmt: skip


@pytest.mark.parametrize(("life", "missing", "expected"), TABLE)
def test_what_a_missing_log_hides_supersedes_nothing(
    tmp_path: Path, life: Life, missing: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert verdicts(write(tmp_path / "logs", life, *missing)) == expected


@pytest.mark.parametrize("missing", [(), (SECOND,), (AGENT,), (SECOND, AGENT)], ids=["none", "second", "agent", "both"])
def test_life_is_complete_whichever_server_stored_its_statuses(tmp_path: Path, missing: tuple[str, ...]) -> None:
    lives = {"".join(servers): Life(stored_by="".join(servers)) for servers in product("01", repeat=4)}
    judged = {name: verdicts(write(tmp_path / name, life, *missing)) for name, life in lives.items()}
    assert judged == dict.fromkeys(lives, COMPLETE)


def test_broadcast_of_the_status_before_is_none_of_the_update(tmp_path: Path) -> None:
    folder = write(tmp_path / "logs", Life(stored_by="1000"), SECOND)
    create, update, _ = tracing.request(folder, ID)
    for trace, status in ((create, "created"), (update, "updated")):
        broadcast = [record.event for record in trace.stages[7].records]
        assert broadcast == [f"status-{status}"]
        assert trace.stages[7].first == pytest.approx(BASE + SENT[status] + 0.013, abs=0.001)


@pytest.mark.parametrize("missing", [(), (SECOND,), (FIRST,)], ids=["none", "second", "first"])
def test_update_that_no_agent_received_before_the_delete_is_superseded(
    tmp_path: Path, missing: tuple[str, ...]
) -> None:
    judged = verdicts(write(tmp_path / "logs", Life(stored_by="1010", is_overtaken=True), *missing))
    assert judged.get("update") == ("superseded" if FIRST not in missing else None)
