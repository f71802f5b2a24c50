"""Parse the parameters of a list: `page`, `size`, `search`, `orderBy`, `fields`.

Pure. As in the Go server, a value that is not a number counts as 0.
"""

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import QueryParams

from maestropy.store import resource_lists
from maestropy.store import search as searches

MAX_SIZE: Final = 65500
DEFAULT_SIZE: Final = 100
_MAX_PAGE: Final = 2**31 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_LONG_NUMBER: Final = re.compile(r"([+-]?)[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListParameters:
    """The parameters of a list request."""

    page: int = 1
    size: int = DEFAULT_SIZE
    search: str = ""
    order_by: str = ""
    fields: str = ""

    @property
    def offset(self) -> int:
        """Number of items before the page; pages below the first count as the first."""
        return max(self.page - 1, 0) * self.size

    def query(self, collection: searches.Collection) -> resource_lists.ListQuery:
        """Return the compiled query for the store; raises `SearchError`."""
        condition = searches.compile_search(self.search, collection=collection)
        return resource_lists.ListQuery(
            condition=condition.sql,
            params=tuple(condition.params),
            order=searches.compile_order(self.order_by, collection=collection),
            offset=self.offset,
            limit=self.size,
        )


def read(query: QueryParams) -> ListParameters:
    """Return the parameters of a query string; the first of a repeated one counts."""
    values = {name: value for name, value in reversed(query.multi_items()) if value}
    page = _number(values.get("page", "1"))
    size = _number(values.get("size", str(DEFAULT_SIZE)))
    return ListParameters(
        page=max(-_MAX_PAGE, min(page, _MAX_PAGE)),
        size=size if 0 <= size <= MAX_SIZE else MAX_SIZE,
        search=values.get("search", ""),
        order_by=values.get("orderBy", ""),
        fields=values.get("fields", ""),
    )


def _number(text: str) -> int:
    trimmed = text.strip()
    if _NUMBER.fullmatch(trimmed):
        return int(trimmed)
    if too_long := _LONG_NUMBER.fullmatch(trimmed):
        return -_MAX_PAGE if too_long[1] == "-" else _MAX_PAGE
    return 0
