"""Status updates are sent concurrently, survive a disconnect, and make the agent wait while many are in flight."""

import asyncio
import contextlib
import functools
import io
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from maestropy.agent.controllers import connection
from maestropy.journal import emit
from maestropy.transport import port
from maestropy.wire import timestamps
from maestropy.wire.events import event
from tests import waiting

RESYNC_REQUEST = "spec-resync-request"


class Server:
    """A transport whose server accepts status updates on command."""

    address = "server.test"
    subscribed_records: Sequence[port.LogRecord] = (("subscribed", {}),)

    def __init__(self) -> None:
        self.published: list[str] = []
        self.accepted: list[str] = []
        self.accepts = asyncio.Event()
        self.disconnects = asyncio.Event()
        self.resyncs = 0
        self.failing: set[str] = set()
        """The events that the server answers as a Go server answers while its database is away."""
        self.failures: list[str] = []
        self.on_resync: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[port.AgentConnection]:
        yield self

    async def events(self) -> AsyncIterator[event.CloudEvent]:
        await self.disconnects.wait()
        self.disconnects.clear()
        raise port.Disconnected("hung up")
        yield

    async def publish(self, sent: event.CloudEvent) -> None:
        if sent.id in self.failing:
            self.failures.append(sent.id)
            raise port.NotAccepted("FailedPrecondition: {}")
        if sent.id == RESYNC_REQUEST:
            self.resyncs += 1
            self.on_resync()
            return
        self.published.append(sent.id)
        await self.accepts.wait()
        self.accepted.append(sent.id)

    async def is_resync_answered(self, *, within: float) -> bool:
        return True


class ConnectionFixture:
    """A running connection."""

    def __init__(self) -> None:
        self.server = Server()
        self.log = io.BytesIO()
        self.resynced: list[int] = []
        self.connection = connection.ServerConnection(
            self.server,
            journal=emit.Journal(self.log, clock=lambda: 0.0, verbosity=0),
            on_event=lambda _: None,
            resync_request=lambda: _event(RESYNC_REQUEST),
            delays=lambda: itertools.repeat(0.0),
            on_resynced=lambda: self.resynced.append(self.server.resyncs),
        )

    def enqueue(self, count: int) -> None:
        for number in range(count):
            self.enqueue_status(f"w{number}", f"w{number}")

    def enqueue_status(self, work_id: str, event_id: str, *, short_event_id: str | None = None, size: int = 0) -> None:
        message = connection.StatusMessage(
            encode=functools.partial(_event, event_id, size=size),
            encode_without_feedback=lambda: _event(short_event_id) if short_event_id else None,
            on_sent=lambda _: None,
        )
        self.connection.enqueue(work_id, message)


def _event(name: str, *, size: int = 0) -> event.CloudEvent:
    return event.CloudEvent(
        id=name, source="agent", type="t", time=timestamps.Timestamp(seconds=0), extensions={}, data=b"x" * size
    )


@contextlib.asynccontextmanager
async def connected(*failing: str) -> AsyncIterator[ConnectionFixture]:
    fixture = ConnectionFixture()
    fixture.server.failing.update(failing)
    task = asyncio.create_task(fixture.connection.run())
    try:
        await waiting.until(lambda: fixture.connection.is_connected)
        yield fixture
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_status_updates_are_sent_concurrently_and_in_order() -> None:
    async with connected() as fixture:
        fixture.enqueue(40)
        await waiting.until(lambda: len(fixture.server.published) == 16)
        fixture.server.accepts.set()
        await waiting.until(lambda: not fixture.connection.waiting)
        assert fixture.server.published == fixture.server.accepted == [f"w{number}" for number in range(40)]


async def test_disconnect_loses_and_repeats_no_status_update() -> None:
    async with connected() as fixture:
        fixture.enqueue(40)
        await waiting.until(lambda: len(fixture.server.published) == 16)
        fixture.server.disconnects.set()
        await waiting.until(lambda: len(fixture.server.published) == 32)
        fixture.server.accepts.set()
        await waiting.until(lambda: not fixture.connection.waiting)
        assert fixture.server.accepted == [f"w{number}" for number in range(40)]


async def test_resyncs_that_cause_each_other_become_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_RESYNC_PAUSE_SECONDS", 0.02)
    async with connected() as fixture:
        assert fixture.server.resyncs == 1
        # An answer that is doubted again, as that of a server of an earlier version may be.
        fixture.server.on_resync = fixture.connection.request_resync
        fixture.connection.request_resync()
        await asyncio.sleep(1)
        # 0, 0.02, 0.06, 0.14, 0.3, 0.62 s: six at most.
        assert 2 <= fixture.server.resyncs - 1 <= 6


async def test_status_update_that_is_not_accepted_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_BACKOFF_SECONDS", 0.005)
    async with connected("w0") as fixture:
        fixture.server.accepts.set()
        fixture.enqueue(2)
        # Another work does not wait for the one that fails.
        await waiting.until(lambda: fixture.server.accepted == ["w1"] and len(fixture.server.failures) > 1)
        fixture.server.failing.clear()
        await waiting.until(lambda: not fixture.connection.waiting)
        assert fixture.server.accepted == ["w1", "w0"]
        assert b'err="FailedPrecondition: {}" resourceID="w0" count=1 pause="0.01s"' in fixture.log.getvalue()


async def test_newest_status_replaces_one_that_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_BACKOFF_SECONDS", 3600.0)
    async with connected("old") as fixture:
        fixture.server.accepts.set()
        fixture.enqueue_status("w0", "old")
        await waiting.until(lambda: fixture.server.failures == ["old"])
        fixture.enqueue_status("w0", "new")
        await waiting.until(lambda: not fixture.connection.waiting)
        assert fixture.server.accepted == ["new"]


