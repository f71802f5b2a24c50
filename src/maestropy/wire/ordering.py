"""Compare sequence IDs of status updates and resource versions of spec requests.

A sequence ID is a snowflake: 63 bits of `milliseconds since 2010 | node | step`, written in decimal. Only IDs of the
same node can be compared, so every agent uses node 1. The module does not read the clock: the time is an argument.
"""

from typing import NamedTuple

from maestropy.wire import errors

EPOCH_MS = 1288834974657
AGENT_NODE = 1
AHEAD_MAX_MS = 300_000
"""How far a sequence ID may be ahead of the time of the database."""

_STEP_BITS = 12
_NODE_BITS = 10
_STEP_MAX = (1 << _STEP_BITS) - 1
_NODE_MAX = (1 << _NODE_BITS) - 1
_TIME_SHIFT = _STEP_BITS + _NODE_BITS
_ID_MAX = (1 << 63) - 1
_ID_DIGITS = 19


class Snowflake(NamedTuple):
    """The parts of a sequence ID."""

    time_ms: int
    """Milliseconds since 1970."""
    node: int
    step: int

    def __int__(self) -> int:
        return (self.time_ms - EPOCH_MS) << _TIME_SHIFT | self.node << _STEP_BITS | self.step

    def __str__(self) -> str:
        return str(int(self))


def parse(text: str) -> Snowflake:
    """Parse a sequence ID."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _ID_DIGITS and int(text) <= _ID_MAX):
        raise errors.MalformedMessage(f"sequenceid {text[:64]!r} is not a snowflake: send a decimal number of 63 bits")
    return split(int(text))


def split(value: int) -> Snowflake:
    """Split a sequence ID into its parts."""
    return Snowflake((value >> _TIME_SHIFT) + EPOCH_MS, value >> _STEP_BITS & _NODE_MAX, value & _STEP_MAX)


def is_newer(candidate: str, than: str) -> bool:
    """Return whether the sequence ID `candidate` is newer than `than`, the last accepted one (empty: none)."""
    if candidate and not than:
        return True
    newer, older = parse(candidate), parse(than)
    if newer.node != older.node:
        raise errors.InvalidContent(
            f"Sequence IDs are not from the same node: sequenceid {candidate} has node {newer.node}, "
            f"the stored one node {older.node}; every agent must use node {AGENT_NODE}"
        )
    return newer > older


def is_ahead(sequence_id: str, *, now_ms: int) -> bool:
    """Return whether a sequence ID is so far ahead of the time that a wrong clock must have made it."""
    return parse(sequence_id).time_ms - now_ms > AHEAD_MAX_MS


def next_id(last: int, *, now_ms: int, node: int = AGENT_NODE) -> int:
    """Return the sequence ID that follows `last` (0: none yet).

    When the clock goes back, or more than 4096 IDs are needed in one millisecond, the time part runs ahead of the
    clock: the server would ignore status updates with an older sequence ID until the clock caught up.
    """
    now = max(now_ms - EPOCH_MS, 0)
    last_time = last >> _TIME_SHIFT
    if now > last_time or last == 0:
        time, step = now, 0
    elif last & _STEP_MAX < _STEP_MAX:
        time, step = last_time, (last & _STEP_MAX) + 1
    else:
        time, step = last_time + 1, 0
    return time << _TIME_SHIFT | node << _STEP_BITS | step


def is_current(sent: int, stored: int) -> bool:
    """Return whether a request based on version `sent` may replace version `stored`; 0 matches any version."""
    return sent in (0, stored)
