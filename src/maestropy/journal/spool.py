"""Collect lines and hand them to the sink in as few writes as possible, without ever failing the writer.

Lines of a few milliseconds leave in one write; without an event loop each line leaves at once.
What cannot be written (a closed or stuck stderr) is kept up to a bound, then dropped and counted.
"""

import threading
import weakref
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable
from typing import Final, Protocol

MAX_BYTES: Final = 1 << 20
"""Lines waiting beyond this are written at once, even in the middle of a turn; a stuck sink costs no more memory."""

GATHER_SECONDS: Final = 0.005
"""How long a line may wait for company. A busy server turns its loop thousands of times a second, and a write costs
more than the line in it; what a kill -9 can take along is this much."""

RETRY_SECONDS: Final = 0.1
"""Pause before a full pipe is tried again. Short enough to be unnoticed, long enough not to spin."""


class Sink(Protocol):
    """A binary stream without a buffer of its own: it says how much it took, or None when it can take nothing."""

    def write(self, data: bytes, /) -> int | None:
        """Take `data`, or the beginning of it."""


class Spool:
    """The lines between the journal and its sink."""

    def __init__(self, sink: Sink, *, tell_lost: Callable[[int], bytes]) -> None:
        """`tell_lost` makes the line that reports how many were dropped."""
        self._sink = sink
        self._tell_lost = tell_lost
        self._lines: list[bytes] = []
        self._size = 0
        self._lost = 0
        self._flushing_on: AbstractEventLoop | None = None
        # Threads flush too. Re-entrant, because a signal handler may speak while this thread holds it.
        self._lock = threading.RLock()
        # Runs at exit, and when the spool is forgotten: the last words are usually the interesting ones.
        weakref.finalize(self, _drain, sink, self._lines)

    def add(self, line: bytes) -> None:
        """Keep `line` until the next flush, which is due in a moment."""
        # No lock here: appending is one step, and `flush` takes only what it has seen.
        size = self._size + len(line)
        if size > MAX_BYTES:
            self.flush()
            if self._lines:  # still stuck
                self._lost += 1
                return
            size = len(line)
        self._lines.append(line)
        self._size = size
        try:
            loop = get_running_loop()
        except RuntimeError:
            self.flush()
            return
        # A loop that ended without its last turn never flushed; compare loops instead of keeping a flag.
        if loop is not self._flushing_on:
            self._flushing_on = loop
            loop.call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what waits, as far as the sink takes it."""
        with self._lock:
            self._flushing_on = None
            if not self._lines:
                return
            _drain(self._sink, self._lines)
            if self._lost and not self._lines:
                self._lines.append(self._tell_lost(self._lost))
                self._lost = 0
                _drain(self._sink, self._lines)
            self._size = sum(map(len, self._lines))
            if self._lines:
                self._retry_later()

    def _retry_later(self) -> None:
        try:
            loop = get_running_loop()
        except RuntimeError:
            return  # the next line, or the exit, tries again
        self._flushing_on = loop
        loop.call_later(RETRY_SECONDS, self.flush)


def _drain(sink: Sink, lines: list[bytes]) -> None:
    """Write `lines` and leave in the list only what a sink that would block did not take."""
    count = len(lines)
    data = b"".join(lines[:count])
    rest = _write(sink, data)
    # Other threads may have appended meanwhile: replace only what was written.
    lines[:count] = [rest] if rest else []


def _write(sink: Sink, data: bytes) -> bytes:
    """Return what `sink` did not take because it would have had to wait."""
    while data:
        try:
            taken = sink.write(data)
        except BlockingIOError as blocked:
            return data[blocked.characters_written :]
        except (OSError, ValueError):
            return b""  # closed: nobody listens, and that is no reason to stop working
        if taken is None:
            return data
        data = data[taken:]
    return b""
