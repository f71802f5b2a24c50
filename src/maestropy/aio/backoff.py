"""How long to wait before the next attempt."""

from collections.abc import Callable, Iterator


def delays(*, base: float, factor: float, cap: float, jitter: Callable[[], float]) -> Iterator[float]:
    """Yield growing delays in seconds, each up to twice its nominal length by `jitter` (0 to 1), never above `cap`."""
    nominal = base
    while True:
        yield min(cap, nominal * (1 + jitter()))
        nominal = min(cap, nominal * factor)
