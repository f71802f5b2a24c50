"""Buffer log lines and write them to the sink in few writes; a sink that fails never fails the logging code.

The lines of a few milliseconds are written together; without an event loop each line is written at once.
Lines that a blocked standard error does not accept are kept up to a limit, then dropped and counted.
"""

import threading
import weakref
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable
from typing import Final, Protocol

MAX_BYTES: Final = 1 << 20
"""The size of the buffer; when it is full, it is written at once. A blocked sink costs no more memory than this."""

GATHER_SECONDS: Final = 0.005
"""How long a line may stay in the buffer. A write costs more than formatting a line, and a busy server logs thousands
of lines a second; `kill -9` loses the lines of this interval at most."""

RETRY_SECONDS: Final = 0.1
"""Pause before a full pipe is tried again."""


class LogSink(Protocol):
    """An unbuffered binary stream."""

    def write(self, data: bytes, /) -> int | None:
        """Write `data` or a part of it; return the number of bytes written, or None when it would block."""


class Spool:
    """The buffer between a journal and its sink."""

    def __init__(self, sink: LogSink, *, format_lost: Callable[[int], bytes]) -> None:
        """Write to `sink`; `format_lost` formats the line that reports the number of dropped lines."""
        self._sink = sink
        self._format_lost = format_lost
        self._lines: list[bytes] = []
        self._size = 0
        self._lost = 0
        self._flushing_on: AbstractEventLoop | None = None
        # Threads flush too. Re-entrant, because a signal handler may log while this thread holds the lock.
        self._lock = threading.RLock()
        # Runs at exit and at garbage collection: the last lines are usually the interesting ones.
        weakref.finalize(self, _drain, sink, self._lines)

    def add(self, line: bytes) -> None:
        """Buffer `line` until the next flush, which follows within `GATHER_SECONDS`."""
        # No lock here: appending is atomic, and `flush` removes only the lines it has written.
        size = self._size + len(line)
        if size > MAX_BYTES:
            self.flush()
            if self._lines:  # the sink is still blocked
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
        # A loop may end before its scheduled flush, so the loop is compared instead of a flag.
        if loop is not self._flushing_on:
            self._flushing_on = loop
            loop.call_later(GATHER_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the buffered lines, as far as the sink accepts them."""
        with self._lock:
            self._flushing_on = None
            if not self._lines:
                return
            _drain(self._sink, self._lines)
            if self._lost and not self._lines:
                self._lines.append(self._format_lost(self._lost))
                self._lost = 0
                _drain(self._sink, self._lines)
            self._size = sum(map(len, self._lines))
            if self._lines:
                self._retry_later()

    def _retry_later(self) -> None:
        try:
            loop = get_running_loop()
        except RuntimeError:
            return  # the next line, or the exit, retries
        self._flushing_on = loop
        loop.call_later(RETRY_SECONDS, self.flush)


def _drain(sink: LogSink, lines: list[bytes]) -> None:
    """Write `lines` and leave in the list only what a blocked sink did not accept."""
    count = len(lines)
    data = b"".join(lines[:count])
    unwritten = _write(sink, data)
    # Other threads may have appended lines meanwhile: replace only those that were written.
    lines[:count] = [unwritten] if unwritten else []


def _write(sink: LogSink, data: bytes) -> bytes:
    """Write `data` and return the part that `sink` did not accept because it would block."""
    while data:
        try:
            written = sink.write(data)
        except BlockingIOError as blocked:
            return data[blocked.characters_written :]
        except (OSError, ValueError):
            return b""  # the sink is closed; the process works on without a log
        if written is None:
            return data
        data = data[written:]
    return b""
