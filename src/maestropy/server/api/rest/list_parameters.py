"""Parse the parameters of a list: `page`, `size`, `search`, `orderBy`, `fields`, `continue`.

Pure. As in the Go server, a value that is not a number counts as 0.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from starlette.datastructures import QueryParams

from maestropy.server.api.rest import continuation
from maestropy.store import search as searches
from maestropy.store.lists.query import ListQuery
from maestropy.store.search import serving

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
    token: str = ""
    """The `continue` parameter: the page after the one that the token came with, in place of `page`."""

    @property
    def offset(self) -> int:
        """Number of items before the page; pages below the first count as the first."""
        return max(self.page - 1, 0) * self.size

    @property
    def fingerprint(self) -> str:
        """What ties a token to this list."""
        return continuation.fingerprint(self.search, self.order_by)

    def query(self, collection: searches.Collection) -> ListQuery:
        """Return the compiled query for the store; raises `SearchError`."""
        condition = searches.compile_search(self.search, collection=collection)
        keys = searches.order_keys(self.order_by, collection=collection)
        slow_order = "" if condition.reach is searches.Reach.MATCHES else serving.slow_order(keys[0].column.name)
        return ListQuery(
            condition=condition.sql,
            params=tuple(condition.params),
            order=", ".join(key.sql for key in keys),
            offset=self.offset,
            limit=self.size,
            keys=keys,
            reach=condition.reach,
            is_ordered_by_index=condition.is_ordered_by_index,
            reads_documents=condition.reads_documents,
            unserved=(*condition.unserved, *([slow_order] if slow_order else [])),
        )

    def continued(self, query: ListQuery) -> tuple[ListQuery, int]:
        """Return the query of the page that `continue` asks for, and the number of the page; raises `SearchError`."""
        if not self.token:
            return query, self.page
        asked = continuation.decode(self.token, fingerprint=self.fingerprint, keys=query.keys)
        return replace(query, offset=0, after=asked.position), asked.page


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
        token=values.get("continue", ""),
    )


def _number(text: str) -> int:
    trimmed = text.strip()
    if _NUMBER.fullmatch(trimmed):
        return int(trimmed)
    if too_long := _LONG_NUMBER.fullmatch(trimmed):
        return -_MAX_PAGE if too_long[1] == "-" else _MAX_PAGE
    return 0
