"""A broker of the port that answers as a test says, and the database double with resources in it."""

import io
import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client import CollectorRegistry

from maestropy.aio import clock as clocks
from maestropy.journal.emit import Journal
from maestropy.server.brokers import port
from maestropy.server.brokers.port import Outcome
from maestropy.server.context import Context
from maestropy.server.telemetry.metrics import Metrics
from maestropy.store import resources, rows
from maestropy.store.postgres import pool
from maestropy.wire.events import event, stored_event
from tests.simulation.memory_postgres import Engine, Pool

PARTS = stored_event.StoredParts(
    envelope=b'{"id":"e","source":"s","type":"t","specversion":"1.0"}', metadata=b"{}", data=b"{}"
)
START = datetime(2026, 8, 20, tzinfo=UTC)

CONNECTED_AGENTS = port.Capabilities(
    reaches_every_consumer=False,
    reports_subscriptions=True,
    needs_claims=False,
    waits_for_acknowledgement=False,
    agents_get_errors=True,
)
MESSAGE_BROKER = port.Capabilities(
    reaches_every_consumer=True,
    reports_subscriptions=False,
    needs_claims=True,
    waits_for_acknowledgement=True,
    agents_get_errors=False,
)


@dataclass(kw_only=True)
class ScriptedBroker:
    """A broker with the given capabilities."""

    capabilities: port.Capabilities
    connected: Collection[str] = ("c",)
    """The consumers with a connected agent; counts only where the broker does not reach every consumer."""
    is_online: bool = True
    max_event_bytes: int = 500_000
    full: set[str] = field(default_factory=set)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """By consumer or resource ID; `SENT` where nothing is said."""
    sent: list[event.CloudEvent] = field(default_factory=list)

    async def wait_online(self) -> None:
        assert self.is_online

    def consumers(self) -> Collection[str] | None:
        return None if self.capabilities.reaches_every_consumer else self.connected

    def reaches(self, consumer: str) -> bool:
        return self.capabilities.reaches_every_consumer or consumer in self.connected

    def has_room(self, consumer: str) -> bool:
        return consumer not in self.full

    async def wait_for_room(self, consumer: str) -> None:
        self.full.discard(consumer)

    def problem_with(self, parts: stored_event.StoredParts) -> str:
        del parts
        return ""

    async def send(self, outgoing: event.CloudEvent, address: port.Address) -> port.SendResult:
        outcome = self.outcomes.get(address.key, self.outcomes.get(address.consumer, Outcome.SENT))
        if outcome in port.DELIVERED:
            self.sent.append(outgoing)
        return port.SendResult(outcome, "" if outcome is Outcome.SENT else "as scripted")

    def sent_ids(self) -> list[str]:
        return [outgoing.optional_text(event.RESOURCE_ID) for outgoing in self.sent]


class Database:
    """The database double with consumers and resources."""

    def __init__(self, *consumers: str) -> None:
        self.engine = Engine()
        self.log = io.BytesIO()
        self.seconds = 0.0
        numbers = itertools.count()
        for consumer in consumers or ("c",):
            self.engine.tables["consumers"][consumer] = {"id": consumer, "name": consumer}
        self.context = Context(
            database=pool.Database(Pool(self.engine, "server")),
            journal=Journal(self.log, clock=lambda: 0.0, verbosity=2),
            metrics=Metrics(CollectorRegistry()),
            instance_id="server",
            clock=clocks.Clock(epoch=lambda: START.timestamp() + self.seconds, monotonic=lambda: self.seconds),
            new_id=lambda: f"id-{next(numbers)}",
        )

    async def create(self, *names: str, consumer: str = "c") -> None:
        """Create resources, each with its pending event `create-<name>`."""
        specs = [
            rows.NewSpec(id=name, source="s", consumer=consumer, version=1, parts=PARTS, event_id=f"create-{name}")
            for name in names
        ]
        async with self.context.database.connection() as connection:
            assert await resources.insert_new(connection, specs, now=self.context.now()) == {*names}

    def logged(self, phrase: str) -> int:
        """Return how many log records hold `phrase`."""
        self.context.journal.flush()
        return self.log.getvalue().decode().count(phrase)

    def pending(self) -> list[str]:
        """Return the resources with a pending event."""
        events = self.engine.tables["events"].values()
        return sorted(row["source_id"] for row in events if row["reconciled_date"] is None)

    def reconcile(self, event_ids: Sequence[str]) -> None:
        for event_id in event_ids:
            self.engine.tables["events"][event_id]["reconciled_date"] = START
