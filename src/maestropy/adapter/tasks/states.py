"""Decide the state of a resource of a task, and whether a generation may be written. Pure.

| state | meaning |
|---|---|
| `present` | the object was read back |
| `confirmed_deleted` | there is no object, and nothing is under way; also if it was never written |
| `unsynced` | a write or a deletion is under way, and no object was read back yet |
"""

from dataclasses import dataclass

PRESENT = "present"
CONFIRMED_DELETED = "confirmed_deleted"
UNSYNCED = "unsynced"


@dataclass(frozen=True, slots=True)
class WriteCreate:
    """Nothing was written yet."""


@dataclass(frozen=True, slots=True)
class WriteUpdate:
    """A newer generation is written."""

    reason: str


@dataclass(frozen=True, slots=True)
class WriteSkip:
    """Nothing is written."""

    reason: str
    is_stale: bool = False
    """Whether an older generation was refused."""


Write = WriteCreate | WriteUpdate | WriteSkip


def decide_write(desired: int, *, written: int | None, mirrored: int | None) -> Write:
    """Decide about a generation, given the last one written and the one that was read back.

    An old event must not roll a resource back: a lower generation than either is refused.
    """
    if written is None:
        return WriteCreate()
    is_behind_mirror = mirrored is not None and desired < mirrored
    if desired < written or is_behind_mirror:
        newer = max(written, mirrored or 0)
        return WriteSkip(f"stale generation: {desired} is older than {newer}", is_stale=True)
    if desired == written:
        return WriteSkip(f"generation {desired} was written already")
    return WriteUpdate(f"generation {written} → {desired}")


def state_of(*, is_stored: bool, has_object: bool) -> str:
    """Return the state of a resource: whether a request for it is stored, and whether its object was read back."""
    if has_object:
        return PRESENT
    return UNSYNCED if is_stored else CONFIRMED_DELETED


def has_value(state: str, *, is_remote: bool) -> bool:
    """Return whether expressions see a member of `resources` for a resource.

    A resource of a remote transport has an empty object while it is unsynced, as in HyperFleet. A task without a
    transport was written for objects that can be read at once: for it, `has(resources.x)` means that the object exists.
    """
    return state == PRESENT or (state == UNSYNCED and is_remote)


def generation_in(text: object) -> int | None:
    """Return the number of a generation annotation; None unless it is a whole number above 0."""
    valid = isinstance(text, str) and text.isascii() and text.isdigit() and int(text) > 0
    return int(str(text)) if valid else None
