"""Build the SQL statement for a query: constant text from `queries.sql`, identifiers as parameters.

The same statement goes to a driver, which binds the parameters, and to psql in a pod, which gets them as literals of a
prepared statement (`trace.psql`). A list of identifiers is one JSON parameter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import assert_never

import orjson

from maestropy.trace.work.query import WorkQuery

MOST = 500
"""Maximum number of rows of a search that is not by ID; with more, the report says how many there are."""
NEWEST = 10
"""Maximum number of works that are shown for a part of a name."""
COUNTED = 10_000
"""Matches are counted up to this number."""
SCAN = "500 milliseconds"
"""How long a search that no index helps may scan, so that the database is busy for less than a second."""
_WHOLE_SCAN = "1 day"
"""For a search of all works; the statement timeout ends it earlier."""
_PART = re.compile(r"<([a-z_]+)>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement and its parameters, all of them text."""

    sql: str
    parameters: tuple[str, ...]


def origins(query: WorkQuery) -> Statement:
    """Return the statement that lists the sources and consumers whose works may have a name."""
    return named("origins", query.consumer, query.source)


def statement(query: WorkQuery, *, computed_ids: Sequence[str] = ()) -> Statement:
    """Return the statement of a query; `computed_ids` are the IDs that works of the requested names would have."""
    narrowing = (query.consumer, query.source)
    every = orjson.dumps(query.values).decode()
    scan = _WHOLE_SCAN if query.searches_all else SCAN
    match query.entry:
        case "resource-id" | "file":
            return named("by_id", *narrowing, every)
        case "applied-work" | "work-name":
            # Applied works carry the resource ID or, before January 2026, the user's work name.
            ids = query.values if query.entry == "applied-work" else computed_ids
            return named("by_work_name", *narrowing, every, scan, orjson.dumps(ids).decode())
        case "name-like":
            return named("by_name_part", *narrowing, query.values[0], scan)
        case "label":
            key, value = query.values
            return named("by_label", *narrowing, key, scan, value)
        case "op-id":
            return named("by_operation", *narrowing, query.values[0], scan)
        case "manifest":
            manifest = query.manifest
            assert manifest is not None
            kinds = orjson.dumps(manifest.kinds).decode()
            sought = (manifest.name, manifest.namespace, manifest.group)
            return named("by_manifest", *narrowing, kinds, scan, *sought)
        case unreachable:
            assert_never(unreachable)


def page(*, consumer: str, after: str, size: int) -> Statement:
    """Return the statement that reads one page of all works, in the order of their IDs."""
    return named("page", consumer, "", after, str(size))


def tombstones(*, consumer: str, since: str, size: int) -> Statement:
    """Return the statement that reads the newest confirmed deletions."""
    return named("tombstones", consumer, "", since, str(size))


def named(name: str, *parameters: str) -> Statement:
    """Return a statement of `queries.sql`."""
    return Statement(sql=_statements()[name], parameters=parameters)


@cache
def _statements() -> Mapping[str, str]:
    """Read the file once: statements by name, with their parts inserted."""
    content = files("maestropy.trace.work").joinpath("queries.sql").read_text(encoding="utf-8")
    sections = re.split(r"^-- (part|name): (\w+)\n", content, flags=re.MULTILINE)[1:]
    texts = {name: _without_comments(body) for name, body in zip(sections[1::3], sections[2::3], strict=True)}
    return {name: _with_parts(body, texts) for name, body in texts.items()}


def _with_parts(body: str, texts: Mapping[str, str]) -> str:
    """Insert parts, also those that parts name."""
    while _PART.search(body):
        body = _PART.sub(lambda match: texts[match[1]], body)
    return body


def _without_comments(body: str) -> str:
    return "\n".join(line for line in body.strip().splitlines() if not line.startswith("--"))
