# ruff: noqa: E501 - log lines are as long as they are
"""Incidents made from recorded ones, each with its truth; the truths were written before the tracer saw them.

Five truths were wrong and were changed after a run: two asked for a note on clocks, but the reader corrects a time
zone by the times inside events; one named a work whose name is only in the lines that were removed; one used a recording
that ends before the deletion did; one forbade to name the stage that a pending request waits for.

`b` is a Go server and agent behind MQTT at -v=4, with healthy works (h0 to h2, after0 to after5), one denied by a policy
(evil), one whose update is invalid (immutable) and one whose deletion waited for a finalizer (held). `cb4` is the same
behind the gRPC broker, with ok, tea (its CRD is missing), nobody (no agent), gone and down (the agent was away).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.peers.incidents.truth import COMPLETE, FAILED, STOPPED, Truth
from tests.trace_mutations import (
    AGENT,
    SERVER,
    Logs,
    added,
    at_verbosity_2,
    between,
    csv,
    for_consumer,
    klog,
    later,
    merged,
    only,
    read,
    shifted,
    time_of,
    two_servers,
    without,
)

APPLY_ERRORS = (
    "MT-403",
    "MT-404",
    "MT-405",
    "MT-406",
    "MT-407",
    "MT-408",
    "MT-409",
    "MT-410",
    "MT-412",
    "MT-413",
    "MT-417",
    "MT-499",
)
REJECTED_BY_API = tuple(code for code in APPLY_ERRORS if code not in ("MT-412", "MT-417"))
SERVER_ERRORS = ("MT-101", "MT-201", "MT-203", "MT-204", "MT-209", "MT-210", "MT-301", "MT-302", "MT-306")
NOT_FAILED = ("complete", "unknown")


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A situation made from recorded logs."""

    name: str
    made: Callable[[Path], Logs]
    truths: tuple[Truth, ...]
    notes: tuple[str, ...] = ()
    """Codes or words that the findings about the logs must have."""
    count: int | None = None
    """How many requests there are; None where it does not matter."""


def healthy(work: str, action: str = "create", verdicts: tuple[str, ...] = COMPLETE, nth: int = 0) -> Truth:
    return Truth(work=work, action=action, verdicts=verdicts, never=(*APPLY_ERRORS, *SERVER_ERRORS), nth=nth)


EVIL = Truth(work="evil", verdicts=FAILED, stage=4, codes=("MT-407",), says=("no-evil",), never=("MT-403",))
FROZEN = Truth(work="immutable", action="update", verdicts=FAILED, stage=4, codes=("MT-404",))
HEALTHY = (healthy("h0"), healthy("h2"), healthy("after5"))
TEA = Truth(work="tea", verdicts=FAILED, stage=4, codes=("MT-405",))


def b(folder: Path, moment: str = "rejected") -> Logs:
    return read(folder / "b" / f"snap-{moment}")


def cb4(folder: Path, moment: str = "back") -> Logs:
    return read(folder / "cb4" / f"snap-{moment}")


def two_clusters(folder: Path) -> Logs:
    logs = b(folder)
    of_works = only(logs[SERVER], '"') and [
        line for line in logs[SERVER] if "resourceID" in line or "resourceid" in line
    ]
    other = for_consumer(of_works, "c2")
    return {
        SERVER: merged(logs[SERVER], other),
        AGENT: logs[AGENT],
        "maestro-agent-1.log": for_consumer(logs[AGENT], "c2"),
    }


def error_of_other_cluster(folder: Path) -> Logs:
    """On the second cluster h1 is denied, and only the recorder's line, which names no work, says so."""
    logs = two_clusters(folder)
    agent = "maestro-agent-1.log"
    at = time_of(logs[agent], "Created ConfigMap/h1")
    lines = without(logs[agent], "Created ConfigMap/h1")
    error = '"WARNING: Failed to create ConfigMap/h1 -n default: configmaps \\"h1\\" is forbidden: User \\"agent\\" cannot create resource \\"configmaps\\"" component="manifestwork-controller" reason="ConfigMapCreateFailed"'
    logs[agent] = added(lines, klog(at, "logging_recorder.go:49", error))
    # At -v=2 the statuses do not show what became of it.
    return {name: at_verbosity_2(lines) if name != SERVER else with_manifests(lines) for name, lines in logs.items()}


