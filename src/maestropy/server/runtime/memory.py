"""Return freed memory to the operating system after a burst of calls.

The garbage collector runs rarely on purpose, and the C library keeps freed memory for later. After an attack or a
reconnecting fleet that would stay for hours, in a pod with a memory limit. On systems without /proc nothing happens.
"""

import asyncio
import ctypes
import gc
import resource
from pathlib import Path
from typing import Final

EVERY_SECONDS: Final = 5.0
_GROWTH_BYTES: Final = 48 * 2**20
_STILL_GROWING_BYTES: Final = 4 * 2**20
# What was in use at the last release may be free by now: after five minutes it is tried again.
_RUNS_UNTIL_RETRY: Final = 60
_STATM: Final = Path("/proc/self/statm")


class MemoryRelease:
    """Remembers how much memory the process needs without a burst."""

    def __init__(self) -> None:
        self._needed: int | None = None
        """Memory that was left after the last release."""
        self._lowest = 0
        """The lowest memory so far."""
        self._last = 0
        self._runs = 0

    async def run(self) -> None:
        """Release memory if the process has grown, and has stopped growing."""
        resident = _resident_bytes()
        if self.is_due(resident):
            gc.collect()
            # In a thread: it takes milliseconds for each hundred megabytes, without the lock of the interpreter.
            await asyncio.to_thread(_trim)
            self.released(_resident_bytes())

    def is_due(self, resident: int) -> bool:
        """Return whether a burst is over."""
        is_growing = resident - self._last >= _STILL_GROWING_BYTES
        self._last = resident
        self._runs += 1
        if self._needed is None:
            self._lowest = self._needed = resident
        self._lowest, self._needed = min(self._lowest, resident), min(self._needed, resident)
        baseline = self._lowest if self._runs >= _RUNS_UNTIL_RETRY else self._needed
        return not is_growing and resident - baseline > _GROWTH_BYTES

    def released(self, resident: int) -> None:
        """Note what is left: it is in use."""
        self._needed = self._last = resident
        self._runs = 0


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _trim() -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only in the GNU C library
    if trim is not None:
        trim(0)
