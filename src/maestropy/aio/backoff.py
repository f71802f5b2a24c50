"""Compute the delays between retries: exponential backoff with jitter."""

import random
from collections.abc import Callable, Iterator

jitter: Callable[[], float] = random.Random().random  # noqa: S311 - no secret, only spread
"""Random numbers from 0 to 1. Not those of the module `random`: a program that seeds them, as tests and simulations do,
would make all its clients wait equally long, and would get other numbers itself."""


def delays(*, base: float, factor: float, cap: float, jitter: Callable[[], float] = jitter) -> Iterator[float]:
    """Yield growing delays in seconds, never above `cap`; `jitter` returns 0 to 1 and at most doubles a delay."""
    nominal = base
    while True:
        yield min(cap, nominal * (1 + jitter()))
        nominal = min(cap, nominal * factor)
