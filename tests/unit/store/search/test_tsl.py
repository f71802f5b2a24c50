"""The tree dialect of a search: its SQL, its parameters and its rejections."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from maestropy.store import search
from maestropy.store.search import limits

ALL_FIELDS = "id, name, created_at, updated_at, deleted_at, source, consumer_name, version, type, payload, status"


def bundles(text: str) -> tuple[str, tuple[object, ...]]:
    condition = search.compile_search(text, collection=search.RESOURCES)
    return condition.sql, condition.params


def refusal(text: str, collection: search.Collection = search.RESOURCES) -> str:
    with pytest.raises(search.SearchError) as caught:
        search.compile_search(text, collection=collection)
    assert caught.value.code == 21
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "sql", "params"),
    [
        pytest.param("", "TRUE", (), id="empty"),
        pytest.param("  \n ", "TRUE", (), id="blank"),
        pytest.param("name = 'a'", "(resources.name = $1::text)", ("a",), id="equal"),
        pytest.param("name='a'", "(resources.name = $1::text)", ("a",), id="no-spaces"),
        pytest.param("NAME != 'a'", "(resources.name <> $1::text)", ("a",), id="case-and-bang"),
        pytest.param("resources.name <> 'a'", "(resources.name <> $1::text)", ("a",), id="qualified"),
        pytest.param("\"name\" = 'a'", "(resources.name = $1::text)", ("a",), id="double-quoted-name"),
        pytest.param("`name` = 'a'", "(resources.name = $1::text)", ("a",), id="backquoted-name"),
        pytest.param("[name] = 'a'", "(resources.name = $1::text)", ("a",), id="bracketed-name"),
        pytest.param("name = 'it''s'", "(resources.name = $1::text)", ("it's",), id="doubled-quote"),
        pytest.param("name = '日本 ü'", "(resources.name = $1::text)", ("日本 ü",), id="not-ascii"),
        pytest.param("name = ''", "(resources.name = $1::text)", ("",), id="empty-value"),
        pytest.param("name is 'a'", "(resources.name = $1::text)", ("a",), id="is-literal"),
        pytest.param("name is not 'a'", "(resources.name <> $1::text)", ("a",), id="is-not-literal"),
        pytest.param("deleted_at IS NULL", "(resources.deleted_at IS NULL)", (), id="is-null"),
        pytest.param("deleted_at is not null", "(resources.deleted_at IS NOT NULL)", (), id="is-not-null"),
        pytest.param("name LIKE 'a%'", "(resources.name LIKE $1::text)", ("a%",), id="like"),
        pytest.param("name not ilike 'a_'", "(NOT (resources.name ILIKE $1::text))", ("a_",), id="not-ilike"),
        pytest.param("name in ('a', 'b')", "(resources.name = ANY ($1::text[]))", (["a", "b"],), id="in"),
        pytest.param("name in ()", "(resources.name = ANY ($1::text[]))", ([],), id="in-nothing"),
        pytest.param("name NOT IN('a')", "(resources.name <> ALL ($1::text[]))", (["a"],), id="not-in"),
        pytest.param("version>=3", "(resources.version >= $1::bigint)", (3,), id="number"),
        pytest.param("version = '3'", "(resources.version = $1::bigint)", (3,), id="number-in-quotes"),
        pytest.param("version > -1.5e1", "(resources.version > $1::bigint)", (-15,), id="number-with-exponent"),
        pytest.param("version > 2.5", "(resources.version > $1::numeric)", (Decimal("2.5"),), id="fraction"),
        pytest.param(
            "version < 9223372036854775808",
            "(resources.version < $1::numeric)",
            (Decimal(2**63),),
            id="beyond-bigint",
        ),
        pytest.param(
            "version in (1, 2.5)",
            "(resources.version = ANY ($1::numeric[]))",
            ([Decimal(1), Decimal("2.5")],),
            id="mixed-numbers",
        ),
        pytest.param("version in ()", "(resources.version = ANY ($1::bigint[]))", ([],), id="no-numbers"),
        pytest.param(
            "version between 1 and 3 and name='a'",
            "((resources.version BETWEEN $1::bigint AND $2::bigint) AND (resources.name = $3::text))",
            (1, 3, "a"),
            id="between-keeps-its-and",
        ),
        pytest.param(
            "name not between 'a' and 'b'",
            "(resources.name NOT BETWEEN $1::text AND $2::text)",
            ("a", "b"),
            id="not-between",
        ),
        pytest.param(
            """status = '{"a": [1, null]}'""",
            "(resources.status = $1::text::jsonb)",
            ('{"a":[1,null]}',),
            id="whole-json",
        ),
        pytest.param(
            "status in ('null')", "(resources.status = ANY ($1::text[]::jsonb[]))", (["null"],), id="json-list"
        ),
    ],
)
def test_one_comparison(text: str, sql: str, params: tuple[object, ...]) -> None:
    assert bundles(text) == (sql, params)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01T10:00:00", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("2024-05-01 10:00:00+02:00", datetime(2024, 5, 1, 10, tzinfo=timezone(timedelta(hours=2)))),
        ("2023-12-08T11:35:08.557450505Z", datetime(2023, 12, 8, 11, 35, 8, 557450, tzinfo=UTC)),
    ],
    ids=["date", "no-zone-is-utc", "zone", "nanoseconds"],
)
def test_times(written: str, moment: datetime) -> None:
    assert bundles(f"created_at > '{written}'") == ("(resources.created_at > $1::timestamptz)", (moment,))


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        pytest.param("id='a' or id='b' and id='c'", "(a OR (b AND c))", id="and-before-or"),
        pytest.param("id='a' and id='b' or id='c'", "((a AND b) OR c)", id="and-before-or-left"),
        pytest.param("(id='a' or id='b') and id='c'", "((a OR b) AND c)", id="parentheses"),
        pytest.param("not id='a' and id='b'", "((NOT a) AND b)", id="not-before-and"),
        pytest.param("not (id='a' and id='b')", "(NOT (a AND b))", id="not-a-group"),
        pytest.param("NOT NOT id='a'", "(NOT (NOT a))", id="not-twice"),
        pytest.param("id='a' or id='b' or id='c'", "(a OR b OR c)", id="flat"),
        pytest.param("((id='a'))", "a", id="parentheses-alone"),
    ],
)
def test_precedence(text: str, shape: str) -> None:
    sql, params = bundles(text)
    for number, name in enumerate(params, start=1):
        sql = sql.replace(f"(resources.id = ${number}::text)", str(name))
    assert sql == shape


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        pytest.param("version+1>0", "(resources.version::numeric + $1::numeric)", id="plus"),
        pytest.param("version -1>0", "(resources.version::numeric - $1::numeric)", id="minus"),
        pytest.param("version * version>0", "(resources.version::numeric * resources.version::numeric)", id="twice"),
        pytest.param("version / 2>0", "div(resources.version::numeric, NULLIF($1::numeric, 0))", id="whole-division"),
        pytest.param("version / 2.5>0", "(resources.version::numeric / NULLIF($1::numeric, 0))", id="division"),
        pytest.param("version % 2>0", "(resources.version::numeric % NULLIF($1::numeric, 0))", id="modulo"),
        pytest.param(
            "version + 2 * 3>0",
            "(resources.version::numeric + ($1::numeric * $2::numeric))",
            id="product-before-sum",
        ),
        pytest.param(
            "(version + 2) * 3>0",
            "((resources.version::numeric + $1::numeric) * $2::numeric)",
            id="parentheses",
        ),
        pytest.param(
            "version - 2 - 3>0",
            "((resources.version::numeric - $1::numeric) - $2::numeric)",
            id="left-to-right",
        ),
    ],
)
def test_arithmetic(text: str, sql: str) -> None:
    condition, params = bundles(text)
    assert condition == f"({sql} > ${len(params)}::bigint)"


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "name",
        "name =",
        "name = 'a",
        "name = 'a''",
        "name = a",
        "name = 'a' and",
        "(name = 'a'",
        "name = 'a')",
        "name = 'a' name = 'b'",
        "'a' = name",
        "1 + version > 2",
        "version + name = 'x' > 2",
        "name = -'a'",
        "name like 5",
        "name not 'a'",
        "name in 'a'",
        "name in ('a',)",
        "name in ('a'",
        "version between 1 or 2",
        "and = 'a'",
        "not",
        "(version)",
        "not version",
        "version and version",
        "name == 'a'",
        "name = 'a'; drop table resources",
        "name = 'a' -- ",
        "a.b.c.d = 1",
        "version = 1e",
        "name = $1",
    ],
)
def test_syntax_error_quotes_the_search(text: str) -> None:
    # Go clients know the beginning; what to write instead follows.
    assert refusal(text).startswith(f"Failed to parse search query: {text.strip()} (position ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(
            "color = 'red'",
            f"color is not a valid field name; searchable fields of Resource: {ALL_FIELDS}",
            id="unknown",
        ),
        pytest.param(
            "resources.color = 'red'",
            f"resources.color is not a valid field name; searchable fields of Resource: {ALL_FIELDS}",
            id="unknown-qualified",
        ),
        pytest.param(
            "a.b = 1",
            f"a is not a related resource of Resource; searchable fields of Resource: {ALL_FIELDS}",
            id="other-table",
        ),
        pytest.param(
            "resources.a.b = 1",
            f"resources.a.b is not a valid field name; searchable fields of Resource: {ALL_FIELDS}",
            id="two-dots",
        ),
        pytest.param(
            "properties.x = '1'",
            "properties.x is not a valid field name: properties are not stored; "
            f"searchable fields of Resource: {ALL_FIELDS}",
            id="legacy-properties",
        ),
        pytest.param("id = 5", "id is text; write the value in single quotes: '5'", id="number-for-text"),
        pytest.param("version = 'abc'", "version is a number: 'abc' is not a number", id="text-for-number"),
        pytest.param("version = 'NaN'", "version is a number: 'NaN' is not a number", id="not-a-number"),
        pytest.param(
            "version = 1e999",
            "the number '1e999' is out of range: at most 40 digits",
            id="number-too-large",
        ),
        pytest.param("version = 1e99999999999999999999", None, id="exponent-too-large"),
        pytest.param(
            "created_at > 'junk'",
            "created_at is a time: 'junk' is not one; write it like '2024-05-01T10:00:00Z'",
            id="text-for-time",
        ),
        pytest.param(
            "created_at > 20240501",
            "created_at is a time: '20240501' is not one; write it like '2024-05-01T10:00:00Z'",
            id="number-for-time",
        ),
        pytest.param("created_at > '0001-01-01T00:00:00+14:00'", None, id="time-before-time"),
        pytest.param("payload = 5", "payload holds JSON; write the value in single quotes", id="number-for-json"),
        pytest.param("payload = '{'", "the value for payload is not JSON: '{'", id="text-for-json"),
        pytest.param("payload > '1'", "payload is of type jsonb and cannot be ordered", id="json-order"),
        pytest.param("payload between '1' and '2'", "payload is of type jsonb and cannot be ordered", id="json-range"),
        pytest.param(
            "version like '1%'", "version is of type bigint and cannot be matched with LIKE", id="like-number"
        ),
        pytest.param("name + 1 > 2", "name is of type text and cannot be calculated with", id="math-on-text"),
        pytest.param("version + name > 2", "name is of type text and cannot be calculated with", id="math-right"),
        pytest.param("created_at - 1 > 2", None, id="math-on-time"),
        pytest.param(
            "name ~= 'a'",
            "the operators ~= and ~! are not supported; use LIKE or ILIKE with % and _",
            id="regex",
        ),
        pytest.param("name ~! 'a'", None, id="negated-regex"),
        pytest.param(
            r"name like 'a\'",
            r"the pattern 'a\' for name ends with a lone backslash; write two",
            id="unfinished-escape",
        ),
        pytest.param("name = 'a\0b'", "search holds a NUL character, which no field contains", id="nul"),
        pytest.param("name = '\ud800'", "search is not valid Unicode text", id="lone-surrogate"),
    ],
)
def test_rejection_names_the_field(text: str, reason: str | None) -> None:
    assert reason in (None, refusal(text))


def test_pattern_may_end_with_an_escaped_backslash() -> None:
    assert bundles(r"name like 'a\\'")[1] == (r"a\\",)


def test_consumers_have_their_own_fields() -> None:
    condition = search.compile_search("consumers.name = 'c'", collection=search.CONSUMERS)
    assert condition.sql == "(consumers.name = $1::text)"
    assert "searchable fields of Consumer: id, name, created_at" in refusal("version = 1", search.CONSUMERS)
    assert refusal("resources.name = 'c'", search.CONSUMERS).startswith(
        "resources is not a related resource of Consumer; "
    )


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        pytest.param(
            "name = '" + "x" * (limits.MAX_BYTES - 9) + "'",
            "name = '" + "x" * (limits.MAX_BYTES - 8) + "'",
            id="bytes",
        ),
        pytest.param(
            "(" * limits.MAX_DEPTH + "id='a'" + ")" * limits.MAX_DEPTH,
            "(" * (limits.MAX_DEPTH + 1) + "id='a'" + ")" * (limits.MAX_DEPTH + 1),
            id="parentheses",
        ),
        pytest.param("not " * limits.MAX_DEPTH + "id='a'", "not " * (limits.MAX_DEPTH + 1) + "id='a'", id="nots"),
        pytest.param(
            " or ".join(["id='a'"] * limits.MAX_TERMS), " or ".join(["id='a'"] * (limits.MAX_TERMS + 1)), id="terms"
        ),
        pytest.param(
            f"version in ({','.join('1' * limits.MAX_LIST)})",
            f"version in ({','.join('1' * (limits.MAX_LIST + 1))})",
            id="list",
        ),
        pytest.param(
            f"version {'+1' * limits.MAX_MATH} > 1", f"version {'+1' * (limits.MAX_MATH + 1)} > 1", id="arithmetic"
        ),
        pytest.param(
            f"id like '{'%' * limits.MAX_PATTERN}'", f"id like '{'%' * (limits.MAX_PATTERN + 1)}'", id="pattern"
        ),
        pytest.param(f"version > {'9' * limits.MAX_DIGITS}", f"version > {'9' * (limits.MAX_DIGITS + 1)}", id="digits"),
    ],
)
def test_limits(fits: str, too_much: str) -> None:
    bundles(fits)
    assert "Failed to parse" not in refusal(too_much)


@pytest.mark.parametrize("text", ["(" * 60_000, "(" * 30_000 + "->>"], ids=["tree", "path"])
def test_search_of_symbols_is_not_tokenized_to_its_end(text: str) -> None:
    assert refusal(text).endswith("more than 10000 words and symbols")


def test_reason_quotes_only_the_beginning_of_a_long_value() -> None:
    assert len(refusal(f"version = '{'x' * 5000}'")) < 200
