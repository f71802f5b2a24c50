"""How long a client may take over HTTP: to send a request whole, and to read what it asked for.

uvicorn waits for ever in both cases, and every connection that is held open costs memory and a file. Whoever is too
slow is cut off: there is nobody to tell. A long answer to a reader that reads is never cut.
"""

import asyncio
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds."""

    read: float
    """From the connection, or the first byte of a later request, to the last byte of the request."""
    write: float
    """In which a client must take something out of a full buffer."""


class Impatient(HttpToolsProtocol):
    """A connection that is cut when the patience is over."""

    patience: Patience

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        if self._reading is None:
            self._expect_request()
        super().on_message_begin()

    def on_message_complete(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        self._writing = self.loop.call_later(self.patience.write, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        super().resume_writing()

    def _expect_request(self) -> None:
        self._reading = self.loop.call_later(self.patience.read, self.transport.abort)

    def _stop(self) -> None:
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()


def protocol(patience: Patience) -> type[Impatient]:
    """Return what makes such connections; uvicorn wants a class."""
    return type("Impatient", (Impatient,), {"patience": patience})
