"""Read the clock and create random IDs. No other module does; all others get time and IDs as arguments."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def new_id() -> str:
    """Return a random UUID (version 4)."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Clock:
    """The source of time; tests pass their own functions."""

    epoch: Callable[[], float] = time.time
    """Seconds since 1970."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.fromtimestamp(self.epoch(), tz=UTC)
