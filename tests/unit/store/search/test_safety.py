"""Any search text is either rejected or compiled to SQL that contains no user input."""

import re
from datetime import datetime
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maestropy.store import search

OWN_WORD = re.compile(
    r"""
      (?:resources|consumers)\.(?:id|name|created_at|updated_at|deleted_at|source|consumer_name|version|type
                                 |payload|status|labels)\b
    | \(resources\.payload->'metadata'->'labels'\)
    | \$[1-9][0-9]*
    | ::(?:text|bigint|numeric|timestamptz|jsonb)(?:\[\])?(?![a-z])
    | \b(?:AND|OR|NOT|LIKE|ILIKE|BETWEEN|IS|NULL|ANY|ALL|TRUE|DESC|NULLIF|div)\b
    | ->> | -> | @> | <> | <= | >= | [=<>+*/%-]
    | ,\ 0\) | ,\  | [() ]
    """,
    re.VERBOSE,
)

FRAGMENTS = [
    *search.RESOURCES.columns,
    *("labels", "resources.", "consumers.", "properties.", '"name"', "`id`", "[version]", "evil"),
    *("=", "<>", "!=", "<", "<=", ">", ">=", "~=", "->", "->>", "@>", "+", "-", "*", "/", "%", "(", ")", ",", "."),
    *(" and ", " or ", " not ", " in ", " like ", " ilike ", " between ", " is ", " null "),
    *("1", "0", "2.5", "1e40", "9223372036854775808", "'a'", "'%'", "''", r"'\''", "'2024-01-01'", "'3'", "'{}'"),
    *("';--", "'; drop table resources; --", "$1", "::text", "/*", "\\", "\0", "'日本'", "\ud800", "'metadata'"),
    *("payload->'metadata'->'labels'", "'labels'", " ", "\n", "null", "'{\"a\":[1]}'", "name='a'", "id in ('a')"),
]

tree_literals = st.text(st.characters(exclude_characters="\0", codec="utf-8")).map(
    lambda text: "'" + text.replace("'", "''") + "'"
)
path_literals = tree_literals.map(lambda text: text.replace("\\", "/").replace("''", "\\'"))
tree_terms = st.tuples(
    st.sampled_from(["id", "name", "resources.id", "consumers.name", '"name"', "not [id]", "( `name`"]),
    st.sampled_from(["=", "<>", "!=", ">=", " is not ", " like ", " not ilike ", " not in ("]),
    tree_literals,
    st.sampled_from(["", "", ")", " or deleted_at is null"]),
).map("".join)
path_terms = st.tuples(
    st.sampled_from(["payload->", "labels->", "payload->'metadata'->'labels'->", "payload->'a'->"]),
    path_literals.map(lambda key: f">{key}"),
    st.sampled_from(["=", "<>", " like ", " in (", " not in ("]),
    path_literals,
    st.sampled_from(["", "", ")"]),
).map("".join)
hostile = st.one_of(
    tree_terms,
    path_terms,
    st.lists(tree_terms, min_size=2, max_size=4).map(" and ".join),
    st.lists(path_terms, min_size=2, max_size=4).map(" or ".join),
    st.text(),
    st.lists(st.sampled_from(FRAGMENTS), max_size=14).map("".join),
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=10).map(" ".join),
)
collections = st.sampled_from([search.RESOURCES, search.CONSUMERS])


def made_of_own_words(sql: str) -> bool:
    position = 0
    while position < len(sql):
        match = OWN_WORD.match(sql, position)
        if match is None:
            return False
        position = match.end()
    return True


def is_plain(parameter: object) -> bool:
    if isinstance(parameter, list):
        return all(is_plain(item) and not isinstance(item, list) for item in parameter)
    return isinstance(parameter, str | int | Decimal | datetime)


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(text=hostile, collection=collections)
@example(text="name in ('1')--'", collection=search.RESOURCES)
@example(text=r"payload->'x\' or 1=1 --'->>'a'='b'", collection=search.RESOURCES)
def test_search_is_rejected_or_contains_no_user_input(text: str, collection: search.Collection) -> None:
    try:
        condition = search.compile_search(text, collection=collection)
    except search.SearchError:
        return
    assert made_of_own_words(condition.sql)
    used = sorted(int(number) for number in re.findall(r"\$([0-9]+)", condition.sql))
    assert used == list(range(1, len(condition.params) + 1))
    assert all(is_plain(parameter) for parameter in condition.params)


@settings(max_examples=300, deadline=None)
@given(text=hostile, collection=collections)
def test_order_is_rejected_or_contains_no_user_input(text: str, collection: search.Collection) -> None:
    try:
        clause = search.compile_order(text, collection=collection)
    except search.SearchError:
        return
    assert made_of_own_words(clause)
    assert f"{collection.table}.id" in clause


@given(key=st.text(), value=st.text())
def test_keys_and_values_never_change_the_sql(key: str, value: str) -> None:
    def literal(text: str) -> str:
        return "'" + text.replace("'", "\\'") + "'"

    searched = f"payload->{literal(key)}->>{literal('k')}={literal(value)}"
    try:
        condition = search.compile_search(searched, collection=search.RESOURCES)
    except search.SearchError:
        # A literal cannot end with a backslash: the dialect reads it as an escape of the closing quote.
        assert "\0" in searched or "\\" in searched
        return
    if "\\" not in key + value:
        assert condition.sql == "(((resources.payload->$1::text)->>$2::text) = $3::text)"
        assert condition.params == (key, "k", value)
    assert made_of_own_words(condition.sql)


def test_vocabulary_check_finds_foreign_words() -> None:
    assert made_of_own_words("(resources.name = $1::text)")
    assert not made_of_own_words("(resources.name = 'a')")
    assert not made_of_own_words("(resources.evil = $1::text)")
    assert not made_of_own_words("TRUE; drop table resources")
