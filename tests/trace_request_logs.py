# ruff: noqa: E501 - log lines are as long as they are
"""Logs with known results: requests as servers and agents of two generations log them, each stopped at a chosen stage.

G4 writes klog lines (three servers in broadcast mode, one agent, MQTT), G2 zap console lines on servers and printf klog
lines on the agent. `write` writes them into files; `LoggedRequest` has the expected result.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

SERVERS = ("maestro-556dfb55f-x8mtx", "maestro-556dfb55f-7kq2p", "maestro-556dfb55f-h5ttw")
AGENT = "maestro-agent-7d9f6c5b4-lq5xk"
TYPE = "io.open-cluster-management.works.v1alpha1.manifestbundles"
BASE = datetime(2026, 1, 15, 9, 0, 1, 123456, tzinfo=UTC).timestamp()
_DELAYS = {1: 0.0, 2: 0.041, 3: 0.078, 4: 0.19, 5: 0.238, 6: 0.271, 7: 0.281, 8: 0.288, 9: 0.289}
_ROWS = {"create": "insert", "update": "update", "delete": "delete"}


@dataclass(frozen=True, kw_only=True)
class LoggedRequest:
    """One request and the stage at which it ends."""

    work: str
    action: str = "create"
    version: int = 1
    at: float = BASE
    until: int = 9
    without: frozenset[int] = frozenset()
    """Stages whose lines are lost, although they happened."""
    op_id: str = ""
    agent_clock: float = 0.0

    @property
    def resource(self) -> str:
        name = f"mw-client-example-manifestworks.work.open-cluster-management.io-mgmt-1-{self.work}"
        return str(uuid.uuid5(uuid.NAMESPACE_OID, name))

    @property
    def operation(self) -> str:
        return self.op_id or f"op-{self.work}-{self.action}-{self.version}"

    @property
    def sequence(self) -> int:
        return (int((self.at + _DELAYS[5] + self.agent_clock) * 1000) - 1288834974657) << 22 | 1 << 12

    def event(self, kind: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{kind}-{self.work}-{self.action}-{self.version}-{self.at}"))

    def shows(self, stage: int) -> bool:
        return stage <= self.until and stage not in self.without


def klog(at: float, place: str, body: str, level: str = "I") -> str:
    moment = datetime.fromtimestamp(at, tz=UTC)
    return f"{level}{moment:%m%d %H:%M:%S}.{moment.microsecond:06d}       1 {place}] {body}"


def zap(at: float, place: str, body: str, level: str = "INFO") -> str:
    moment = datetime.fromtimestamp(at, tz=UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z\t{level}\t{place}\t{body}"


def extensions(logged: LoggedRequest, *, version: int, status: bool = False, name: str | None = None) -> str:
    leaving = ',\\"deletionTimestamp\\":\\"2026-01-15T09:10:07Z\\"' if logged.action == "delete" else ""
    metadata = f'{{\\"name\\":\\"{name or logged.resource}\\",\\"namespace\\":\\"mgmt-1\\",\\"uid\\":\\"{logged.resource}\\"{leaving}}}'
    tracing = f'{{\\"logging.open-cluster-management.io/op-id\\":\\"{logged.operation}\\"}}'
    tail = f',"sequenceid":"{logged.sequence}","statushash":"{"0" * 64}"' if status else ""
    return (
        f'{{"clustername":"mgmt-1","logtracing":"{tracing}","metadata":"{metadata}",'
        f'"originalsource":"{"maestro" if status else ""}","resourceid":"{logged.resource}","resourceversion":{version}{tail}}}'
    )


def lines_g4(logged: LoggedRequest) -> Iterator[tuple[str, float, str]]:
    """Yield (pod, time, line) of one request as today's components write it."""
    at = {stage: logged.at + delay for stage, delay in _DELAYS.items()}
    r, op_id, database = logged.resource, logged.operation, logged.event("db")
    controllers = 'logger="maestro-server.maestro-controllers"'
    status = (
        f'eventType="{TYPE}.status.update_request" extensions={extensions(logged, version=logged.version, status=True)}'
    )
    spec = f'eventType="{TYPE}.spec.{logged.action}_request" extensions={extensions(logged, version=logged.version)}'
    receiver, publisher, owner = (SERVERS[(int(logged.at * 1000) + shift) % 3] for shift in range(3))
    agent = at[3] + logged.agent_clock, at[4] + logged.agent_clock, at[5] + logged.agent_clock
    if logged.shows(1):
        asked = extensions(logged, version=0, name=logged.work)
        yield receiver, at[1], klog(at[1], "grpc_server.go:205", f'"receive the event from client" op-id="{op_id}" eventID="{logged.event("ce")}" eventType="{TYPE}.spec.{logged.action}_request" eventSource="mw-client-example" extensions={asked}')  # fmt: skip
    if logged.shows(2):
        yield (
            publisher,
            at[2],
            klog(
                at[2],
                "source_client.go:92",
                f'"Publishing resource for db row {_ROWS[logged.action]}" {controllers} event="{database}" resourceID="{r}"',
            ),
        )
        yield (
            publisher,
            at[2],
            klog(
                at[2] + 0.001,
                "baseclient.go:183",
                f'"Sending event" {controllers} event="{database}" resourceID="{r}" op-id="{op_id}" {spec}',
            ),
        )
    if logged.shows(3):
        yield AGENT, agent[0], klog(agent[0], "baseclient.go:303", f'"Received event" op-id="{op_id}" {spec}')
    if logged.shows(4):
        if logged.action == "delete":
            yield (
                AGENT,
                agent[1],
                klog(
                    agent[1],
                    "helpers.go:268",
                    f'"Deleted resource" logger="AppliedManifestWorkFinalizer" appliedManifestWorkName="{"f" * 64}-{r}" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="cm" reason="manifestwork {r} is terminating"',
                ),
            )
            yield (
                AGENT,
                agent[1] + 0.02,
                klog(
                    agent[1] + 0.02,
                    "helpers.go:201",
                    f'"Resource is removed successfully" logger="AppliedManifestWorkFinalizer" appliedManifestWorkName="{"f" * 64}-{r}" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="cm"',
                ),
            )
        else:
            yield (
                AGENT,
                agent[1],
                klog(
                    agent[1],
                    "server_side_apply.go:139",
                    f'"Server side applied" logger="ManifestWorkController" manifestWorkName="{r}" op-id="{op_id}" gvr="/v1, Resource=configmaps" resourceNamespace="default" resourceName="cm" fieldManager="maestro-agent"',
                ),
            )
    if logged.shows(5):
        yield (
            AGENT,
            agent[2],
            klog(
                agent[2],
                "baseclient.go:183",
                f'"Sending event" logger="ManifestWorkController" manifestWorkName="{r}" op-id="{op_id}" {status}',
            ),
        )
    if logged.shows(6):
        for pod in SERVERS:
            yield (
                pod,
                at[6],
                klog(at[6], "baseclient.go:303", f'"Received event" logger="maestro-server" op-id="{op_id}" {status}'),
            )
            yield (
                pod,
                at[6],
                klog(
                    at[6],
                    "event_server.go:99",
                    f'"received status update for resource" logger="maestro-server" op-id="{op_id}" resourceID="{r}"',
                ),
            )
            if pod != owner:
                yield (
                    pod,
                    at[6],
                    klog(
                        at[6],
                        "event_server.go:104",
                        f'"skipping resource status update as it is not owned by the current instance" logger="maestro-server" op-id="{op_id}" resourceID="{r}"',
                    ),
                )
    if logged.shows(7):
        yield (
            owner,
            at[7],
            klog(
                at[7],
                "event_server.go:163",
                f'"handle resource status update by the current instance" logger="maestro-server" op-id="{op_id}" resourceID="{r}"',
            ),
        )
        if logged.action == "delete":
            yield (
                owner,
                at[7],
                klog(
                    at[7],
                    "event_server.go:251",
                    f'"resource status delete event was sent" logger="maestro-server" op-id="{op_id}" resourceID="{r}"',
                ),
            )
        else:
            yield (
                owner,
                at[7],
                klog(
                    at[7],
                    "resource.go:205",
                    f'"Updating resource status" logger="maestro-server" op-id="{op_id}" resourceID="{r}" eventID="{logged.event("st")}" {status}',
                ),
            )
            yield (
                owner,
                at[7],
                klog(
                    at[7],
                    "event_server.go:269",
                    f'"resource status update event was sent" logger="maestro-server" op-id="{op_id}" resourceID="{r}"',
                ),
            )
    kind = "StatusDelete" if logged.action == "delete" else "StatusUpdate"
    for pod in SERVERS:
        if logged.shows(8):
            yield (
                pod,
                at[8],
                klog(
                    at[8],
                    "event_server.go:315",
                    f'"Broadcast the resource status" {controllers} status_event="{logged.event("se")}" resourceID="{r}" instanceID="{pod}" eventID="{logged.event("se")}" source="mw-client-example" statusEventType="{kind}"',
                ),
            )
            if logged.shows(9) and pod != receiver:
                yield (
                    pod,
                    at[8],
                    klog(at[8], "event.go:94", '"no clients registered on this instance" logger="maestro-server"'),
                )
        if logged.shows(9) and pod == receiver:
            yield (
                pod,
                at[9],
                klog(
                    at[9],
                    "grpc_server.go:333",
                    f'"send the event to status subscribers" op-id="{op_id}" eventID="{logged.event("st")}" eventSource="mgmt-1-work-agent" {status}',
                ),
            )


