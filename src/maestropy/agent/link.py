"""Stage: the connection to the server, kept for as long as the agent lives.

Every new connection begins with a resync: we say what we have, the server sends what we lack. What we want to say is
kept per work until it is said, the newest only, so an outage of the server costs nothing but time.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from maestropy.agent import describe
from maestropy.aio import tasks
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Broker, Key
from maestropy.transport import base
from maestropy.wire import event

# Enough for a burst to reach the server in few groups, few enough not to crowd it when a thousand agents reconnect.
_AT_ONCE = 16
_MUCH = 8
_LONGEST_PAUSE_SECONDS = 0.25
_FIRST_REST_SECONDS = 0.1
_FIRST_QUESTION_SECONDS = 5.0
_LONGEST_REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Something to be said about one work. The event is made when it is sent, so that its sequence is never behind."""

    write: Callable[[], event.Event]
    shorten: Callable[[], event.Event | None]
    """What to say instead if the server will never take that, because it is too long for instance."""
    sent: Callable[[event.Event], None]
    """Called when the server has it."""


class Link:
    """Receives events, and sends letters in the order in which their works first asked."""

    def __init__(
        self,
        medium: base.Medium,
        *,
        journal: Journal,
        received: Callable[[event.Event], None],
        greet: Callable[[], event.Event],
        delays: Callable[[], Iterator[float]],
        answered: Callable[[], None],
    ) -> None:
        """`answered` is called when the server, on any connection, has told which works there are."""
        self._medium = medium
        self._journal = journal
        self._received = received
        self._greet = greet
        self._delays = delays
        self._answered = answered
        self._letters: dict[str, Letter] = {}
        self._under_way: set[str] = set()
        self._postponed: dict[str, int] = {}
        """How often the server did not take the letter about a work."""
        self._resting: set[str] = set()
        self._news = asyncio.Event()
        self._arrived = asyncio.Event()
        self.is_connected = False

    def post(self, work_id: str, letter: Letter) -> None:
        """Keep `letter` until it is sent; it replaces an older one about the same work."""
        self._letters[work_id] = letter
        self._resting.discard(work_id)
        self._news.set()

    def withdraw(self, work_id: str) -> None:
        """Do not say it after all."""
        self._letters.pop(work_id, None)
        self._postponed.pop(work_id, None)

    async def keep_pace(self) -> None:
        """Wait while much is under way, but not for long: a server that takes its time must not stop the agent."""
        if len(self._under_way) <= _MUCH:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_PAUSE_SECONDS):
                while len(self._under_way) > _MUCH:
                    self._arrived.clear()
                    await self._arrived.wait()

    @property
    def waiting(self) -> int:
        """How many letters wait."""
        return len(self._letters)

    async def run(self) -> None:
        """Stay connected for ever."""
        waits = self._delays()
        while True:
            try:
                await tasks.apart(self._connect())
            except* (base.Disconnected, base.Rejected, base.Busy) as group:
                error = group.exceptions[0]
                self._journal.error(Broker.DISCONNECTED, {Key.BROKER_HOST: self._medium.address}, err=error)
            finally:
                waits = self._delays() if self.is_connected else waits
                self.is_connected = False
            await asyncio.sleep(next(waits))
            self._journal.info(Broker.RECONNECTING, v=2)

    async def _connect(self) -> None:
        async with self._medium.connect() as connection:
            self._journal.info(self._medium.subscribed, {Key.BROKER_HOST: self._medium.address})
            await self._converse(connection)

    async def _converse(self, connection: base.Connection) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(connection.events()), name="receive")
                await connection.publish(self._greet())
                self.is_connected = True
                group.create_task(self._await_answer(connection), name="await the answer")
                group.create_task(self._send(connection, group), name="send")
        finally:
            # A task that is cancelled before its first step cleans up nothing.
            self._under_way.clear()
            self._arrived.set()

    async def _await_answer(self, connection: base.Connection) -> None:
        """Tell when the server has answered; a question that was lost on its way is asked again."""
        pause = _FIRST_QUESTION_SECONDS
        while not await connection.is_answered(within=pause):
            await connection.publish(self._greet())
            pause = min(_LONGEST_REST_SECONDS, pause * 2)
        self._answered()

    async def _receive(self, events: AsyncIterator[event.Event]) -> None:
        async for received in events:
            self._received(received)

    async def _send(self, connection: base.Connection, group: asyncio.TaskGroup) -> None:
        """Send letters in their order, several side by side, but never two about the same work."""
        while True:
            held_back = self._under_way | self._resting
            work_id = next((each for each in self._letters if each not in held_back), None)
            if work_id is None or len(self._under_way) >= _AT_ONCE:
                self._news.clear()
                await self._news.wait()
                continue
            self._under_way.add(work_id)
            group.create_task(self._finish(connection, work_id), name=f"send {work_id}")

    async def _finish(self, connection: base.Connection, work_id: str) -> None:
        """Send what there is to say about a work by now."""
        try:
            letter = self._letters.get(work_id)
            if letter is not None:
                await self._send_one(connection, work_id, letter)
        finally:
            self._under_way.discard(work_id)
            self._news.set()
            self._arrived.set()

    async def _send_one(self, connection: base.Connection, work_id: str, letter: Letter) -> None:
        outgoing = letter.write()
        self._tell(outgoing)
        try:
            await connection.publish(outgoing)
        except base.Busy as error:
            self._journal.error("the server did not take a status", {Key.RESOURCE_ID: work_id}, err=error)
            self._postpone(work_id)
            return
        except base.Rejected as error:
            self._journal.error("the server refused a status", {Key.RESOURCE_ID: work_id}, err=error)
            await self._send_shorter(connection, letter)
        self._postponed.pop(work_id, None)
        if self._letters.get(work_id) is letter:
            del self._letters[work_id]
        letter.sent(outgoing)

    async def _send_shorter(self, connection: base.Connection, letter: Letter) -> None:
        outgoing = letter.shorten()
        if outgoing is None:
            return
        self._tell(outgoing)
        try:
            await connection.publish(outgoing)
        except (base.Rejected, base.Busy) as error:
            # The next change of the work will be tried again.
            work_id = outgoing.optional_text(event.RESOURCE_ID)
            self._journal.error("the server refused a shortened status", {Key.RESOURCE_ID: work_id}, err=error)

    def _postpone(self, work_id: str) -> None:
        """Let others be said first."""
        count = self._postponed[work_id] = self._postponed.get(work_id, 0) + 1
        self._resting.add(work_id)
        seconds = min(_LONGEST_REST_SECONDS, _FIRST_REST_SECONDS * 2 ** min(count, 16))
        asyncio.get_running_loop().call_later(seconds, self._rested, work_id)

    def _rested(self, work_id: str) -> None:
        self._resting.discard(work_id)
        self._news.set()

    def _tell(self, outgoing: event.Event) -> None:
        if self._journal.enabled(2):
            self._journal.info(Phrase.SENDING, describe.event_fields(outgoing), v=2)
