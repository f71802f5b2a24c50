"""Runs Google's in-memory Pub/Sub (`pstest`, built from pubsub/main.go) for tests, with the topics of Maestro.

Filters and acknowledgement deadlines are real, and messages are delivered in no order. Nothing outlives the process:
who stops and starts it gets empty topics and subscriptions again.
"""

import contextlib
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.peers import go_build
from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

PROJECT = "maestro-test"
TOPICS = ("sourceevents", "sourcebroadcast", "agentevents", "agentbroadcast")
RECIPE = go_build.Recipe(
    title="the Pub/Sub emulator",
    duration="about half a minute",
    module=Path(__file__).parent / "pubsub",
    packages=(".",),
    place="pubsub",
)


def topic(name: str) -> str:
    return f"projects/{PROJECT}/topics/{name}"


def subscription(name: str) -> str:
    return f"projects/{PROJECT}/subscriptions/{name}"


@dataclass(kw_only=True)
class Emulator:
    """An emulator that can be stopped and started again on the same port."""

    folder: Path
    program: Path
    stream_seconds: float = 0.0
    """How long a stream lasts before it is closed, as by the real service; 0: for ever."""
    port: int = field(default_factory=lambda: free_ports(1)[0])
    process: subprocess.Popen[bytes] | None = None
    consumers: set[str] = field(default_factory=set)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "pubsub.log"

    @property
    def denied(self) -> Path:
        return self.folder / "denied.txt"

    def start(self) -> None:
        """Start it, with the topics and subscriptions of the server and of all consumers so far."""
        with self.log.open("ab") as output:
            command = [*mortal(), str(self.program), self.host, str(self.denied), f"{self.stream_seconds}s"]
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        wait_for(self._answers, what=f"the Pub/Sub emulator to listen:\n{tail(self.log)}")
        for name in TOPICS:
            self.call("Publisher/CreateTopic", name=topic(name))
        self.subscribe("agentevents", "maestro", attribute="ce-originalsource")
        self.subscribe("agentbroadcast", "maestro")
        for consumer in self.consumers:
            self._subscribe_agent(consumer)

    def stop(self) -> None:
        if self.process is not None:
            end(self.process)
            self.process = None

    def cut(self) -> None:
        """Cut all connections and refuse new ones; topics, subscriptions and messages stay."""
        self._signal(signal.SIGUSR1)

    def restore(self) -> None:
        """End the outage."""
        self._signal(signal.SIGUSR2)

    @property
    def is_up(self) -> bool:
        """Whether it takes calls now."""
        with contextlib.suppress(Exception):
            self.call("Publisher/GetTopic", topic=topic(TOPICS[0]))
            return True
        return False

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def add_consumer(self, consumer: str) -> None:
        """Create the subscriptions of an agent, as an installation does before the agent starts."""
        if consumer not in self.consumers:
            self.consumers.add(consumer)
            self._subscribe_agent(consumer)

    def subscribe(self, name: str, owner: str, *, attribute: str = "") -> None:
        chosen = f'attributes."{attribute}"="{owner}"' if attribute else ""
        self.call(
            "Subscriber/CreateSubscription",
            name=subscription(f"{name}-{owner}"),
            topic=topic(name),
            filter=chosen,
            ack_deadline_seconds=10,
        )

    def call(self, method: str, **fields: Any) -> Any:
        """Call a method of Pub/Sub: `Publisher/CreateTopic`."""
        import grpc
        from google.pubsub_v1 import types

        name = method.partition("/")[2]
        message = types.Topic if name == "CreateTopic" else types.Subscription if name == "CreateSubscription" else None
        request = (message or getattr(types, f"{name}Request"))(**fields)
        with grpc.insecure_channel(self.host) as channel:
            call: Any = channel.unary_unary
            return call(f"/google.pubsub.v1.{method}")(type(request).serialize(request), timeout=5)

    def publish(self, name: str, attributes: Mapping[str, str], data: bytes) -> None:
        """Publish a message to a topic, whatever it carries."""
        self.call("Publisher/Publish", topic=topic(name), messages=[{"attributes": dict(attributes), "data": data}])

    def pull(self, name: str) -> list[Any]:
        """Return the messages that a subscription has now."""
        from google.pubsub_v1 import types

        answer = self.call("Subscriber/Pull", subscription=subscription(name), max_messages=1000)
        return [received.message for received in types.PullResponse.deserialize(answer).received_messages]

    def config(self, path: Path, consumer: str = "", *, more: str = "") -> Path:
        """Write the file that points the server, or the agent of a consumer, here."""
        if consumer:
            self.add_consumer(consumer)
        own, other = ("agent", "source") if consumer else ("source", "agent")
        lines = [f"projectID: {PROJECT}", f"endpoint: {self.host}", "disableTLS: true", more, "topics:"]
        lines += [f"  {own}{kind}: {topic(own + kind.lower())}" for kind in ("Events", "Broadcast")]
        lines.append("subscriptions:")
        owner = consumer or "maestro"
        lines += [
            f"  {other}{kind}: {subscription(f'{other}{kind.lower()}-{owner}')}" for kind in ("Events", "Broadcast")
        ]
        path.write_text("\n".join(lines) + "\n")
        return path

    def _subscribe_agent(self, consumer: str) -> None:
        self.subscribe("sourceevents", consumer, attribute="ce-clustername")
        self.subscribe("sourcebroadcast", consumer)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the Pub/Sub emulator ended:\n{tail(self.log)}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def emulator(folder: Path, *, stream_seconds: float = 0.0) -> Iterator[Emulator]:
    """Run an emulator; skips the test where it cannot be built."""
    pytest.importorskip("google.pubsub_v1", reason="the extra `pubsub` is needed: pip install '.[pubsub]'")
    try:
        built = go_build.built(RECIPE, print)
    except go_build.Unavailable as reason:
        pytest.skip(str(reason))
    folder.mkdir(parents=True, exist_ok=True)
    running = Emulator(folder=folder, program=built / "pubsub", stream_seconds=stream_seconds)
    running.start()
    try:
        yield running
    finally:
        running.stop()
