"""Decide which works may be reconciled while the API server answers some requests slowly.

A lane is what requests about objects of one kind in one namespace have in common: an admission webhook may be slow for
a kind, or for a namespace. While a lane is slow, few works that need it are reconciled at a time, so that the others
find free workers. Pure: `state.slow_requests` measures and keeps the facts.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple


class Lane(NamedTuple):
    """Objects of one kind in one namespace."""

    group: str
    kind: str
    namespace: str
    """Empty for objects without a namespace."""


Lanes = frozenset[Lane]

WORKS_AT_ONCE = 2
"""How many works that need a slow lane are reconciled at a time."""
_SPREAD = 4
"""With so many slow lanes of one kind, or in one namespace, the whole kind or namespace is slow."""


def may_start(needed: Lanes, *, slow: Collection[Lane], running: Iterable[Lanes]) -> bool:
    """Return whether a work may be reconciled that needs some lanes, beside works that need those of `running`."""
    needed_slow = {lane for lane in needed if is_slow(lane, slow)}
    if not needed_slow:
        return True
    in_use = sum(
        1 for lanes in running if any(_are_related(lane, used, slow) for lane in needed_slow for used in lanes)
    )
    return in_use < WORKS_AT_ONCE


def is_slow(lane: Lane, slow: Collection[Lane]) -> bool:
    """Return whether a lane is slow: itself, or its whole kind or namespace."""
    return lane in slow or _is_kind_slow(lane, slow) or _is_namespace_slow(lane, slow)


def _are_related(lane: Lane, other: Lane, slow: Collection[Lane]) -> bool:
    """Return whether two lanes wait for the same: a slow lane, kind or namespace."""
    is_same_kind = lane[:2] == other[:2] and _is_kind_slow(lane, slow)
    is_same_namespace = lane.namespace == other.namespace and _is_namespace_slow(lane, slow)
    return lane == other or is_same_kind or is_same_namespace


def _is_kind_slow(lane: Lane, slow: Collection[Lane]) -> bool:
    return sum(1 for other in slow if other[:2] == lane[:2]) >= _SPREAD


def _is_namespace_slow(lane: Lane, slow: Collection[Lane]) -> bool:
    return bool(lane.namespace) and sum(1 for other in slow if other.namespace == lane.namespace) >= _SPREAD