async def test_postponed_updates_survive_a_disconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_BACKOFF_SECONDS", 0.005)
    async with connected("w0", "w1") as fixture:
        fixture.enqueue(20)
        await waiting.until(lambda: len(fixture.server.failures) >= 2 and len(fixture.server.published) == 16)
        fixture.server.disconnects.set()
        await waiting.until(lambda: len(fixture.server.published) == 32)
        fixture.server.failing.clear()
        fixture.server.accepts.set()
        await waiting.until(lambda: not fixture.connection.waiting)
        assert sorted(fixture.server.accepted) == sorted(f"w{number}" for number in range(20))


async def test_large_status_update_that_is_never_accepted_becomes_rare_and_is_sent_once_without_feedback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_FIRST_BACKOFF_SECONDS", 0.005)
    monkeypatch.setattr(connection, "_MAX_BACKOFF_SECONDS", 0.2)
    async with connected("full") as fixture:
        fixture.server.accepts.set()
        fixture.enqueue_status("w0", "full", short_event_id="short", size=256 * 1024 + 1)
        await asyncio.sleep(1)
        # 0, 0.01, 0.03, 0.07, 0.15, 0.31 s, then every 0.2 s.
        assert 4 <= len(fixture.server.failures) <= 9
        assert fixture.server.accepted == ["short"]
        assert fixture.connection.waiting == 1


async def test_small_status_update_that_is_not_accepted_keeps_its_feedback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size cannot be the reason: a Go server answers so while its database is away."""
    monkeypatch.setattr(connection, "_FIRST_BACKOFF_SECONDS", 0.001)
    async with connected("full") as fixture:
        fixture.server.accepts.set()
        fixture.enqueue_status("w0", "full", short_event_id="short", size=256 * 1024)
        await waiting.until(lambda: len(fixture.server.failures) > 5)
        fixture.server.failing.clear()
        await waiting.until(lambda: not fixture.connection.waiting)
        assert fixture.server.accepted == ["full"]


async def test_resync_request_that_is_not_accepted_is_sent_again_on_the_same_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_FIRST_RESYNC_PAUSE_SECONDS", 0.01)
    async with connected(RESYNC_REQUEST) as fixture:
        await waiting.until(lambda: len(fixture.server.failures) > 2)
        assert not fixture.resynced
        fixture.server.failing.clear()
        await waiting.until(lambda: bool(fixture.resynced))
        assert fixture.resynced == [1]


async def test_further_resync_request_that_is_not_accepted_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_FIRST_RESYNC_PAUSE_SECONDS", 0.01)
    async with connected() as fixture:
        fixture.server.failing.add(RESYNC_REQUEST)
        fixture.connection.request_resync()
        await waiting.until(lambda: len(fixture.server.failures) > 1)
        fixture.server.failing.clear()
        await waiting.until(lambda: fixture.server.resyncs == 2)
        # The agent learns of every answer, not only of the first of a connection.
        await waiting.until(lambda: fixture.resynced == [1, 2])


@pytest.mark.parametrize("count", [0, 8])
async def test_few_updates_in_flight_do_not_wait_for_capacity(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_CAPACITY_WAIT_SECONDS", 3600.0)

    async with connected() as fixture:
        fixture.enqueue(count)
        await waiting.until(lambda: len(fixture.server.published) == count)
        await asyncio.wait_for(fixture.connection.wait_for_capacity(), 20)
        assert not fixture.server.accepted


@pytest.mark.parametrize("ends", ["accepts", "disconnects"])
async def test_many_updates_in_flight_wait_for_capacity(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_CAPACITY_WAIT_SECONDS", 3600.0)

    async with connected() as fixture:
        fixture.enqueue(9)
        await waiting.until(lambda: len(fixture.server.published) == 9)
        waiter = asyncio.create_task(fixture.connection.wait_for_capacity())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiter.done()
        getattr(fixture.server, ends).set()
        await asyncio.wait_for(waiter, 20)


async def test_wait_for_capacity_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_MAX_CAPACITY_WAIT_SECONDS", 0.01)

    async with connected() as fixture:
        fixture.enqueue(9)
        await waiting.until(lambda: len(fixture.server.published) == 9)
        await asyncio.wait_for(fixture.connection.wait_for_capacity(), 20)
        assert not fixture.server.accepted


async def test_missing_topic_is_tried_again_ever_more_rarely_and_shown() -> None:
    fixture = ConnectionFixture()
    waits: list[int] = []
    problems: list[str] = []
    last_errors: list[str] = []

    def delays() -> Iterator[float]:
        for number in itertools.count(1):
            waits.append(number)
            problems.append(fixture.connection.problem)
            last_errors.append(fixture.connection.last_error)
            yield 0.0

    async def publish(sent: event.CloudEvent) -> None:
        if sent.id != RESYNC_REQUEST and len(waits) < 3:
            raise port.Misconfigured("the topic does not exist; create it")
        if sent.id != RESYNC_REQUEST:
            raise port.Disconnected("hung up")

    fixture.connection._delays = delays
    fixture.server.publish = publish  # type: ignore[method-assign]
    fixture.enqueue(1)
    task = asyncio.create_task(fixture.connection.run())
    try:
        await waiting.until(lambda: len(waits) >= 5)
        assert waits[:5] == [1, 2, 3, 1, 1], "a connection that only broke starts again with the shortest pause"
        assert problems[:5] == 3 * ["the topic does not exist; create it"] + 2 * [""]
        assert last_errors[3:5] == 2 * ["hung up"]
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
