"""A whole server inside the test's own event loop, with its journal in memory and its clock in the test's hands.

    async with running(database, {"--grpc-broker-client-ca-file": str(ca.cert), ...}) as server:
        async with server.sources() as channel:
            await send(channel, envelope.encode_publish(spec("bundle-1")))

Everything is real but the clock and the journal's sink: ports, TLS, PostgreSQL.
"""

import asyncio
import base64
import io
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import grpc
import grpc.aio
import httpx

from maestropy.aio import clock as clocks
from maestropy.journal import Journal
from maestropy.server.context import Context
from maestropy.server.runtime.wiring import Controllers
from maestropy.store import dsn as dsns
from maestropy.wire import timestamps
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding
from tests.stack import harness

CONSUMER = "cluster1"
SOURCE = "mw-client-example"
BUNDLES = "/api/maestro/v1/resource-bundles"

Channel = Any
"""grpc.aio.Channel, whose type stubs ask for arguments that the library does not need."""


async def add_consumers(address: dsns.Dsn, *names: str) -> None:
    """Create consumers without a server."""
    statement = "INSERT INTO consumers (id, name, created_at) SELECT n, n, now() FROM unnest($1::text[]) AS new (n)"
    await harness.sql(address, statement, list(names))


@dataclass
class Running:
    """A running server and what a test may look at."""

    server: Controllers
    context: Context
    address: dsns.Dsn
    log: io.BytesIO
    places: dict[str, str] = field(default_factory=dict)

    def sources(self, **how: Any) -> Channel:
        """Open a channel to the port of sources."""
        return channel(self.port("gRPC for sources"), **how)

    def agents(self, **how: Any) -> Channel:
        """Open a channel to the port of agents."""
        return channel(self.port("gRPC for agents"), **how)

    def port(self, name: str) -> int:
        """Return where `name` (`rest`, `gRPC for sources`, ...) listens."""
        return int(self.places[name].split(" ")[0].rpartition(":")[2])

    def http(self, name: str, **options: Any) -> httpx.AsyncClient:
        """Open a client of an HTTP port."""
        scheme = self.places[name].partition(":")[0]
        return httpx.AsyncClient(base_url=f"{scheme}://localhost:{self.port(name)}", timeout=20, **options)

    def text(self) -> str:
        """Return the journal so far."""
        self.context.journal.flush()
        return self.log.getvalue().decode()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """Return the journal's lines with this message."""
        return [line for line in self.everything() if line["msg"] == message]

    def everything(self) -> list[dict[str, Any]]:
        """Return all lines of the journal."""
        self.context.journal.flush()
        return [json.loads(line) for line in self.log.getvalue().splitlines()]

    def refusals(self) -> list[dict[str, Any]]:
        """Return the lines that tell of a refused request."""
        return self.lines("request rejected")

    async def sql(self, statement: str, *params: object) -> list[asyncpg.Record]:
        """Run one statement."""
        return await harness.sql(self.address, statement, *params)

    async def counts(self) -> tuple[int, ...]:
        """Return how many rows there are of everything that a request can write."""
        found = await self.sql(
            "SELECT (SELECT count(*) FROM resources) AS resources, (SELECT count(*) FROM events) AS events, "
            "(SELECT count(*) FROM status_events) AS status_events, (SELECT count(*) FROM renditions) AS renditions, "
            "(SELECT count(*) FROM resources WHERE status IS NOT NULL AND status <> 'null') AS statuses"
        )
        return tuple(found[0].values())

    def gauge(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        body, _ = self.context.metrics.render()
        lines = [line for line in body.decode().splitlines() if line.startswith((f"{name}{{", f"{name} "))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)


@asynccontextmanager
async def running(
    address: dsns.Dsn,
    flags: Mapping[str, str] | None = None,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    verbosity: int = 2,
) -> AsyncIterator[Running]:
    """Serve on free ports until the block ends."""
    log = io.BytesIO()

    def seam(context: Context) -> Context:
        journal = Journal(log, clock=context.clock.epoch, verbosity=verbosity, format="json")
        return replace(context, journal=journal, clock=clocks.Clock(monotonic=monotonic))

    given = {name.removeprefix("--"): text for name, text in (flags or {}).items()}
    async with harness.in_process(address, seam, **given) as live:
        found = Running(server=live.server, context=live.context, address=address, log=log)
        for line in found.everything():
            if line["msg"].startswith("Serving "):
                found.places[line["msg"].removeprefix("Serving ")] = line["bindAddress"]
        yield found


def channel(port: int, *, ca: bytes | None = None, client: Any = None, host: str = "localhost") -> Channel:
    """Open a channel; `ca` asks for TLS, `client` (certificate files) for a client certificate."""
    # Channels of one process would share connections, and with them handshakes.
    alone = ("grpc.use_local_subchannel_pool", 1)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), alone]
    if ca is None:
        return grpc.aio.insecure_channel(f"{host}:{port}", options=options)
    credentials = grpc.ssl_channel_credentials(
        ca, client.key.read_bytes() if client else None, client.cert.read_bytes() if client else None
    )
    return grpc.aio.secure_channel(f"{host}:{port}", credentials, options=options)