def with_manifests(lines: list[str]) -> list[str]:
    return [
        line if "receive the event from client" in line else at_verbosity_2([line])[0]
        for line in lines
        if at_verbosity_2([line])
    ]


def restarted(folder: Path) -> Logs:
    logs = b(folder, "agentrestarted")
    split = next(at for at, line in enumerate(logs[AGENT]) if " 32685 " in line)
    return {SERVER: logs[SERVER], "maestro-agent-0.previous.log": logs[AGENT][:split], AGENT: logs[AGENT][split:]}


def clock_set(folder: Path, name: str, seconds: float) -> Logs:
    """The clock of one process is set while after1 is on its way."""
    logs = b(folder)
    at = "05:57:57.000000"
    logs[name] = [*between(logs[name], until=at), *shifted(between(logs[name], since=at), seconds)]
    return logs


def redelivered(folder: Path) -> Logs:
    logs = b(folder)
    again = [line for line in logs[AGENT] if '"Received event"' in line and "create_request" in line]
    statuses = [line for line in logs[SERVER] if '"Received event"' in line and "status.update_request" in line]
    logs[AGENT] = merged(logs[AGENT], shifted(again, 0.4), shifted(again, 7))
    logs[SERVER] = merged(logs[SERVER], shifted(statuses, 0.3))
    return logs


def deleted_at_once(folder: Path) -> Logs:
    """The delete of held comes before its create was published."""
    logs = b(folder)
    id_of = re.search(
        r'resourceid\\*":\\*"([0-9a-f-]{36})', only(logs[SERVER], "receive the event from client", '"held\\\\\\"')[0]
    )
    assert id_of
    resource = id_of.group(1)
    arrival = time_of(logs[SERVER], "receive the event from client", resource)
    deletion = time_of(logs[SERVER], "receive the event from client", resource, "delete_request")
    for name, lines in logs.items():
        logs[name] = [line for line in lines if resource not in line or line[6:21] >= deletion or line[6:21] <= arrival]
    request = only(logs[SERVER], "receive the event from client", resource, "delete_request")[0]
    moved = f"{request[:6]}{later(arrival, 0.002)}{request[21:]}"
    skipped = klog(
        later(arrival, 0.004),
        "source_client.go:80",
        f'"skipping create for resource that is marked as deleting; the delete event will propagate the delete" logger="maestro-server.maestro-controllers" event="f2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7" resourceID="{resource}"',
    )
    logs[SERVER] = added([line for line in logs[SERVER] if line is not request], moved, skipped)
    return logs


def resync_storm(folder: Path) -> Logs:
    """The agent loses its connection ten times; each time it gets every work again and reports every status again."""
    logs = b(folder)
    specs = [
        line for line in logs[AGENT] if '"Received event"' in line and ".spec." in line and "delete_request" not in line
    ]
    # A resync sends the newest version of each work.
    newest = {match.group(): line for line in specs if (match := re.search(r'"resourceid":"[0-9a-f-]{36}"', line))}
    received = [re.sub(r"(create|update)_request", "resync_response", line) for line in newest.values()]
    sent = [line for line in logs[AGENT] if '"Sending event"' in line and "status.update_request" in line]
    lost = klog(
        "05:58:05.100000", "baseclient.go:130",
        '"the cloudevents client is disconnected" err="EOF" logger="UnhandledError"', "E",
    )  # fmt: skip
    back = klog(
        "05:58:05.500000", "transport.go:157",
        '"subscribed to mqtt broker" topic="sources/maestro/consumers/c1/sourceevents" QoS=1',
    )  # fmt: skip
    for number in range(10):
        at = later("05:58:06.000000", number * 2)
        storm = [f"{line[:6]}{later(at, index / 1000)}{line[21:]}" for index, line in enumerate(received)]
        again = [f"{line[:6]}{later(at, 0.1 + index / 1000)}{line[21:]}" for index, line in enumerate(sent)]
        taken = [
            line.replace('"Sending event"', '"Received event" logger="maestro-server"').replace(":183]", ":303]")
            for line in again
        ]
        logs[AGENT] = added(logs[AGENT], *shifted([lost, back], number * 2), *storm, *again)
        logs[SERVER] = added(logs[SERVER], *shifted(taken, 0.01))
    return logs


