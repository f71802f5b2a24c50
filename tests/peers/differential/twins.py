"""Two servers, the Go one and ours, each on a fresh database, asked the same and watched alike.

A twin records what its server says and does; it compares nothing. What both were asked is compared by `comparing`.
"""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import grpc

from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding
from tests.peers.peer_clients import Json
from tests.peers.peer_servers import RunningServer
from tests.waiting import wait_for

CONSUMER = "cluster1"
SOURCE = "twin-source"
BASE = "/api/maestro/v1"
STANDSTILL = 1.5
"""Seconds without progress after which the rest counts as undeliverable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back from a call: a code, a text or document, and the content type of REST."""

    code: str
    body: Any = None
    content_type: str = ""


@dataclass(kw_only=True)
class Twin:
    """One server and its witnesses."""

    server: RunningServer
    sources: Any
    agents: Any
    database: "Database"
    to_agent: list[pb.CloudEvent] = field(default_factory=list)
    to_source: list[pb.CloudEvent] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return self.server.kind

    def publish(self, request: bytes) -> Answer:
        """Send a PublishRequest to the sources' port."""
        return _call(self.sources, request)

    def report(self, request: bytes) -> Answer:
        """Send a PublishRequest to the agents' port."""
        return _call(self.agents, request)

    def ask(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """Call the REST API; `path` begins below the version."""
        headers = {"Content-Type": "application/json", "X-Operation-ID": "twins"}
        request = urllib.request.Request(self.server.rest_url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return _answered(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return _answered(error.code, error.headers, error.read())
        except OSError as error:
            return Answer(code="connection broken", body=type(error).__name__)

    def settle_events(self) -> None:
        """Wait until every event has been handed to those who wait for it, but for those that cannot be."""
        # Some events the Go server accepts and then tries to send for ever.
        last, since = -1, time.monotonic()

        def is_settled() -> bool:
            nonlocal last, since
            pending = self.database.pending()
            if pending != last:
                last, since = pending, time.monotonic()
            return pending == 0 or time.monotonic() - since > STANDSTILL

        wait_for(is_settled, what=f"the {self.kind} server to deliver", seconds=60)

    def settle(self) -> None:
        """Wait until every event has been handed over, and what the server sent has been read."""
        self.settle_events()
        # Whatever was sent before the second heartbeat from now has come: the one under way may have been queued first.
        streams = (self.to_agent, self.to_source)
        wanted = [self._beats(stream) + 2 for stream in streams]
        wait_for(
            lambda: all(self._beats(each) >= count for each, count in zip(streams, wanted, strict=True)),
            what=f"heartbeats of the {self.kind} server",
            seconds=30,
        )

    def _beats(self, stream: list[pb.CloudEvent]) -> int:
        return sum(each.type == event.HEARTBEAT for each in list(stream))


def _answered(status: int, headers: Any, content: bytes) -> Answer:
    kind = headers.get("Content-Type") or ""
    try:
        body = json.loads(content) if content else None
    except ValueError:
        body = content.decode(errors="replace")
    return Answer(code=str(status), body=body, content_type=kind)


def _call(channel: Any, request: bytes) -> Answer:
    try:
        channel.unary_unary(grpc_binding.PUBLISH_METHOD)(request, timeout=30)
    except grpc.RpcError as error:
        return Answer(code=error.code().name, body=error.details())
    return Answer(code="OK")


class Database:
    """One connection, on an event loop of its own."""

    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner()
        self._connection = self._runner.run(asyncpg.connect(dsn))

    def rows(self, statement: str, *arguments: Any) -> list[Json]:
        found = self._runner.run(self._connection.fetch(statement, *arguments))
        return [dict(row) for row in found]

    def pending(self) -> int:
        """Return how many events are neither delivered nor given up."""
        statement = """
            SELECT (SELECT count(*) FROM events WHERE reconciled_date IS NULL)
                 + (SELECT count(*) FROM status_events s WHERE reconciled_date IS NULL
                    AND NOT EXISTS (SELECT FROM event_instances i WHERE i.event_id = s.id)) AS pending
        """
        count: int = self.rows(statement)[0]["pending"]
        return count

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


@contextmanager
def twin(server: RunningServer) -> Iterator[Twin]:
    """Watch a server as an agent and as a source."""
    with ExitStack() as stack:
        channels = [grpc.insecure_channel(address) for address in (server.grpc_addr, server.broker_addr)]
        for channel in channels:
            stack.enter_context(channel)
        database = Database(server.database.dsn)
        stack.callback(database.close)
        made = Twin(server=server, sources=channels[0], agents=channels[1], database=database)
        made.ask("POST", f"{BASE}/consumers", json.dumps({"name": CONSUMER}).encode())
        wanted = grpc_binding.Subscription(cluster_name=CONSUMER, data_type=event.MANIFEST_BUNDLES)
        stack.callback(_listen(made.agents, wanted, made.to_agent))
        wanted = grpc_binding.Subscription(source=SOURCE, data_type=event.MANIFEST_BUNDLES)
        stack.callback(_listen(made.sources, wanted, made.to_source))
        yield made


def _listen(channel: Any, wanted: grpc_binding.Subscription, into: list[pb.CloudEvent]) -> Callable[[], None]:
    call = channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD, response_deserializer=pb.CloudEvent.FromString)(
        grpc_binding.encode_subscription(wanted)
    )

    def read() -> None:
        try:
            for received in call:
                into.append(received)
        except grpc.RpcError:
            return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    # The first heartbeat shows that the subscription stands.
    wait_for(lambda: bool(into), what="a first heartbeat")

    def end() -> None:
        call.cancel()
        reader.join(5)

    return end