async def send(where: Channel, request: bytes, *, token: str | None = None) -> None:
    """Publish these very bytes."""
    metadata = (("authorization", f"Bearer {token}"),) if token else None
    await where.unary_unary(grpc_binding.PUBLISH_METHOD)(request, metadata=metadata, timeout=20)


async def refusal(where: Channel, request: bytes, *, token: str | None = None) -> tuple[str, str]:
    """Publish and return how it was refused; `OK` when it was not."""
    try:
        await send(where, request, token=token)
    except grpc.aio.AioRpcError as error:
        return error.code().name, error.details() or ""
    return "OK", ""


def subscribe(where: Channel, *, token: str | None = None, **wanted: str) -> Any:
    """Open a subscription; iterate over it for messages."""
    wanted.setdefault("data_type", event.MANIFEST_BUNDLES)
    metadata = (("authorization", f"Bearer {token}"),) if token else None
    request = grpc_binding.encode_subscription(grpc_binding.Subscription(**wanted))
    return where.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(request, metadata=metadata)


async def next_event(stream: Any, *, seconds: float = 60) -> event.CloudEvent:
    """Return the next event of a subscription that carries a bundle."""
    async with asyncio.timeout(seconds):
        while True:
            received = await stream.read()
            assert isinstance(received, bytes), "the stream has ended"
            found = grpc_binding.decode_event(received)
            if found.type not in (event.HEARTBEAT, event.STATUS_RESYNC_REQUEST):
                return found


def spec(resource_id: str, **changes: Any) -> event.CloudEvent:
    """Return a creation that a server takes, but for what `changes` spoil in it."""
    extensions: dict[str, Any] = {
        event.RESOURCE_ID: resource_id,
        event.RESOURCE_VERSION: 0,
        event.CLUSTER_NAME: CONSUMER,
        event.ORIGINAL_SOURCE: "",
        event.METADATA: json.dumps({"name": resource_id, "namespace": CONSUMER, "labels": {"a": "b"}}),
        event.LOG_TRACING: json.dumps({event.OPERATION_ID_KEY: f"op-{resource_id}"[:64]}),
    } | changes.pop("extensions", {})
    values: dict[str, Any] = {
        "id": f"event-of-{resource_id}"[:64],
        "source": SOURCE,
        "type": event.SPEC_CREATE,
        "time": timestamps.Timestamp(1_790_000_000, 5000),
        "data": bundle(),
    }
    return event.CloudEvent(extensions=extensions, **(values | changes))


def bundle(**data: str) -> bytes:
    """Return the data of a spec event with one ConfigMap."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm", "namespace": "default"},
        "data": {"x": "1"} | data,
    }
    return json.dumps({"manifests": [manifest]}).encode()


def report(resource_id: str, *, sequence: str = "1790000000000000001", **changes: Any) -> event.CloudEvent:
    """Return a status of an agent that a server takes."""
    extensions: dict[str, Any] = {
        event.RESOURCE_ID: resource_id,
        event.RESOURCE_VERSION: 1,
        event.CLUSTER_NAME: CONSUMER,
        event.ORIGINAL_SOURCE: "maestro",
        event.SEQUENCE_ID: sequence,
        event.STATUS_HASH: f"hash-{sequence}",
        event.LOG_TRACING: json.dumps({event.OPERATION_ID_KEY: f"op-{resource_id}"[:64]}),
    } | changes.pop("extensions", {})
    condition = {"type": "Applied", "status": "True", "reason": "R", "message": "m"}
    values: dict[str, Any] = {
        "id": f"status-of-{resource_id}"[:64],
        "source": f"{CONSUMER}-work-agent",
        "type": event.STATUS_UPDATE,
        "time": timestamps.Timestamp(1_790_000_000, 5000),
        "data": json.dumps({"conditions": [condition], "resourceStatus": []}).encode(),
    }
    return event.CloudEvent(extensions=extensions, **(values | changes))


def request_of(message: pb.CloudEvent) -> bytes:
    """Return a message as a serialised PublishRequest."""
    return pb.PublishRequest(event=message).SerializeToString()


def without(value: event.CloudEvent, name: str) -> bytes:
    """Return the request with one attribute left out."""
    message = grpc_binding.to_message(value)
    del message.attributes[name]
    return request_of(message)


def structured(members: Mapping[str, Any] | bytes, *, content_type: str = "application/cloudevents+json") -> bytes:
    """Return a request that carries an event in structured mode."""
    message = pb.CloudEvent(id="outer", source="outer", spec_version="1.0", type="outer")
    message.attributes["contenttype"].ce_string = content_type
    message.binary_data = members if isinstance(members, bytes) else json.dumps(members).encode()
    return request_of(message)


def b64(data: bytes) -> str:
    """Return base64 as JSON carries it."""
    return base64.b64encode(data).decode()
