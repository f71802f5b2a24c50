"""Play thousands of agents in one process: connect, subscribe, resync, receive heartbeats, connect again.

    python -m bench.light_agents --targets 127.0.0.1:8091,… --first 0 --count 5000

Each agent has a connection of its own and speaks just enough HTTP/2 for the two gRPC calls, because a gRPC channel for
each would cost more than the server that is measured. It is in sync when the answer to its spec resync has ended. An
agent that loses its connection waits as a real one does, and then takes any of the targets; one that refuses is
skipped, as a Kubernetes Service would. Commands are lines on standard input: `targets a,b`, `begin`, `report`, `end`.
"""

import argparse
import asyncio
import contextlib
import json
import random
import struct
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from maestropy.aio import backoff
from maestropy.wire import resync
from maestropy.wire.events import event, grpc_binding

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
WINDOW = 2**20
HEAD_BYTES = 9
CONNECT_SECONDS = SUBSCRIBE_SECONDS = 20.0
RESYNC_SECONDS = 30.0
"""The timeouts of our agent; then it connects again."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return one HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def headers(path: str, authority: str) -> bytes:
    """Return the header block of a call; every field is written out, so that it needs no table."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": authority,
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())


def _text(value: str) -> bytes:
    return bytes((len(value),)) + value.encode()


def call(stream: int, path: str, authority: str, message: bytes) -> bytes:
    """Return the frames of a call with one message."""
    body = b"\0" + struct.pack(">I", len(message)) + message
    return frame(HEADERS, END_HEADERS, stream, headers(path, authority)) + frame(DATA, END_STREAM, stream, body)


def _is_failure(payload: bytes) -> bool:
    """Say whether a call was rejected; a rejection has no headers but its trailers, whose fields are written out."""
    _, name, code = payload.partition(b"grpc-status\x01")
    return bool(name) and not code.startswith(b"0")


@dataclass(slots=True)
class Fleet:
    """What all agents of this process share, and what is counted since `begin`."""

    targets: list[str]
    chance: random.Random
    in_sync: int = 0
    away: list[float] = field(default_factory=list)
    """Seconds from the loss of a connection, or from the start, until the agent was in sync again."""
    heartbeats: int = 0
    attempts: int = 0

    def begin(self) -> None:
        self.away, self.heartbeats, self.attempts = [], 0, 0


class Connection(asyncio.Protocol):
    """One connection of one agent."""

    def __init__(self, agent: "Agent", target: str) -> None:
        self.agent = agent
        self.target = target
        self.lost = asyncio.get_running_loop().create_future()
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._received = bytearray()
        self._stream = bytearray()
        """What has arrived of the subscription and is not a whole message yet."""
        self._unacknowledged = 0
        self._next_stream = 3
        self._marker = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop is no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        window = struct.pack(">HI", 4, WINDOW)
        request = grpc_binding.encode_subscription(
            grpc_binding.Subscription(cluster_name=self.agent.consumer, data_type=event.MANIFEST_BUNDLES)
        )
        self._transport.write(
            PREFACE
            + frame(SETTINGS, 0, 0, window)
            + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW))
            + call(1, grpc_binding.SUBSCRIBE_METHOD, self.target, request)
        )

    def request_resync(self) -> None:
        """Send a spec resync request; the deletion of its marker ends the answer."""
        marker = str(uuid.UUID(int=self.agent.fleet.chance.getrandbits(128), version=4))
        self._marker = marker.encode()
        body = resync.encode_request(
            resync.SpecResyncRequest(versions=self.agent.versions, event_ids={}, states_hold=True)
        )
        sent = event.CloudEvent(
            id=marker,
            source=f"{self.agent.consumer}-work-agent",
            type=event.SPEC_RESYNC_REQUEST,
            extensions={event.CLUSTER_NAME: self.agent.consumer, event.ORIGINAL_SOURCE: ""},
            data=resync.with_marker(body, marker),
        )
        request = grpc_binding.encode_publish(sent)
        self._transport.write(call(self._next_stream, grpc_binding.PUBLISH_METHOD, self.target, request))
        self._next_stream += 2

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= HEAD_BYTES:
            size = int.from_bytes(self._received[:3])
            if len(self._received) < HEAD_BYTES + size:
                return
            kind, flags = self._received[3], self._received[4]
            stream = int.from_bytes(self._received[5:9]) & 0x7FFFFFFF
            payload = bytes(self._received[HEAD_BYTES : HEAD_BYTES + size])
            del self._received[: HEAD_BYTES + size]
            self._frame(kind, flags, stream, payload)

    def _frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        match kind:
            case 4 if not flags & ACK:  # SETTINGS
                self._transport.write(frame(SETTINGS, ACK, 0))
            case 6 if not flags & ACK:  # PING
                self._transport.write(frame(PING, ACK, 0, payload))
            case 1 if stream == 1 and not flags & END_STREAM and not self.subscribed.done():  # HEADERS
                self.subscribed.set_result(None)
                self.request_resync()
            case 0:  # DATA
                self._data(stream, payload)
            case _:
                pass
        is_end = kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM)
        if is_end and (stream == 1 or _is_failure(payload)):
            self._transport.close()

    def _data(self, stream: int, payload: bytes) -> None:
        self._unacknowledged += len(payload)
        if self._unacknowledged > WINDOW // 4:
            more = struct.pack(">I", self._unacknowledged)
            self._transport.write(frame(WINDOW_UPDATE, 0, 0, more) + frame(WINDOW_UPDATE, 0, 1, more))
            self._unacknowledged = 0
        if stream != 1:
            return
        self._stream += payload
        while len(self._stream) >= 5:
            size = int.from_bytes(self._stream[1:5])
            if len(self._stream) < 5 + size:
                return
            self._message(bytes(self._stream[5 : 5 + size]))
            del self._stream[: 5 + size]

    def _message(self, message: bytes) -> None:
        if event.HEARTBEAT.encode() in message:
            self.agent.fleet.heartbeats += 1
        elif self._marker in message and b"ce-resourceid" in message:
            received = grpc_binding.decode_event(message)
            work_id, version = received.text(event.RESOURCE_ID), received.integer(event.RESOURCE_VERSION)
            if work_id.encode() != self._marker:
                self.agent.versions[work_id] = version
            elif not self.synced.done():
                self.synced.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost.done():
            self.lost.set_result(exc)

    def close(self) -> None:
        self._transport.abort()


