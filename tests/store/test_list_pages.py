"""Pages of a list on a real PostgreSQL: rewritten searches, totals, continuation, and what ends a long search."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maestropy.server.api.rest import continuation
from maestropy.server.api.rest.list_parameters import ListParameters
from maestropy.store import search
from maestropy.store.lists import outline
from maestropy.store.search import emit, jsonb, rewrite
from tests.store import list_database
from tests.store.list_database import Run

START = datetime(2026, 1, 1, tzinfo=UTC)
VALUES = ["x", "y", "xy", "1", "1.0", "true", "null", "", "ü", '"x"', '{"a": 1}', 1, 1.0, True, None, {"a": 1}, ["x"]]
"""What a label may hold in a database that others write to; several of them print as the same text."""


def payloads() -> Iterator[Any]:
    for number, value in enumerate(VALUES):
        yield {"metadata": {"name": f"n{number}", "labels": {"a": value, "b": "x"}}}
        yield {"metadata": {"name": value, "labels": {"b": value}}}
    yield from (None, {}, [], {"metadata": None}, {"metadata": []}, {"metadata": {"labels": []}}, {"metadata": "x"})
    yield from ({"metadata": {"labels": [{"a": "x"}]}}, {"metadata": {"labels": "x"}}, {"metadata": {"labels": {}}})
    yield from ([{"metadata": {"name": "x"}}], {"metadata": {"name": {"a": 1}, "labels": {"a": {"b": "x"}}}})


@pytest.fixture(scope="module")
def database() -> Iterator[Run]:
    with list_database.running() as run:

        async def fill(connection: asyncpg.Connection) -> None:
            await connection.execute("INSERT INTO consumers (id, name) VALUES ('1', 'c1'), ('2', 'c2')")
            for number, payload in enumerate(payloads()):
                # Several resources of one moment, and some without one.
                created = None if number % 11 == 10 else START + timedelta(seconds=number // 4)
                row = (f"r{number:02}", created, number % 3, ["c1", "c2", None][number % 3], json.dumps(payload))
                await connection.execute(
                    "INSERT INTO resources (id, name, created_at, version, consumer_name, source, payload)"
                    " VALUES ($1, $1, $2, $3, $4, 's', $5::jsonb)",
                    *row,
                )

        run(fill)
        yield run


# Rewritten and written searches find the same rows.


def quoted(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


texts = st.one_of(
    st.sampled_from([value if isinstance(value, str) else json.dumps(value) for value in VALUES]), st.text(max_size=3)
).filter(lambda text: "\0" not in text and "\\" not in text)
keys = st.sampled_from(["a", "b", "c", ""])
paths = st.one_of(
    keys.map(lambda key: f"payload->'metadata'->'labels'->>'{key}'"),
    st.just("payload->'metadata'->>'name'"),
    st.just("payload->'metadata'->>'labels'"),
)
documents = st.one_of(
    st.dictionaries(keys, st.sampled_from(VALUES), max_size=2),
    st.builds(lambda labels: {"labels": labels}, st.dictionaries(keys, st.sampled_from(VALUES), max_size=2)),
    st.builds(lambda name: {"name": name}, st.sampled_from(VALUES)),
)
terms = st.one_of(
    st.tuples(paths, st.sampled_from(["=", "<>", " like ", " ilike "]), texts.map(quoted)).map("".join),
    st.builds(
        lambda path, word, values: f"{path}{word}({','.join(map(quoted, values))})",
        paths,
        st.sampled_from([" in ", " not in "]),
        st.lists(texts, min_size=1, max_size=3),
    ),
    st.builds(
        lambda path, document: f"{path}@>{quoted(json.dumps(document))}",
        st.sampled_from(["payload->'metadata'", "payload->'metadata'->'labels'"]),
        documents,
    ),
    documents.map(lambda document: f"payload@>{quoted(json.dumps({'metadata': document}))}"),
    st.sampled_from(["name like 'r0%'", "consumer_name='c1'", "version>'0'", "consumer_name like 'c%'"]),
)
searches = st.recursive(
    terms,
    lambda inner: st.builds(lambda a, word, b: f"({a} {word} {b})", inner, st.sampled_from(["and", "or"]), inner),
    max_leaves=4,
)


def found(database: Run, condition: search.SqlCondition) -> list[str]:
    statement = f"SELECT id FROM resources WHERE {condition.sql} ORDER BY id"
    return [row["id"] for row in database(lambda connection: connection.fetch(statement, *condition.params))]


@pytest.mark.long
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=searches.filter(lambda text: "->>" in text or "@>" in text))
def test_rewritten_search_finds_what_was_written(database: Run, text: str) -> None:
    try:
        written = jsonb.parse(text, collection=search.RESOURCES)
        literal = emit.emit(written)
    except search.SearchError:
        return
    assert found(database, emit.emit(rewrite.indexable(written))) == found(database, literal)


@pytest.mark.parametrize(
    "text", ["payload->'metadata'->'labels'->>'a'='x'", "payload->'metadata'->'labels'->>'a'in('1')"]
)
def test_label_search_is_rewritten(text: str) -> None:
    assert " @> " in search.compile_search(text, collection=search.RESOURCES).sql


# Pages: all orders, all sizes, by number and by token.

orders = st.lists(
    st.tuples(
        st.sampled_from(["created_at", "version", "consumer_name", "name", "deleted_at", "source"]),
        st.sampled_from(["", " asc", " desc"]),
    ).map("".join),
    max_size=3,
).map(",".join)
conditions = st.sampled_from(
    ["", "consumer_name = 'c1'", "version > 0", "source = 's'", "name like 'r1%'", "name = 'none'", "version > 7",
     "payload->'metadata'->'labels'->>'b'='x'"]
)  # fmt: skip


def whole(database: Run, parameters: ListParameters) -> list[str]:
    query = parameters.query(search.RESOURCES)
    statement = f"SELECT id FROM resources WHERE {query.condition} ORDER BY {query.order}"
    return [row["id"] for row in database(lambda connection: connection.fetch(statement, *query.params))]


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=conditions,
    order=orders,
    size=st.integers(1, 20),
    few=st.sampled_from([0, 3, 10_000]),
    exact=st.sampled_from([0, 9, 100_000]),
)
def test_pages_contain_the_list_and_the_total_says_whether_there_is_more(
    database: Run, text: str, order: str, size: int, few: int, exact: int
) -> None:
    ids = whole(database, ListParameters(search=text, order_by=order))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outline, "FEW_MATCHES", few)
        patch.setattr(outline, "EXACT_TOTAL", exact)
        for is_continued in (False, True):
            token, number = "", 1
            collected: list[str] = []
            while True:
                parameters = ListParameters(
                    search=text, order_by=order, size=size, page=1 if is_continued else number, token=token
                )
                page = database(partial(list_database.page, parameters=parameters))
                collected += [resource_id for resource_id, _ in page.entries]
                has_more = len(collected) < len(ids)
                assert (page.total > len(collected)) == has_more
                assert not page.is_exact or page.total == len(ids)
                assert (page.last is not None) == has_more
                if page.last is None:
                    break
                number += 1
                token = (
                    continuation.encode(
                        continuation.Continuation(page=number, position=page.last), fingerprint=parameters.fingerprint
                    )
                    if is_continued
                    else ""
                )
            assert collected == ids


@pytest.mark.long
def test_continued_page_reads_one_range_of_the_index(database: Run) -> None:
    async def plans(connection: asyncpg.Connection) -> list[str]:
        await connection.execute(list_database.FILL)
        await connection.execute("ANALYZE")
        page = await list_database.page(connection, ListParameters(page=190))
        assert page.last is not None
        token = continuation.encode(
            continuation.Continuation(page=191, position=page.last), fingerprint=continuation.fingerprint("", "")
        )
        explaining = list_database.Explaining(connection)
        continued = await list_database.page(explaining, ListParameters(token=token))
        by_number = await list_database.page(connection, ListParameters(page=191))
        assert continued.entries == by_number.entries
        assert continued.total == by_number.total
        await connection.execute(
            "DELETE FROM resources WHERE id LIKE '%-%'; DELETE FROM consumers WHERE id LIKE 'id-%'"
        )
        return explaining.plans

    read = [plan for plan in database(plans) if "maestropy_resources_order" in plan]
    assert read
    assert all("Index Cond: (" in plan and "created_at" in plan for plan in read), read
    assert not any("Filter: " in plan.replace("Join Filter: ", "") for plan in read), read


def test_page_behind_the_end_has_no_items_and_the_right_total(database: Run) -> None:
    page = database(lambda connection: list_database.page(connection, ListParameters(page=99)))
    assert (page.entries, page.total, page.is_exact, page.last) == ([], len(list(payloads())), True, None)
