"""The only reader of clocks and the only maker of random ids; everything else is given them."""

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
    """Where the time comes from; tests put their own functions in."""

    epoch: Callable[[], float] = time.time
    """Seconds since 1970."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds that never go back."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.fromtimestamp(self.epoch(), tz=UTC)