def block(logged: LoggedRequest, kind: str, *, version: int, status: bool = False) -> str:
    leaving = ',"deletionTimestamp":"2025-09-17T21:45:30Z"' if logged.action == "delete" else ""
    tail = f"\n  sequenceid: {logged.sequence}\n  statushash: {'0' * 64}" if status else ""
    return (
        f"Context Attributes,\n  specversion: 1.0\n  type: {TYPE}.{kind}\n  source: {'mgmt-1-work-agent' if status else 'mw-client-example'}\n"
        f"  id: {logged.event(kind)}\n  time: {datetime.fromtimestamp(logged.at, tz=UTC):%Y-%m-%dT%H:%M:%S.%fZ}\n  datacontenttype: application/json\n"
        f"Extensions,\n  clustername: mgmt-1\n"
        f'  metadata: {{"name":"{logged.work}","namespace":"mgmt-1","uid":"{logged.resource}","creationTimestamp":null{leaving}}}\n'
        f"  originalsource: \n  resourceid: {logged.resource}\n  resourceversion: {version}{tail}"
    )


def lines_g2(logged: LoggedRequest) -> Iterator[tuple[str, float, str]]:
    """Yield (pod, time, record) of one request as components of 2025 wrote it."""
    at = {stage: logged.at + delay for stage, delay in _DELAYS.items()}
    r = logged.resource
    receiver, publisher, owner = (SERVERS[(int(logged.at * 1000) + shift) % 3] for shift in range(3))
    word = {"create": "ADDED", "update": "MODIFIED", "delete": "MODIFIED"}[logged.action]
    if logged.shows(1):
        yield (
            receiver,
            at[1],
            zap(
                at[1],
                "server/grpc_server.go:184",
                f"receive the event from client, {block(logged, f'spec.{logged.action}_request', version=0)}\n",
            ),
        )
    if logged.shows(2):
        yield (
            publisher,
            at[2],
            zap(at[2], "cloudevents/source_client.go:75", f"Publishing resource {r} for db row {_ROWS[logged.action]}"),
        )
        yield (
            publisher,
            at[2],
            klog(
                at[2] + 0.001,
                "baseclient.go:132",
                f"Sending event: context.Background.WithCancel\n{block(logged, f'spec.{logged.action}_request', version=logged.version)}",
            ),
        )
    if logged.shows(3):
        yield (
            AGENT,
            at[3],
            klog(
                at[3],
                "baseclient.go:162",
                f"Received event: {block(logged, f'spec.{logged.action}_request', version=logged.version)}",
            ),
        )
        yield AGENT, at[3], klog(at[3] + 0.001, "watcher.go:65", f"Receive the event {word} for {logged.work}")
    if logged.shows(4):
        reference = 'Event(v1.ObjectReference{Kind:"Deployment", Namespace:"maestro", Name:"maestro-agent", UID:"6f1c", APIVersion:"apps/v1", ResourceVersion:"", FieldPath:""})'
        if logged.action == "delete":
            yield (
                AGENT,
                at[4],
                klog(
                    at[4],
                    "event.go:377",
                    f"{reference}: type: 'Normal' reason: 'ResourceDeleted' Deleted resource /v1, Resource=configmaps with key default/{logged.work}-cm because manifestwork {logged.work} is terminating.",
                ),
            )
            yield (
                AGENT,
                at[4] + 0.02,
                klog(
                    at[4] + 0.02,
                    "helpers.go:193",
                    f"Resource /v1, Resource=configmaps with key default/{logged.work}-cm is removed Successfully",
                ),
            )
        else:
            yield (
                AGENT,
                at[4],
                klog(
                    at[4],
                    "event.go:377",
                    f"{reference}: type: 'Normal' reason: 'Server Side Applied ConfigMap default/{logged.work}-cm' Patched with field manager maestro-agent, err <nil>",
                ),
            )
    if logged.shows(5):
        yield (
            AGENT,
            at[5],
            klog(
                at[5],
                "baseclient.go:132",
                f"Sending event: context.Background.WithCancel\n{block(logged, 'status.update_request', version=logged.version, status=True)}",
            ),
        )
    if logged.shows(6):
        for pod in SERVERS:
            yield (
                pod,
                at[6],
                zap(at[6], "server/event_server.go:93", f"received action STATUSMODIFIED for resource {r}"),
            )
            if pod != owner:
                yield (
                    pod,
                    at[6],
                    zap(
                        at[6],
                        "server/event_server.go:99",
                        f"skipping resource status update {r} as it is not owned by the current instance",
                    ),
                )
    if logged.shows(7):
        yield (
            owner,
            at[7],
            zap(at[7], "server/event_server.go:160", f"handle resource status update {r} by the current instance"),
        )
        if logged.action == "delete":
            yield owner, at[7], zap(at[7], "server/event_server.go:225", f"resource {r} status delete event was sent")
        else:
            yield owner, at[7], zap(at[7], "services/resource.go:199", f"Updating resource status, id={r}")
            yield owner, at[7], zap(at[7], "server/event_server.go:243", f"resource {r} status update event was sent")
    kind = "StatusDelete" if logged.action == "delete" else "StatusUpdate"
    for pod in SERVERS:
        if logged.shows(8):
            yield (
                pod,
                at[8],
                zap(
                    at[8],
                    "server/event_server.go:287",
                    f"Broadcast the resource status, id={r}, source=mw-client-example, statusEventType={kind}",
                ),
            )
            if logged.shows(9) and pod != receiver:
                yield pod, at[8], zap(at[8], "event/event.go:92", "no clients registered on this instance", "WARN")
        if logged.shows(9) and pod == receiver:
            yield (
                pod,
                at[9],
                zap(
                    at[9],
                    "server/grpc_server.go:299",
                    f"send the event to status subscribers, {block(logged, 'status.update_request', version=logged.version, status=True)}\n",
                ),
            )


GENERATIONS = {"G4": lines_g4, "G2": lines_g2}


def records(logged_requests: Iterable[LoggedRequest], generation: str) -> dict[str, list[tuple[float, str]]]:
    """Return the records of each pod in order of time; every pod also says something at the very end."""
    pods: dict[str, list[tuple[float, str]]] = {pod: [] for pod in (*SERVERS, AGENT)}
    last = 0.0
    for logged in logged_requests:
        last = max(last, logged.at)
        for pod, at, line in GENERATIONS[generation](logged):
            pods[pod].append((at, line))
    for each in pods.values():
        each.append((last + 600, klog(last + 600, "writer.go:35", "still here")))
        each.sort(key=lambda record: record[0])
    return pods


def write(folder: Path, logged_requests: Iterable[LoggedRequest], generation: str = "G4") -> Path:
    """Write a pod dump and return its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    for pod, lines in records(logged_requests, generation).items():
        (folder / f"{pod}.log").write_text("".join(f"{line}\n" for _, line in lines))
    return folder
