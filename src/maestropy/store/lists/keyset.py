"""Continue a list after its last item: by the values of its order, not by counting the items before.

The rows after an item are a sequence of segments, each of them one range of an index: first those that differ only in
the last field of the order, at the end those that differ in the first one. A single condition with OR would be read
from the beginning of the index. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from maestropy.store.search import ColumnType, OrderKey

Value = str | int | datetime | None

_CASTS = {ColumnType.TEXT: "text", ColumnType.BIGINT: "bigint", ColumnType.TIMESTAMPTZ: "timestamptz"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last item of a page, and what is known of the list so far."""

    values: tuple[Value, ...]
    """Of the fields of the order."""
    seen: int
    """Number of items until here."""
    total: int
    """As the first page had it; no page after it counts again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A condition; each `{}` stands for one of the parameters."""

    condition: str
    params: tuple[Value, ...]


def can_continue(keys: Sequence[OrderKey]) -> bool:
    """Return whether a list in this order has a continuation: the values of JSON fields are too large for a token."""
    return bool(keys) and all(key.column.type in _CASTS for key in keys)


def segments(keys: Sequence[OrderKey], values: Sequence[Value]) -> Iterator[Segment]:
    """Yield the segments after an item with these values, in the order of the list."""
    for index in reversed(range(len(keys))):
        equal = [_equal(key, value) for key, value in zip(keys[:index], values[:index], strict=True)]
        for behind in _behind(keys[index], values[index]):
            parts = [*equal, behind]
            yield Segment(
                condition=" AND ".join(part.condition for part in parts),
                params=tuple(param for part in parts for param in part.params),
            )


def _equal(key: OrderKey, value: Value) -> Segment:
    if value is None:
        return Segment(condition=f"{key.column.sql} IS NULL", params=())
    return Segment(condition=f"{key.column.sql} = {{}}::{_CASTS[key.column.type]}", params=(value,))


def _behind(key: OrderKey, value: Value) -> Iterator[Segment]:
    """Yield what follows a value: NULL is last in ascending order, and first in descending order."""
    column = key.column.sql
    if value is None:
        if key.is_descending:
            yield Segment(condition=f"{column} IS NOT NULL", params=())
        return
    sign = "<" if key.is_descending else ">"
    yield Segment(condition=f"{column} {sign} {{}}::{_CASTS[key.column.type]}", params=(value,))
    if not key.is_descending and key.column.name != "id":
        yield Segment(condition=f"{column} IS NULL", params=())