def rotated(folder: Path) -> Logs:
    """The server's log begins in the middle of a record, after h2 and before evil."""
    logs = b(folder)
    kept = between(logs[SERVER], since="05:57:40")
    return {SERVER: ['0fa2b3\\",\\"resourceversion\\":\\"1\\"}"', *kept], AGENT: logs[AGENT]}


def cut_within_a_line(folder: Path) -> Logs:
    """Both files end in the middle of a record, just after the agent received after5."""
    logs = b(folder)
    end = later(time_of(logs[AGENT], "Created ConfigMap/after5"), -0.002)
    logs = {name: between(lines, until=end) for name, lines in logs.items()}
    logs[SERVER][-1] = logs[SERVER][-1][:60]
    logs[AGENT][-1] = logs[AGENT][-1][:45]
    return logs


def transient(folder: Path) -> Logs:
    """h1 gets a time-out of etcd before it is applied; evil fails with other errors all the time."""
    logs = b(folder)
    (key,) = set(
        re.findall(r"ADDED for ([0-9a-f-]{36})", "\n".join(between(logs[AGENT], since="05:56:52.5", until="05:56:53")))
    )
    at = later(time_of(logs[AGENT], "Created ConfigMap/h1"), -0.004)
    error = klog(
        at,
        "base_controller.go:161",
        f'"controller failed to sync" err="etcdserver: request timed out" key="{key}"',
        "E",
    )
    return {SERVER: at_verbosity_2(logs[SERVER]), AGENT: added(at_verbosity_2(logs[AGENT]), error)}


def killed_server(folder: Path) -> Logs:
    """The server is killed after it received after5; the agent's log goes on for eight seconds."""
    logs = b(folder)
    arrival = only(logs[SERVER], "receive the event from client", "after5")[0]
    at = arrival[6:21]
    gone = [line for line in logs[AGENT] if line[6:21] < at]
    errors = [line for line in logs[AGENT] if "Unhandled Error" in line][:4]
    alive = [f"{line[:6]}{later(at, 2.0 * number)}{line[21:]}" for number, line in enumerate(errors, start=1)]
    return {SERVER: [*between(logs[SERVER], until=at), arrival], AGENT: [*gone, *alive]}


def redacted(folder: Path) -> Logs:
    """The servers hide the messages about a Secret, and the agent's log is missing."""
    lines = b(folder)[SERVER]
    hidden = [
        re.sub(r"Failed to apply manifest: [^,]*?(?=\\\",|\\\"})", "[redacted]", line) if "no-evil" in line else line
        for line in lines
    ]
    assert not only(hidden, "no-evil")
    return {
        SERVER: [
            line.replace("ConfigMap", "Secret").replace("configmaps", "secrets") if "[redacted]" in line else line
            for line in hidden
        ]
    }


def client_left(folder: Path) -> Logs:
    """The client unsubscribes before the status of after5 comes."""
    logs = b(folder)
    resource = re.findall(r"ADDED for ([0-9a-f-]{36})", "\n".join(logs[AGENT]))[-1]
    at = time_of(logs[SERVER], "Broadcast", resource)
    lines = [line for line in logs[SERVER] if "send the event to status subscribers" not in line or line[6:21] < at]
    left = klog(
        later(at, -0.02),
        "event.go:73",
        '"unregistered broadcaster client" id="88633996-a4f6-4fe6-9516-6fe0cc504618" source="mw-client"',
    )
    alone = [
        klog(
            later(line[6:21], 0.0001), "event.go:94", '"no clients registered on this instance" logger="maestro-server"'
        )
        for line in only(logs[SERVER], "Broadcast")
        if line[6:21] >= at
    ]
    return {SERVER: added(lines, left, *alone), AGENT: logs[AGENT]}


