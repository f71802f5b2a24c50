"""The JSON path dialect: the exact strings clients send, and the exact words of its refusals."""

import pytest

from maestropy.store import search
from maestropy.store.search import limits

LABELS = "(resources.payload->'metadata'->'labels')"
PREFIX = "failed to parse the search query: "
COLUMNS = "id name created_at updated_at deleted_at source consumer_name version type payload status"


def bundles(text: str) -> tuple[str, tuple[object, ...]]:
    condition = search.compile_search(text, collection=search.RESOURCES)
    return condition.sql, condition.params


def refusal(text: str) -> str:
    with pytest.raises(search.SearchError) as caught:
        search.compile_search(text, collection=search.RESOURCES)
    assert caught.value.code == 21
    return caught.value.reason


@pytest.mark.parametrize(
    ("text", "sql", "params"),
    [
        pytest.param(
            """source='S' and payload->'metadata'->'labels'@>'{"a":"b","c":"d"}'""",
            f"((resources.source = $1::text) AND ({LABELS} @> $2::text::jsonb))",
            ("S", '{"a":"b","c":"d"}'),
            id="equals",
        ),
        pytest.param(
            "source='S' and payload->'metadata'->'labels'->>'a'<>'b'",
            f"((resources.source = $1::text) AND (({LABELS}->>$2::text) <> $3::text))",
            ("S", "a", "b"),
            id="not-equals",
        ),
        pytest.param(
            "source='S' and consumer_name='c' and payload->'metadata'->'labels'->>'a'in('x','y')",
            "((resources.source = $1::text) AND (resources.consumer_name = $2::text) "
            f"AND ({LABELS} @> ANY ($3::text[]::jsonb[])))",
            ("S", "c", ['{"a":"x"}', '{"a":"y"}']),
            id="in",
        ),
        pytest.param(
            "source='S' and payload->'metadata'->'labels'->>'a'<>null",
            f"((resources.source = $1::text) AND (({LABELS}->>$2::text) <> $3::text))",
            ("S", "a", "null"),
            id="exists",
        ),
    ],
)
def test_searches_of_go_clients(text: str, sql: str, params: tuple[object, ...]) -> None:
    assert bundles(text) == (sql, params)


@pytest.mark.parametrize(
    ("text", "sql", "params"),
    [
        pytest.param(
            "payload -> 'data' ->> 'x' LIKE 'a%'",
            "(((resources.payload->$1::text)->>$2::text) LIKE $3::text)",
            ("data", "x", "a%"),
            id="spaces-and-capitals",
        ),
        pytest.param(
            "Resources.Payload->>'x'ilike 'a%'",
            "((resources.payload->>$1::text) ILIKE $2::text)",
            ("x", "a%"),
            id="qualified",
        ),
        pytest.param(
            "payload->>'x' not in (a, 'b,c', d)",
            "((resources.payload->>$1::text) <> ALL ($2::text[]))",
            ("x", ["a", "b,c", "d"]),
            id="not-in-bare",
        ),
        pytest.param(
            "payload->'metadata'->>'labels'=x",
            "(((resources.payload->$1::text)->>$2::text) = $3::text)",
            ("metadata", "labels", "x"),
            id="labels-as-text-is-no-index-path",
        ),
        pytest.param(
            "status->'metadata'->'labels'@>'{}'",
            "((resources.status->$1::text->$2::text) @> $3::text::jsonb)",
            ("metadata", "labels", "{}"),
            id="labels-of-another-column",
        ),
        pytest.param(
            """payload->'metadata'->'labels'->'a'@>'"x"'""",
            f"(({LABELS}->$1::text) @> $2::text::jsonb)",
            ("a", '"x"'),
            id="below-labels",
        ),
        pytest.param(
            r"payload->>'x\' or \'1\'=\'1' = 'it\'s'",
            "((resources.payload->>$1::text) = $2::text)",
            ("x' or '1'='1", "it's"),
            id="escaped-quotes",
        ),
        pytest.param(
            r"payload->>'x' = 'a\b\\\''",
            "((resources.payload->>$1::text) = $2::text)",
            ("x", r"a\b\\'"),
            id="other-backslashes-stay",
        ),
        pytest.param(
            "payload->>'ключ'='日本'",
            "((resources.payload->>$1::text) = $2::text)",
            ("ключ", "日本"),
            id="not-ascii",
        ),
        pytest.param(
            "name='->>' or version>='2' and name<>5",
            "((resources.name = $1::text) OR ((resources.version >= $2::bigint) AND (resources.name <> $3::text)))",
            ("->>", 2, "5"),
            id="chosen-by-an-arrow-anywhere",
        ),
        pytest.param("payload@>'[]'", "(resources.payload @> $1::text::jsonb)", ("[]",), id="whole-column"),
        pytest.param(
            "payload->>'it''s' in ('''','')",
            "((resources.payload->>$1::text) = ANY ($2::text[]))",
            ("it's", ["'", ""]),
            id="doubled-quotes",
        ),
        pytest.param(
            "payload->>'x'<>'a' and not consumer_name='c01'",
            "(((resources.payload->>$1::text) <> $2::text) AND (NOT (resources.consumer_name = $3::text)))",
            ("x", "a", "c01"),
            id="not-before-a-comparison",
        ),
        pytest.param(
            "not(name='a'or payload->>'x'not like'b%')",
            "(NOT ((resources.name = $1::text) OR (NOT ((resources.payload->>$2::text) LIKE $3::text))))",
            ("a", "x", "b%"),
            id="not-before-parentheses-and-like",
        ),
    ],
)
def test_further_searches(text: str, sql: str, params: tuple[object, ...]) -> None:
    assert bundles(text) == (sql, params)


