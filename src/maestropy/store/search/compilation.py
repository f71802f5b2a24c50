"""Compile the `search` parameter of a list request to a SQL condition.

The text shows its dialect: only the JSON path dialect has `->>` and `@>`. Texts that are too long or that PostgreSQL
cannot store are rejected before they are parsed.
"""

from maestropy.store.search import jsonb, rewrite, tsl
from maestropy.store.search.columns import Collection
from maestropy.store.search.emit import EVERYTHING, SqlCondition, emit
from maestropy.store.search.errors import SearchError
from maestropy.store.search.limits import MAX_BYTES


def compile_search(text: str, *, collection: Collection) -> SqlCondition:
    """Return the SQL condition of `text`, `TRUE` if it is empty; raises `SearchError`."""
    search = text.strip()
    if not search:
        return EVERYTHING
    check_text(search, parameter="search")
    dialect = jsonb if "->>" in search or "@>" in search else tsl
    return emit(rewrite.indexable(dialect.parse(search, collection=collection)))


def check_text(text: str, *, parameter: str) -> None:
    """Reject a list parameter that is too long or that PostgreSQL could not store as text."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise SearchError(f"{parameter} is not valid Unicode text") from None
    if size > MAX_BYTES:
        raise SearchError(f"{parameter} is {size} bytes long; at most {MAX_BYTES} are read")
    if "\0" in text:
        raise SearchError(f"{parameter} holds a NUL character, which no field contains")