def second_create(folder: Path) -> Logs:
    """A client that did not hear the answer sends the create of h0 again; the server rejects it without a word."""
    logs = b(folder)
    request = only(logs[SERVER], "receive the event from client", "h0")[0]
    again = f"{request[:6]}{later(request[6:21], 20)}{request[21:]}".replace("9f11f454-df44", "9f11f454-dead")
    logs[SERVER] = added(logs[SERVER], again)
    return logs


def rejected_by_neighbour(folder: Path) -> Logs:
    """An error about an object of no known work is logged while after5 waits for the agent, which then is killed."""
    logs = b(folder)
    created = time_of(logs[AGENT], "Created ConfigMap/after5")
    error = klog(
        later(created, -0.001),
        "logging_recorder.go:49",
        '"WARNING: Failed to update Secret/elsewhere -n kube-system: secrets \\"elsewhere\\" is forbidden: User \\"agent\\" cannot update resource \\"secrets\\"" component="manifestwork-controller" reason="SecretUpdateFailed"',
    )
    agent = [*between(logs[AGENT], until=created), error]
    until = later(created, 40)
    idle = [
        klog(
            later(created, seconds),
            "status_controller.go:172",
            '"purge status events on the ready instances" logger="maestro-server.maestro-controllers" readyInstanceIDs=["maestro-0"]',
        )
        for seconds in range(1, 40, 3)
    ]
    resource = re.findall(r"ADDED for ([0-9a-f-]{36})", "\n".join(logs[AGENT]))[-1]
    server = [line for line in between(logs[SERVER], until=until) if resource not in line or line[6:21] < created]
    return {SERVER: added(server, *idle), AGENT: agent}


