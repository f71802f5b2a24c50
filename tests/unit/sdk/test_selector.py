"""Label selectors are parsed, matched and translated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sdk import errors, selector

LABELS = "payload->'metadata'->'labels'"


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        pytest.param("a=b", {"a": "b"}, True, id="equal"),
        pytest.param("a==b", {"a": "c"}, False, id="not-equal"),
        pytest.param("a!=b", {}, True, id="not-equal-without-the-label"),
        pytest.param("a notin (b, c)", {"a": "c"}, False, id="notin"),
        pytest.param("a in (b,c)", {"a": "c"}, True, id="in"),
        pytest.param("a", {"a": ""}, True, id="exists"),
        pytest.param("!a", {"a": ""}, False, id="absent"),
        pytest.param("x.io/a=b , c in (d),!e", {"x.io/a": "b", "c": "d"}, True, id="several"),
        pytest.param("a=", {"a": ""}, True, id="empty-value"),
        pytest.param("in in (in)", {"in": "in"}, True, id="named-like-an-operator"),
        pytest.param("", {"a": "b"}, True, id="everything"),
        pytest.param(None, {}, True, id="none"),
        pytest.param({"a": "b", "c": "d"}, {"a": "b"}, False, id="dict"),
    ],
)
def test_selector_matches_labels(text: selector.Labels, labels: dict[str, str], matches: bool) -> None:
    assert selector.parse(text).matches(labels) is matches


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("a=b,c==d", [f"{LABELS}@>'" + '{"a":"b","c":"d"}' + "'"], id="equal"),
        pytest.param("a in (x,y)", [f"{LABELS}->>'a'in('x','y')"], id="in"),
        pytest.param("a", [f"{LABELS}->>'a' like '%'"], id="exists"),
        pytest.param("a!=b,!c,d notin (e)", [], id="not-supported-by-search"),
    ],
)
def test_search_terms_of_selector(text: str, terms: list[str]) -> None:
    assert selector.parse(text).search_terms() == terms


@pytest.mark.parametrize("text", ["a=b,", ",", "a b", "a=b=c", "a in b", "a in (b", "='x'", "a='x'", "a=b c", "-=a"])
def test_malformed_selector_is_rejected(text: str) -> None:
    with pytest.raises(errors.Invalid):
        selector.parse(text)


@given(st.text(max_size=30))
def test_search_terms_are_always_quoted(text: str) -> None:
    try:
        terms = selector.parse(text).search_terms()
    except errors.Invalid:
        return
    assert all("\\" not in term and term.count("'") % 2 == 0 for term in terms)


@pytest.mark.parametrize("text", ["it's", "a\\", "a\nb"])
def test_literal_with_quote_is_rejected(text: str) -> None:
    with pytest.raises(errors.Invalid):
        selector.quoted(text)