class Agent:
    """One agent, for as long as the process runs."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.fleet = fleet
        self.consumer = f"c{number}"
        self.versions: dict[str, int] = {}
        # Without authentication a server counts the subscriptions of an address.
        self._address = f"127.{1 + number // 40_000}.{number // 200 % 200}.1"

    async def run(self) -> None:
        waits = self._waits()
        away_since = time.monotonic()
        while True:
            connection = await self._connect()
            if connection is not None and await self._resync(connection):
                self.fleet.in_sync += 1
                self.fleet.away.append(time.monotonic() - away_since)
                await connection.lost
                self.fleet.in_sync -= 1
                away_since, waits = time.monotonic(), self._waits()
            await asyncio.sleep(next(waits))

    def _waits(self) -> Iterator[float]:
        """Return the waits of a real agent."""
        return backoff.delays(base=0.5, factor=2, cap=15.0, jitter=self.fleet.chance.random)

    async def _connect(self) -> Connection | None:
        targets = self.fleet.chance.sample(self.fleet.targets, len(self.fleet.targets))
        for target in targets:
            host, _, port = target.rpartition(":")
            self.fleet.attempts += 1
            with contextlib.suppress(OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    _, connection = await asyncio.get_running_loop().create_connection(
                        lambda target=target: Connection(self, target),  # type: ignore[misc]
                        host,
                        int(port),
                        local_addr=(self._address, 0),
                    )
                return connection
        return None

    async def _resync(self, connection: Connection) -> bool:
        for step, seconds in ((connection.subscribed, SUBSCRIBE_SECONDS), (connection.synced, RESYNC_SECONDS)):
            await asyncio.wait({connection.lost, step}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if connection.lost.done() or not step.done():
                connection.close()
                return False
        return True


async def serve(fleet: Fleet, agents: list[Agent]) -> None:
    """Run the agents and obey the commands."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(agent.run()) for agent in agents]
        while line := (await reader.readline()).decode().split():
            match line:
                case ["targets", targets]:
                    fleet.targets = targets.split(",")
                case ["begin"]:
                    fleet.begin()
                case ["report"]:
                    counts = {"in_sync": fleet.in_sync, "heartbeats": fleet.heartbeats, "attempts": fleet.attempts}
                    print(json.dumps({**counts, "away": fleet.away}), flush=True)
                case _:
                    break
        for task in tasks:
            task.cancel()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.light_agents", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--targets", required=True, help="host:port of the agents' ports, comma separated")
    parser.add_argument("--first", type=int, default=0, help="number of the first agent; its consumer is c<number>")
    parser.add_argument("--count", type=int, required=True)
    given = parser.parse_args()
    fleet = Fleet(targets=given.targets.split(","), chance=random.Random(given.first))
    agents = [Agent(fleet, number) for number in range(given.first, given.first + given.count)]
    try:
        import uvloop  # noqa: PLC0415 -- where it is installed
    except ImportError:
        asyncio.run(serve(fleet, agents))
    else:
        uvloop.run(serve(fleet, agents))
    return 0


if __name__ == "__main__":
    sys.exit(main())