def test_labels_of_consumers() -> None:
    condition = search.compile_search("labels->>'a'='b'", collection=search.CONSUMERS)
    assert (condition.sql, condition.params) == ("((consumers.labels->>$1::text) = $2::text)", ("a", "b"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("->>", "[1] error parsing the filter: unexpected token `->>`", id="no-column"),
        pytest.param("payload->>'a'", "EOF encountered while parsing string", id="nothing-compared"),
        pytest.param("payload->>'a'=", "EOF encountered while parsing string", id="no-value"),
        pytest.param("payload->>'a'=1 and ", "EOF encountered while parsing string", id="no-second-term"),
        pytest.param("payload->>'a'in('x'", "EOF encountered while parsing string", id="open-list"),
        pytest.param("(payload->>'a'=1", "EOF while searching for closing brace ')'", id="open-brace"),
        pytest.param("payload->>'a'=1)", "[16] error parsing the filter: unexpected ')'", id="extra-brace"),
        pytest.param("payload->>'a'in()", "[17] error parsing the filter: unexpected token `)`", id="empty-list"),
        pytest.param("payload->>'a'in('x',)", "[21] error parsing the filter: unexpected token `)`", id="comma"),
        pytest.param("payload->>'a'='x'1", "[18] error parsing the filter: unexpected token `1`", id="after-quote"),
        pytest.param("payload->>'a'='x", "[15] error parsing the filter: unexpected token `'x`", id="open-quote"),
        pytest.param("payload->>'a'>'x'", "[14] error parsing the filter: unexpected token `>`", id="order-of-text"),
        pytest.param("payload->'a'='x' or id->>'b'=1", "[13] error parsing the filter: unexpected token `=`", id="eq"),
        pytest.param("payload->>a='x'", "[11] error parsing the filter: unexpected token `a`", id="bare-key"),
        pytest.param("->> not", "[1] error parsing the filter: unexpected token `->>`", id="only-an-arrow"),
        pytest.param("payload->>'a' not = 'x'", "[19] error parsing the filter: unexpected token `=`", id="not"),
        pytest.param(
            "payload->>'a'=\"x\"", '[15] error parsing the filter: unexpected token `"x"`', id="double-quotes"
        ),
        pytest.param(
            "colour->>'a'='b'",
            f"[1] error parsing the filter: invalid column name: 'colour', valid values are: [{COLUMNS}]",
            id="unknown-column",
        ),
        pytest.param("other.payload->>'a'='b'", None, id="other-table"),
        pytest.param(
            " and ".join(["payload->>'a'=1"] * 12),
            "[217] error parsing the filter: maximum number of permitted joins (10) exceeded",
            id="eleven-joins",
        ),
        pytest.param(
            "(" * 33 + "payload->>'a'=1" + ")" * 33,
            "[33] error parsing the filter: more than 32 nested braces",
            id="deep",
        ),
    ],
)
def test_rejection_names_the_position(text: str, reason: str | None) -> None:
    refused = refusal(text)
    assert refused.startswith(PREFIX)
    # Go clients know the beginning; what to write instead follows.
    assert reason is None or refused.removeprefix(PREFIX).split("; ")[0] == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("name->>'a'='b'", "name is of type text: ->> needs a JSON field", id="path-into-text"),
        pytest.param("payload@>'{'", "the value for payload is not JSON: '{'", id="not-json"),
        pytest.param(r"""payload@>'"\u0000"'""", None, id="nul-in-json"),
        pytest.param(r"""payload@>'{"\u0000":1}'""", None, id="nul-in-json-key"),
        pytest.param(r"""payload@>'"\ud800"'""", None, id="half-a-character"),
        pytest.param("payload@>'1e999'", None, id="huge-number"),
        pytest.param(f"payload@>'{'[' * 66}{']' * 66}'", None, id="deep-json"),
        pytest.param(f"payload@>'{'[' * 9000}{']' * 9000}'", None, id="very-deep-json"),
        pytest.param("version='x' and payload->>'a'=1", "version is a number: 'x' is not a number", id="typed"),
        pytest.param("version like '1' and payload->>'a'=1", None, id="like-number"),
        pytest.param(f"payload{'''->'a' ''' * 32}->>'b'='c'", "the path into payload has more than 32 keys", id="path"),
        pytest.param(f"payload->>'a'in({','.join('1' * 1001)})", None, id="long-list"),
    ],
)
def test_rejection_names_the_field(text: str, reason: str | None) -> None:
    assert reason in (None, refusal(text))


def test_ten_joins_are_permitted() -> None:
    sql, _ = bundles(" and ".join(["payload->>'a'=1"] * (limits.MAX_JOINS + 1)))
    assert sql.count("AND") == limits.MAX_JOINS


def test_json_is_encoded_again_so_that_the_database_accepts_it() -> None:
    assert bundles("payload@>' [1e-20000, 1.50,\"\\u00fc\"] '")[1] == ('[0.0,1.5,"ü"]',)
