"""Compiled searches on a real PostgreSQL: correct rows, and no SQL error from hostile input."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maestropy.sandbox.postgres import PostgresCluster
from maestropy.store import search

SCHEMA = """
CREATE TABLE resources (
    id text PRIMARY KEY, name text, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz,
    source text, consumer_name text, version bigint NOT NULL, type text, payload jsonb, status jsonb);
CREATE TABLE consumers (
    id text PRIMARY KEY, name text NOT NULL, created_at timestamptz, updated_at timestamptz,
    deleted_at timestamptz, labels jsonb);
CREATE INDEX labels_of_resources ON resources USING gin ((payload->'metadata'->'labels') jsonb_path_ops);
"""


def day(number: int) -> datetime:
    return datetime(2024, 5, number, tzinfo=UTC)


def row(name: str, **columns: Any) -> dict[str, Any]:
    labels = columns.pop("labels", None)
    payload = {"id": name, "n": 5, "list": [1], "metadata": {} if labels is None else {"labels": labels}}
    blank = dict.fromkeys(search.RESOURCES.columns)
    return blank | {"id": name, "name": name, "version": 1, "source": "S", "payload": payload} | columns


ROWS = [
    row("a", created_at=day(1), consumer_name="c", version=1, labels={"a": "x", "c": "d"}),
    row("ab", created_at=day(2), consumer_name="c", version=2, labels={"a": "y"}),
    row("b", created_at=day(3), consumer_name="d", version=3, labels={"b": "x"}, deleted_at=day(9)),
    row("c", created_at=day(4), source="T", version=4, status={"ok": True}),
    row("zz", created_at=day(5), source=None, version=2**63 - 1, labels={"a": "null"}),
    row("it's", created_at=day(6), source="日本 ü", version=0, labels={"ключ": "é"}, payload=None),
]

Database = Callable[[Callable[[asyncpg.Connection], Coroutine[Any, Any, Any]]], Any]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    cluster = PostgresCluster(tmp_path_factory.mktemp("postgres"), max_connections=20, is_ephemeral=True)
    address = cluster.start()
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.stop)
        runner = stack.enter_context(asyncio.Runner())
        connection = runner.run(asyncpg.connect(**address.connect_kwargs()))
        runner.run(connection.execute(SCHEMA))
        names = list(search.RESOURCES.columns)
        placeholders = ", ".join(f"${number}" for number, _ in enumerate(names, start=1))
        for values in ROWS:
            cells = [json.dumps(cell) if isinstance(cell, dict) else cell for cell in (values[n] for n in names)]
            runner.run(
                connection.execute(f"INSERT INTO resources ({', '.join(names)}) VALUES ({placeholders})", *cells)
            )
        runner.run(
            connection.execute(
                """INSERT INTO consumers (id, name, labels) VALUES ('1', 'one', '{"env":"prod"}'), ('2', 'two', NULL)"""
            )
        )
        yield lambda work: runner.run(work(connection))
        runner.run(connection.close())


def found(
    database: Database, text: str, *, collection: search.Collection = search.RESOURCES, order: str = ""
) -> list[str]:
    condition = search.compile_search(text, collection=collection)
    ordered = search.compile_order(order, collection=collection)
    statement = f"SELECT id FROM {collection.table} WHERE {condition.sql} ORDER BY {ordered}"
    rows = database(lambda connection: connection.fetch(statement, *condition.params))
    return [str(row["id"]) for row in rows]


EVERYONE = ["a", "ab", "b", "c", "zz", "it's"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", EVERYONE),
        ("name = 'a'", ["a"]),
        ("name != 'a' and name <> 'zz'", ["ab", "b", "c", "it's"]),
        ("name = 'it''s'", ["it's"]),
        ("source = '日本 ü'", ["it's"]),
        ("source <> 'S'", ["c", "it's"]),
        ("not source = 'S'", ["c", "it's"]),
        ("source is null", ["zz"]),
        ("source is not null and not (name like 'a%')", ["b", "c", "it's"]),
        ("name ilike 'A_'", ["ab"]),
        ("name like '%'''", []),
        ("name like 'it''%'", ["it's"]),
        (r"name like 'a\\%'", []),
        ("name in ('a', 'c', 'nobody')", ["a", "c"]),
        ("name in ()", []),
        ("source not in ()", EVERYONE),
        ("source not in ('S')", ["c", "it's"]),
        ("version in (1, 2.0, '3')", ["a", "ab", "b"]),
        ("version in (1, 2.5)", ["a"]),
        ("version > 2.5 and version < 1e30", ["b", "c", "zz"]),
        ("version between 1 and 3", ["a", "ab", "b"]),
        ("version not between 1 and 3", ["c", "zz", "it's"]),
        ("version + 1 > 9223372036854775807", ["zz"]),
        ("version * version > 4", ["b", "c", "zz"]),
        ("version / 2 = 1", ["ab", "b"]),
        ("version / 2.0 = 1.5", []),
        ("version / 2.5 = 1.2", ["b"]),
        ("version % 2 = 0", ["ab", "c", "it's"]),
        ("version / 0 = 1", []),
        ("version % 0 is null", EVERYONE),
        ("1 / version > 0 or name = 'a'", None),
        ("10 - version > 0", None),
        ("version - version / version is null", ["it's"]),
        ("created_at > '2024-05-04'", ["zz", "it's"]),
        ("created_at = '2024-05-04T02:00:00+02:00'", ["c"]),
        ("created_at between '2024-05-02' and '2024-05-03T00:00:00Z'", ["ab", "b"]),
        ("created_at in ('2024-05-01', '2024-05-06')", ["a", "it's"]),
        ("deleted_at is not null", ["b"]),
        ("deleted_at > '0001-01-01' and deleted_at < '9999-12-31'", ["b"]),
        ("status = '{\"ok\": true}'", ["c"]),
        ("status in ('{\"ok\":true}', 'null')", ["c"]),
        ("payload is null", ["it's"]),
        ("name = 'a' or name = 'b' and version = 1", ["a"]),
        ("(name = 'a' or name = 'b') and version = 1", ["a"]),
        ("not name = 'a' and version = 1 or name = 'c'", ["c"]),
        ("source='S' and (consumer_name='c' or consumer_name='d')", ["a", "ab", "b"]),
        ("source='S'", ["a", "ab", "b"]),
        # The JSON path dialect, with the strings that clients send.
        ("""source='S' and payload->'metadata'->'labels'@>'{"a":"x","c":"d"}'""", ["a"]),
        ("source='S' and payload->'metadata'->'labels'->>'a'<>'x'", ["ab"]),
        ("source='S' and consumer_name='c' and payload->'metadata'->'labels'->>'a'in('x','y')", ["a", "ab"]),
        ("source='S' and payload->'metadata'->'labels'->>'a'<>null", ["a", "ab"]),
        ("payload->'metadata'->'labels'->>'a'='null'", ["zz"]),
        ("payload->'metadata'->'labels'->>'a' not in ('x')", ["ab", "zz"]),
        ("payload->'metadata'->'labels'->>'a' like '_'", ["a", "ab"]),
        ("payload->'metadata'->'labels'->'a'@>'\"x\"'", ["a"]),
        ("payload->'metadata'->>'labels' like '%x%'", ["a", "b"]),
        ("payload->>'n'='5' and version<=2", ["a", "ab"]),
        ("payload->>'n'=5 and created_at>='2024-05-05'", ["zz"]),
        ("payload->'list'@>'[1]' and (name=a or name=b) or name=c", ["a", "b", "c"]),
        ("payload->'list'->>'0'='1'", []),
        (r"name='it\'s' and (payload->>'x'<>null or version='0')", ["it's"]),
        (r"payload->'x\' or \'1\'=\'1'->>'y'='z'", []),
    ],
)
def test_found(database: Database, text: str, ids: list[str] | None) -> None:
    if ids is None:
        with pytest.raises(search.SearchError):
            search.compile_search(text, collection=search.RESOURCES)
    else:
        assert found(database, text) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [("labels->>'env'='prod'", ["1"]), ('labels@>\'{"env":"prod"}\'', ["1"]), ("labels is null", ["2"])],
)
def test_found_consumers(database: Database, text: str, ids: list[str]) -> None:
    assert found(database, text, collection=search.CONSUMERS) == ids


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("", EVERYONE),
        ("created_at desc", EVERYONE[::-1]),
        ("version desc", ["zz", "c", "b", "ab", "a", "it's"]),
        ("source desc,id desc", None),
        ("payload", None),
    ],
)
def test_ordered(database: Database, order: str, ids: list[str] | None) -> None:
    result = found(database, "", order=order)
    assert result == ids or (ids is None and sorted(result) == sorted(EVERYONE))


def test_label_containment_uses_the_index(database: Database) -> None:
    condition = search.compile_search(
        "source='S' and payload->'metadata'->'labels'@>'{\"a\":\"x\"}'", collection=search.RESOURCES
    )

    async def explain(connection: asyncpg.Connection) -> str:
        async with connection.transaction():
            await connection.execute("SET LOCAL enable_seqscan = off")
            statement = f"EXPLAIN SELECT id FROM resources WHERE {condition.sql}"
            return "\n".join(line[0] for line in await connection.fetch(statement, *condition.params))

    assert "Bitmap Index Scan on labels_of_resources" in database(explain)


# Any search that compiles runs: literals of every kind meet fields of every type.

numbers = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "-0", "1e40", "1e-40", "9" * 40, "." + "0" * 39 + "1", "9223372036854775808", "0e0"]),
)
times = st.one_of(
    st.datetimes().map(datetime.isoformat),
    st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    st.sampled_from(["0001-01-01", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"]),
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).map(json.dumps)
words = st.one_of(
    st.text(), numbers, times, documents, st.sampled_from(["%", "_%\\", "\\\\", "NaN", "infinity", "now"])
)
fields = st.sampled_from(list(search.RESOURCES.columns))
keys = st.one_of(st.sampled_from(["metadata", "labels", "a", "list", "0", ""]), st.text())


def doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def escaped(text: str) -> str:
    return "'" + text.replace("'", "\\'") + "'"


literals = numbers | words.map(doubled)
sums = st.lists(st.tuples(st.sampled_from("+-*/%"), numbers | fields), max_size=4).map(
    lambda steps: "version" + "".join(f" {sign} {operand}" for sign, operand in steps)
)
comparisons = st.one_of(
    st.tuples(fields | sums, st.sampled_from(["=", "!=", "<", "<=", ">", ">=", " is not "]), literals).map("".join),
    st.tuples(fields, st.sampled_from([" like ", " not ilike "]), words.map(doubled)).map("".join),
    st.tuples(fields | sums, literals, literals).map(lambda parts: "{} between {} and {}".format(*parts)),
    st.tuples(fields | sums, st.lists(literals, max_size=3)).map(lambda parts: f"{parts[0]} in ({','.join(parts[1])})"),
)
paths = st.builds(
    lambda column, middle, last: f"{column}{''.join(f'->{key}' for key in middle)}->>{last}",
    st.sampled_from(["payload", "status"]),
    st.lists(keys.map(escaped), max_size=4),
    keys.map(escaped),
)
path_comparisons = st.one_of(
    st.tuples(paths, st.sampled_from(["=", "<>", " like ", " ilike "]), words.map(escaped)).map("".join),
    st.tuples(paths, st.lists(words.map(escaped), min_size=1, max_size=3)).map(
        lambda parts: f"{parts[0]} not in ({','.join(parts[1])})"
    ),
    st.tuples(st.sampled_from(["payload", "payload->'metadata'->'labels'", "status->'a'"]), documents.map(escaped)).map(
        "@>".join
    ),
    st.tuples(fields, st.sampled_from(["=", "<", ">="]), words.map(escaped)).map(
        lambda parts: f"payload->>'n'='5' and {''.join(parts)}"
    ),
)


@pytest.mark.long
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=comparisons | path_comparisons | st.lists(comparisons, min_size=2, max_size=4).map(" or ".join))
def test_every_compiled_search_runs(database: Database, text: str) -> None:
    try:
        found(database, text)
    except search.SearchError:
        return


# A second term: valid searches, evaluated row by row with SQL's three-valued logic.

Truth = bool | None


@dataclass(frozen=True)
class ReferenceTerm:
    text: str
    judge: Callable[[dict[str, Any]], Truth]
    binds: int
    """How tightly the text binds: 3 one comparison, 2 NOT, 1 AND, 0 OR."""

    def within(self, binds: int) -> str:
        return self.text if self.binds >= binds else f"({self.text})"


def about(value: Any, test: Callable[[Any], bool]) -> Truth:
    return None if value is None else test(value)


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
}
SUMS: dict[str, Callable[[int], int | None]] = {
    "version": lambda version: version,
    "version + 2 * 3": lambda version: version + 6,
    "(version - 1) * 2": lambda version: (version - 1) * 2,
    "version / 2": lambda version: version // 2,
    "version % 3": lambda version: version % 3,
    "version / 0": lambda version: None,
}
names = st.sampled_from(["a", "ab", "b", "c", "S", "zz"])
nullable = st.sampled_from(["name", "source", "consumer_name"])


def compare_text(field: str, sign: str, value: str) -> ReferenceTerm:
    # Equality only: how words are ordered is up to the collation of the database.
    return ReferenceTerm(
        f"{field} {sign} '{value}'", lambda row: about(row[field], lambda own: COMPARE[sign](own, value)), 3
    )


def compare_sum(text: str, sign: str, value: int) -> ReferenceTerm:
    return ReferenceTerm(
        f"{text} {sign} {value}",
        lambda row: about(SUMS[text](row["version"]), lambda own: COMPARE[sign](own, value)),
        3,
    )


def one_of(field: str, values: list[str], negated: bool) -> ReferenceTerm:
    text = f"{field}{' not' * negated} in ({', '.join(map(repr, values))})"
    if not values:
        return ReferenceTerm(text, lambda row: negated, 3)
    return ReferenceTerm(text, lambda row: about(row[field], lambda own: (own in values) != negated), 3)


def like(field: str, start: str, negated: bool) -> ReferenceTerm:
    text = f"{field}{' not' * negated} like '{start}%'"
    return ReferenceTerm(text, lambda row: about(row[field], lambda own: own.startswith(start) != negated), 3)


def is_null(field: str, negated: bool) -> ReferenceTerm:
    return ReferenceTerm(f"{field} is{' not' * negated} null", lambda row: (row[field] is None) != negated, 3)


def between(low: int, high: int) -> ReferenceTerm:
    return ReferenceTerm(f"version between {low} and {high}", lambda row: low <= row["version"] <= high, 3)


def negation(term: ReferenceTerm) -> ReferenceTerm:
    return ReferenceTerm(f"NOT {term.within(2)}", lambda row: about(term.judge(row), lambda own: not own), 2)


def conjunction(terms: list[ReferenceTerm]) -> ReferenceTerm:
    def judge(row: dict[str, Any]) -> Truth:
        truths = [term.judge(row) for term in terms]
        return False if False in truths else None if None in truths else True

    return ReferenceTerm(" AND ".join(term.within(2) for term in terms), judge, 1)


def disjunction(terms: list[ReferenceTerm]) -> ReferenceTerm:
    def judge(row: dict[str, Any]) -> Truth:
        truths = [term.judge(row) for term in terms]
        return True if True in truths else None if None in truths else False

    return ReferenceTerm(" or ".join(term.within(1) for term in terms), judge, 0)


terms = st.recursive(
    st.one_of(
        st.builds(compare_text, nullable, st.sampled_from(["=", "!="]), names),
        st.builds(compare_sum, st.sampled_from(list(SUMS)), st.sampled_from(list(COMPARE)), st.integers(-3, 9)),
        st.builds(one_of, nullable, st.lists(names, max_size=3), st.booleans()),
        st.builds(like, nullable, names, st.booleans()),
        st.builds(is_null, st.sampled_from(["source", "consumer_name", "deleted_at", "payload"]), st.booleans()),
        st.builds(between, st.integers(-1, 5), st.integers(-1, 5)),
    ),
    lambda inner: st.one_of(
        inner.map(negation),
        st.lists(inner, min_size=2, max_size=3).map(conjunction),
        st.lists(inner, min_size=2, max_size=3).map(disjunction),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(term=terms)
def test_database_agrees_with_the_reference_evaluation(database: Database, term: ReferenceTerm) -> None:
    assert found(database, term.text) == [row["id"] for row in ROWS if term.judge(row) is True]


def test_reference_terms_leave_precedence_to_the_parser() -> None:
    terms = [negation(is_null("source", negated=False)), like("name", "a", negated=False)]
    assert conjunction(terms).text == "NOT source is null AND name like 'a%'"
    assert disjunction([conjunction(terms), terms[1]]).text == f"{conjunction(terms).text} or name like 'a%'"
