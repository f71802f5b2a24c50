"""Stage: statuses become reports, each one only when it says something new."""

from collections.abc import Callable

from maestropy.agent.decide import reporting
from maestropy.agent.link import Letter, Link
from maestropy.agent.works import Held
from maestropy.aio import clock as clocks
from maestropy.wire import codec, event, instant, order, work


class Reporter:
    """Hands statuses to the link; what is said last about a work is what counts."""

    def __init__(
        self,
        link: Link,
        *,
        client_id: str,
        clock: clocks.Clock,
        new_id: Callable[[], str],
        gone: Callable[[Held], None],
    ) -> None:
        self._link = link
        self._client_id = client_id
        self._clock = clock
        self._new_id = new_id
        self._gone = gone
        self._sequence = 0

    def report(self, held: Held) -> None:
        """Tell the server, unless it knows or is about to."""
        if held.status.body and held.status.hash() not in (held.said, held.posted):
            self._post(held, event.Action.UPDATE_REQUEST)

    async def keep_pace(self) -> None:
        """Wait while the server has many reports to take."""
        await self._link.keep_pace()

    def say_again(self, held: Held, said: Callable[[], None]) -> None:
        """Tell the server because it asked; `said` is called when it knows, unless there was more to say meanwhile."""
        self._post(held, event.Action.RESYNC_RESPONSE, said=said)

    def _post(self, held: Held, action: event.Action, *, said: Callable[[], None] = lambda: None) -> None:
        def write() -> event.Event:
            return self._event(held.reported(), action)

        def shorten() -> event.Event | None:
            short = reporting.without_values(held.status, now=instant.from_datetime(self._clock.now()))
            return self._event(held.wanted.with_status(short), action) if short is not None else None

        held.posted = held.status.hash()

        def sent(outgoing: event.Event) -> None:
            held.said = outgoing.optional_text(event.STATUS_HASH)
            if held.posted == held.said:
                held.posted = ""
            said()
            if held.status.is_deleted and held.status.hash() == held.said:
                self._gone(held)

        self._link.post(held.id, Letter(write=write, shorten=shorten, sent=sent))

    def _event(self, reported: work.ManifestWork, action: event.Action) -> event.Event:
        self._sequence = order.next_id(self._sequence, now_ms=round(self._clock.epoch() * 1000))
        now = instant.from_datetime(self._clock.now())
        stamp = codec.Stamp(id=self._new_id(), source=self._client_id, time=now)
        return codec.status_event(reported, action=action, sequence_id=str(self._sequence), stamp=stamp)
