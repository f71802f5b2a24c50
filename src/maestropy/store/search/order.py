"""Compile the `orderBy` parameter of a list request to an ORDER BY clause.

The clause always ends with the ID: pages are stable only if no two rows compare equal.
"""

from dataclasses import dataclass

from maestropy.store.search.columns import Collection, Column, resolve
from maestropy.store.search.compilation import check_text
from maestropy.store.search.errors import SearchError

_DIRECTIONS = frozenset({"asc", "desc"})
_DEFAULT = "created_at"
_TIE_BREAKER = "id"
_RULE = "write a field, or a field with asc or desc after one space, in lower case; a comma between several"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKey:
    """One field of an order."""

    column: Column
    is_descending: bool = False

    @property
    def sql(self) -> str:
        """The field in an ORDER BY clause."""
        return f"{self.column.sql}{' DESC' if self.is_descending else ''}"


def order_keys(text: str, *, collection: Collection) -> tuple[OrderKey, ...]:
    """Return the fields of a comma list of `field`, `field asc` or `field desc`, ending with the ID."""
    order_text = text.strip()
    check_text(order_text, parameter="orderBy")
    # A field named again cannot change the order any more.
    keys: dict[str, OrderKey] = {}
    for item in (order_text or _DEFAULT).split(","):
        key = _order(item, collection=collection)
        keys.setdefault(key.column.name, key)
    keys.setdefault(_TIE_BREAKER, OrderKey(column=resolve([_TIE_BREAKER], collection=collection)))
    return tuple(keys.values())


def compile_order(text: str, *, collection: Collection) -> str:
    """Return what follows ORDER BY for a comma list of `field`, `field asc` or `field desc`."""
    return ", ".join(key.sql for key in order_keys(text, collection=collection))


def _order(item: str, *, collection: Collection) -> OrderKey:
    name, _, direction = item.strip().partition(" ")
    if not name or (direction or "asc") not in _DIRECTIONS:
        raise SearchError(f"bad order value '{item}'; {_RULE}")
    column = resolve(name.split("."), collection=collection, has_paths=False)
    return OrderKey(column=column, is_descending=direction == "desc")
