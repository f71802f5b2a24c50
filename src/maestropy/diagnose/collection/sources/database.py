"""Read a Maestro database for an archive: works, deletions, pending events, instances, history, holds, facts.

Read-only, through any statement runner of the tracer: a DSN, or psql in a pod. A table that a database of a Go server
does not have is no failure.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.staging import DocumentFile, Staging
from maestropy.trace.errors import NoAccess
from maestropy.trace.work import query, statements
from maestropy.trace.work.readers import StatementRunner

MOST_WORKS: Final = 20_000
"""Works of a collection; with more, it has to be limited to a consumer."""
_PAGE: Final = 500
_TOMBSTONES: Final = 2000
_OPTIONAL: Final = {"history": "maestropy_history", "holds": "maestropy_holds", "pauses": "maestropy_pauses"}
"""Tables that only databases of this project have."""


class TooManyWorks(Exception):
    """There are more works than are collected; those that were read are in the archive."""


async def collect_works(runner: StatementRunner, staging: Staging, *, scope: Scope) -> int:
    """Write the rows of works and the newest deletions; return how many works there are."""
    with DocumentFile(staging, "database/rows.jsonl") as rows:
        async for document in _rows(runner, scope):
            if document.get("trace") == "row":
                rows.add(document)
            if rows.count > MOST_WORKS:
                break
    if not scope.work:
        listed = statements.tombstones(consumer=scope.consumer, since=scope.since_text, size=_TOMBSTONES)
        staging.documents("database/tombstones.jsonl", await runner.documents(listed.sql, listed.parameters))
    if rows.count > MOST_WORKS:
        raise TooManyWorks
    return rows.count


async def _rows(runner: StatementRunner, scope: Scope) -> AsyncIterator[Mapping[str, Any]]:
    if scope.work:
        identifier = query.named_by(scope.work)
        identifier["consumer"] = scope.consumer
        found = statements.statement(query.from_identifier(**identifier))
        for document in await runner.documents(found.sql, found.parameters):
            yield document
        return
    after = ""
    while True:
        page = statements.page(consumer=scope.consumer, after=after, size=_PAGE)
        documents = await runner.documents(page.sql, page.parameters)
        for document in documents:
            yield document
        if len(documents) < _PAGE:
            return
        after = str(documents[-1].get("id"))


async def collect_facts(runner: StatementRunner, staging: Staging, *, scope: Scope, now: float) -> Sequence[str]:
    """Write what the database knows besides works; return sentences about what it does not have."""
    facts = await runner.documents(_statements()["facts"], ())
    # The collector's own time beside the database's: their difference shows a clock that is off.
    staging.documents("database/facts.jsonl", [{**fact, "collector_time": now} for fact in facts])
    tables = {str(name) for fact in facts for name in fact.get("tables") or ()}
    missing: list[str] = []
    parameters = {
        "pending_events": (scope.consumer,),
        "instances": (),
        "consumers": (scope.consumer,),
        "migrations": (),
        "holds": (scope.consumer,),
        "pauses": (scope.consumer,),
        "history": (scope.consumer, scope.since_text, scope.until_text),
    }
    for name, values in parameters.items():
        if name in _OPTIONAL and _OPTIONAL[name] not in tables:
            missing.append(f"no {name}: the database has no table {_OPTIONAL[name]}, as that of a Go server")
            continue
        try:
            staging.documents(f"database/{name}.jsonl", await runner.documents(_statements()[name], values))
        except NoAccess as error:
            missing.append(f"{name}: {error}")
    return missing


@cache
def _statements() -> Mapping[str, str]:
    content = files("maestropy.diagnose.collection").joinpath("queries.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- name: (\w+)\n", content, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
