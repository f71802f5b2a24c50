"""Compile the `orderBy` parameter of a list request to an ORDER BY clause.

The clause always ends with the ID: pages are stable only if no two rows compare equal.
"""

from maestropy.store.search.columns import Collection, resolve
from maestropy.store.search.compilation import check_text
from maestropy.store.search.errors import SearchError

_DIRECTIONS = {"asc": "", "desc": " DESC"}
_DEFAULT = "created_at"
_TIE_BREAKER = "id"


def compile_order(text: str, *, collection: Collection) -> str:
    """Return what follows ORDER BY for a comma list of `field`, `field asc` or `field desc`."""
    order_text = text.strip()
    check_text(order_text, parameter="orderBy")
    # A field named again cannot change the order any more.
    clauses: dict[str, str] = {}
    for item in (order_text or _DEFAULT).split(","):
        column, direction = _order(item, collection=collection)
        clauses.setdefault(column, direction)
    clauses.setdefault(f"{collection.table}.{_TIE_BREAKER}", "")
    return ", ".join(f"{column}{direction}" for column, direction in clauses.items())


def _order(item: str, *, collection: Collection) -> tuple[str, str]:
    name, _, direction = item.strip().partition(" ")
    if not name or (direction or "asc") not in _DIRECTIONS:
        raise SearchError(f"bad order value '{item}'")
    return resolve(name.split("."), collection=collection).sql, _DIRECTIONS[direction or "asc"]