def exported(folder: Path) -> Logs:
    """The runbook's export: only rows that name the resources."""
    return csv(b(folder), keep=lambda line: bool(re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-5", line)))


FIRST = (
    Mutation(name="two clusters with works of the same names", made=two_clusters,
             truths=(*HEALTHY, EVIL, FROZEN, healthy("h0", nth=1), Truth(work="evil", nth=1, verdicts=FAILED, stage=4, codes=("MT-407",))),
             count=28),
    Mutation(name="error on the other cluster, without a work", made=error_of_other_cluster,
             truths=(healthy("h1"), healthy("h0", nth=1), Truth(work="h1", nth=1, verdicts=FAILED, stage=4, codes=("MT-403",)))),
    Mutation(name="two servers", made=lambda folder: {**two_servers(b(folder)[SERVER]), AGENT: b(folder)[AGENT]},
             truths=(*HEALTHY, EVIL, FROZEN, healthy("held", "delete"))),
    Mutation(name="two servers, the log of the status owner missing", made=lambda folder: {SERVER: two_servers(b(folder)[SERVER])["maestro-0.log"], AGENT: b(folder)[AGENT]},
             truths=(*HEALTHY, EVIL, FROZEN), notes=("maestro-1",)),
    Mutation(name="two servers, the log of the receiving one missing", made=lambda folder: {"maestro-1.log": two_servers(b(folder)[SERVER])["maestro-1.log"], AGENT: b(folder)[AGENT]},
             truths=(healthy("", verdicts=NOT_FAILED), Truth(work="", nth=4, verdicts=FAILED, stage=4, codes=("MT-407",))), notes=("maestro-0",)),
    Mutation(name="agent restarted, two files", made=restarted,
             truths=(*HEALTHY, EVIL, healthy("agentkilled"))),
    Mutation(name="only the previous log of the restarted agent", made=lambda folder: {name: lines for name, lines in restarted(folder).items() if name != AGENT},
             truths=(*HEALTHY, EVIL, healthy("agentkilled"))),
    Mutation(name="agent's clock set back an hour", made=lambda folder: clock_set(folder, AGENT, -3600.0),
             truths=(*HEALTHY, healthy("after1"), EVIL, FROZEN, healthy("held", "delete")), notes=("maestro-agent-0 was set back by 3600",), count=14),
    Mutation(name="agent's clock set back by seconds", made=lambda folder: clock_set(folder, AGENT, -20.0),
             truths=(*HEALTHY, healthy("after1"), EVIL, FROZEN, healthy("held", "delete")), notes=("maestro-agent-0 was set back by 20",), count=14),
    Mutation(name="agent's clock set forward", made=lambda folder: clock_set(folder, AGENT, 2700.0),
             truths=(*HEALTHY, healthy("after1"), EVIL, FROZEN, healthy("held", "delete")), notes=("maestro-agent-0 was set forward by 2700",), count=14),
    Mutation(name="server's clock set forward", made=lambda folder: clock_set(folder, SERVER, 3600.0),
             truths=(*HEALTHY, healthy("after1"), EVIL, FROZEN, healthy("held", "delete")), notes=("maestro-agent-0 was set back by 3600",), count=14),
    Mutation(name="messages delivered three times", made=redelivered, truths=(*HEALTHY, EVIL, FROZEN), count=14),
    Mutation(name="deleted before it was published", made=deleted_at_once,
             truths=(Truth(work="held", verdicts=("superseded",), never=APPLY_ERRORS), healthy("held", "delete"))),
    Mutation(name="resync storm", made=resync_storm, truths=(*HEALTHY, EVIL, FROZEN), count=14),
    Mutation(name="server's log rotated away", made=rotated,
             truths=(healthy("", verdicts=NOT_FAILED), healthy("after5"), EVIL)),
    Mutation(name="both files end within a record", made=cut_within_a_line,
             truths=(Truth(work="after5", verdicts=("pending", "unknown"), never=(*REJECTED_BY_API, "MT-210", "MT-417")), healthy("after4"), EVIL)),
    Mutation(name="agent in India", made=lambda folder: {SERVER: b(folder)[SERVER], AGENT: shifted(b(folder)[AGENT], 5.5 * 3600)},
             truths=(*HEALTHY, EVIL, FROZEN, healthy("held", "delete"))),
    Mutation(name="agent in California, gRPC broker", made=lambda folder: {SERVER: cb4(folder)[SERVER], AGENT: shifted(cb4(folder)[AGENT], -8 * 3600)},
             truths=(healthy("ok"), healthy("ok", "delete"), TEA, healthy("down"))),
    Mutation(name="servers at -v=2, no agent log", made=lambda folder: {SERVER: at_verbosity_2(b(folder)[SERVER])},
             truths=(healthy("h0", verdicts=NOT_FAILED), Truth(work="evil", verdicts=("unknown",)), Truth(work="immutable", action="update", verdicts=("unknown",)))),
    Mutation(name="everything at -v=2", made=lambda folder: {name: at_verbosity_2(lines) for name, lines in b(folder).items()},
             truths=(*HEALTHY, EVIL, FROZEN)),
    Mutation(name="export of the rows that name a resource", made=exported, truths=(*HEALTHY, EVIL, FROZEN)),
    Mutation(name="export in reverse order", made=lambda folder: csv(b(folder), reverse=True), truths=(*HEALTHY, EVIL, FROZEN, healthy("held", "delete")), count=14),
    Mutation(name="export in reverse order, gRPC broker", made=lambda folder: csv(cb4(folder), reverse=True), truths=(healthy("ok"), healthy("ok", "update"), healthy("ok", "delete"), TEA, healthy("down"))),
    Mutation(name="transient error, then success", made=transient, truths=(healthy("h1"), EVIL)),
    Mutation(name="server killed behind MQTT", made=killed_server,
             truths=(Truth(work="after5", verdicts=STOPPED, stage=2, codes=("MT-210",), says=("maestro-0",), never=("MT-201",)), healthy("after4"))),
    Mutation(name="error about a Secret is redacted", made=redacted,
             truths=(Truth(work="evil", verdicts=FAILED, stage=4, says=("Secret",), never=("MT-403",)), healthy("h0"))),
    Mutation(name="client left", made=client_left, truths=(Truth(work="after5", verdicts=("complete", "incomplete"), codes=("MT-901",), says=("mw-client",), never=("MT-902", "MT-905", *APPLY_ERRORS)), healthy("after4"))),
    Mutation(name="create sent twice", made=second_create,
             truths=(healthy("h0"), Truth(work="h0", nth=1, verdicts=("failed", "incomplete"), stage=2, codes=("MT-201", "MT-209")))),
    Mutation(name="error of another object near a killed agent", made=rejected_by_neighbour,
             truths=(Truth(work="after5", verdicts=STOPPED, stage=4, codes=("MT-417", "MT-412"), never=("MT-403",)), healthy("after4"))),
)  # fmt: skip


def resource_of(logs: Logs, work: str) -> str:
    """Return the resource ID of a work by the arrival of its create."""
    arrival = only(logs[SERVER], "receive the event from client", f'\\\\\\"{work}\\\\\\"')[0]
    match = re.search(r'resourceid\\*":\\*"([0-9a-f-]{36})', arrival)
    assert match
    return match.group(1)


def without_later(logs: Logs, resource: str, since: str) -> Logs:
    """Return the logs without the records of a resource from a time on."""
    return {
        name: [line for line in lines if resource not in line or line[6:21] < since] for name, lines in logs.items()
    }


def idle(name: str, since: str, seconds: int) -> list[str]:
    """Return lines of a component that goes on."""
    body = f'"purge status events on the ready instances" logger="{name}" readyInstanceIDs=["maestro-0"]'
    return [klog(later(since, number), "status_controller.go:172", body) for number in range(1, seconds, 3)]


def wrong_topic(folder: Path) -> Logs:
    """The agent has another consumer name: it subscribes to another topic and receives nothing."""
    logs = b(folder, "finalizer")
    published = time_of(logs[SERVER], "Sending event", resource_of(logs, "h0"))
    server = [*between(logs[SERVER], until=later(published, 0.0005)), *idle("maestro-server", published, 60)]
    agent = between(logs[AGENT], until=published)
    alive = [line for line in agent if "Unhandled Error" in line][:3]
    alive = [f"{line[:6]}{later(published, 15.0 * number)}{line[21:]}" for number, line in enumerate(alive, start=1)]
    return {SERVER: server, AGENT: for_consumer([*agent, *alive], "c9")}


def doubled(folder: Path) -> Logs:
    """Two exports whose windows overlap were put into one file: every row is there twice."""
    (rows,) = csv(b(folder)).values()
    return {"export.csv": [rows[0], *(row for row in rows[1:] for _ in range(2))]}


def overlapping(folder: Path) -> Logs:
    """The logs were collected twice: the second collection begins before the end of the first."""
    logs = b(folder)
    first = {f"first-{name}": between(lines, until="05:57:56") for name, lines in logs.items()}
    return {**{name.removeprefix("first-").replace(".log", ".1.log"): lines for name, lines in first.items()},
            **{name: between(lines, since="05:57:50") for name, lines in logs.items()}}  # fmt: skip


def quiet_agent(folder: Path) -> Logs:
    """The agent runs at -v=0: it writes what it applies and its errors, and nothing about events."""
    logs = b(folder)
    lines = at_verbosity_2(logs[AGENT])
    return {
        SERVER: logs[SERVER],
        AGENT: [line for line in lines if "baseclient.go" not in line and "transport.go" not in line],
    }


def recreated(folder: Path) -> Logs:
    """ok is created again a minute after it was deleted, with the same id."""
    logs = cb4(folder)
    resource = resource_of(logs, "ok")
    update = time_of(logs[SERVER], "receive the event from client", resource, "update_request")
    again: Logs = {}
    for name, lines in logs.items():
        own = [line for line in lines if resource in line and line[6:21] < update]
        fresh = [
            re.sub(
                r'(sequenceid\\*":\\*")(\d+)',
                lambda match: match.group(1) + str(int(match.group(2)) + (90_000 << 22)),
                line,
            )
            for line in own
        ]
        fresh = [re.sub(r'((?:status_event|eventID|event)=")(\w{4})', r"\g<1>eeee", line) for line in fresh]
        again[name] = merged(lines, shifted(fresh, 90))
    return again


def slow_clock(folder: Path) -> Logs:
    logs = b(folder)
    return {SERVER: logs[SERVER], AGENT: shifted(logs[AGENT], -3.0)}


def server_restarted(folder: Path) -> Logs:
    """The server restarts between two works; the client registers again."""
    logs = b(folder)
    at = later(time_of(logs[SERVER], "receive the event from client", "after3"), -0.5)
    start = [line for line in between(logs[SERVER], until="05:56:45") if "writer.go" not in line]
    begin = start[0][6:21]
    start = [
        f"{line[:6]}{later(at, seconds(line[6:21]) - seconds(begin))}{line[21:]}"
        for line in start
        if line[6:21] < later(begin, 0.2)
    ]
    client = klog(
        later(at, 0.3),
        "event.go:55",
        '"registered a broadcaster client" id="99633996-a4f6-4fe6-9516-6fe0cc504618" source="mw-client"',
    )
    return {SERVER: added(logs[SERVER], *start, client), AGENT: logs[AGENT]}


def seconds(at: str) -> float:
    hours, minutes, rest = at.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def status_unnotified(folder: Path) -> Logs:
    """The database's notification about the status of after5 is lost, and the server re-creates its listener."""
    logs = b(folder)
    resource = resource_of(logs, "after5")
    sent = time_of(logs[SERVER], "resource status update event was sent", resource)
    lines = [
        line
        for line in logs[SERVER]
        if line[6:21] <= sent or not any(text in line for text in ("Broadcast", "status subscribers"))
    ]
    lost = klog(
        later(sent, -0.01),
        "default.go:154",
        '"recreate the listener for channel due to the connection loss" logger="maestro-server.maestro-controllers" channel="status_events"',
    )
    return {SERVER: added(lines, lost, *idle("maestro-server", sent, 50)), AGENT: logs[AGENT]}


def nobody_owns(folder: Path) -> Logs:
    """The hash ring changes: both servers leave the statuses of after5 to the other."""
    logs = b(folder)
    resource = resource_of(logs, "after5")
    servers = two_servers(logs[SERVER])
    handled = (
        "handle resource status update",
        "Updating resource status",
        "was sent",
        "First status",
        "Broadcast",
        "status subscribers",
    )
    skip = '"skipping resource status update as it is not owned by the current instance" logger="maestro-server" resourceID="{}"'
    made: Logs = {AGENT: logs[AGENT]}
    for name, lines in servers.items():
        kept = [
            line for line in lines if resource not in line or not any(text in line for text in (*handled, "not owned"))
        ]
        passed = [
            klog(later(line[6:21], 0.00001), "event_server.go:104", skip.format(resource))
            for line in only(kept, "received status update", resource)
        ]
        made[name] = added(kept, *passed, *idle("maestro-server", "05:58:03.000000", 50))
    return made


def too_large(folder: Path) -> Logs:
    """The broker does not take after5: it is larger than a packet may be."""
    logs = b(folder)
    resource = resource_of(logs, "after5")
    at = time_of(logs[SERVER], "Publishing resource", resource)
    error = f'"Failed to publish resource" err="unable to publish: packet too large (maximum packet size 524288)" logger="maestro-server.maestro-controllers" event="a2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7" resourceID="{resource}"'
    cut = without_later(logs, resource, later(at, 0.00001))
    return {
        SERVER: added(
            cut[SERVER], klog(later(at, 0.001), "source_client.go:99", error, "E"), *idle("maestro-server", at, 50)
        ),
        AGENT: without(cut[AGENT], "ConfigMap/after5"),
    }


def published_again(folder: Path) -> Logs:
    """The first attempt to publish h1 fails, because the client of the broker is not ready; the second one succeeds."""
    logs = b(folder)
    resource = resource_of(logs, "h1")
    at = time_of(logs[SERVER], "Publishing resource", resource)
    error = f'"Failed to publish resource" err="the cloudevents client is not ready" logger="maestro-server.maestro-controllers" event="a2a4c1de-8c26-4e3f-9a35-0b3ff1f5f6c7" resourceID="{resource}"'
    return {SERVER: added(logs[SERVER], klog(later(at, -0.002), "source_client.go:99", error, "E")), AGENT: logs[AGENT]}


def with_timestamps(folder: Path) -> Logs:
    """kubectl logs --timestamps: the time of the node before each line."""
    logs = b(folder)
    return {
        name: [
            f"2026-11-16T{line[6:21]}123Z {line}" if line[:1] in "IWE" and line[5:6] == " " else line for line in lines
        ]
        for name, lines in logs.items()
    }


SECOND = (
    Mutation(name="agent with another consumer name", made=wrong_topic,
             truths=(Truth(work="h0", verdicts=STOPPED, stage=3, codes=("MT-301", "MT-302"), says=("c9",), never=(*APPLY_ERRORS, "MT-201", "MT-210")),)),
    Mutation(name="export of two columns", made=lambda folder: csv(b(folder), columns=("pod_name", "log")), truths=(*HEALTHY, EVIL, FROZEN), count=14),
    Mutation(name="export without the agent", made=lambda folder: csv({SERVER: b(folder)[SERVER]}),
             truths=(*HEALTHY, EVIL, FROZEN)),
    Mutation(name="every row twice", made=doubled, truths=(*HEALTHY, EVIL, FROZEN, healthy("held", "delete")), count=14),
    Mutation(name="collected twice, overlapping", made=overlapping, truths=(*HEALTHY, EVIL, FROZEN), count=14),
    Mutation(name="servers at -v=2, agent at -v=4", made=lambda folder: {SERVER: at_verbosity_2(b(folder)[SERVER]), AGENT: b(folder)[AGENT]},
             truths=(*HEALTHY, EVIL, FROZEN)),
    Mutation(name="agent at -v=0", made=quiet_agent, truths=(*HEALTHY, EVIL, FROZEN), count=14),
    Mutation(name="gRPC broker, no agent log", made=lambda folder: {SERVER: cb4(folder)[SERVER]},
             truths=(healthy("ok"), healthy("ok", "delete"), Truth(work="tea", verdicts=FAILED, stage=4, codes=("MT-405",)),
                     Truth(work="nobody", verdicts=STOPPED, stage=3, codes=("MT-301",)))),
    Mutation(name="gRPC broker, only the agent's log", made=lambda folder: {AGENT: cb4(folder)[AGENT]},
             truths=(healthy("", verdicts=NOT_FAILED), Truth(work="", nth=1, verdicts=FAILED, stage=4, codes=("MT-405",)))),
    Mutation(name="gRPC broker at -v=2", made=lambda folder: {name: at_verbosity_2(lines) for name, lines in cb4(folder).items()},
             truths=(healthy("ok"), healthy("ok", "update"), healthy("ok", "delete"), TEA,
                     Truth(work="nobody", verdicts=(*STOPPED, "unknown"), never=APPLY_ERRORS))),
    Mutation(name="re-created with the same id", made=recreated,
             truths=(healthy("ok"), healthy("ok", "delete"), healthy("ok", nth=1), TEA)),
    Mutation(name="agent's clock three seconds behind", made=slow_clock, truths=(*HEALTHY, EVIL, FROZEN), notes=("MT-005", "behind"), count=14),
    Mutation(name="server restarted between works", made=server_restarted, truths=(*HEALTHY, EVIL, FROZEN, healthy("after2"), healthy("after3"))),
    Mutation(name="notification of a status lost", made=status_unnotified,
             truths=(Truth(work="after5", verdicts=STOPPED, stage=8, codes=("MT-801",), never=APPLY_ERRORS), healthy("after4"))),
    Mutation(name="no server owns the consumer", made=nobody_owns,
             truths=(Truth(work="after5", verdicts=STOPPED, stage=7, codes=("MT-701",), never=APPLY_ERRORS), healthy("after4"))),
    Mutation(name="too large for the broker", made=too_large,
             truths=(Truth(work="after5", verdicts=FAILED, stage=2, codes=("MT-303",), never=APPLY_ERRORS), healthy("after4"))),
    Mutation(name="published at the second attempt", made=published_again, truths=(healthy("h1"), healthy("h0"))),
    Mutation(name="kubectl logs --timestamps", made=with_timestamps, truths=(*HEALTHY, EVIL, FROZEN), count=14),
)  # fmt: skip
MUTATIONS = (*FIRST, *SECOND)
