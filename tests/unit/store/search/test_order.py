"""orderBy: a closed set of names and directions, and always a tie breaker."""

import pytest

from maestropy.store import search

RULE = "write a field, or a field with asc or desc after one space, in lower case; a comma between several"


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        pytest.param("", "resources.created_at, resources.id", id="default"),
        pytest.param("created_at desc", "resources.created_at DESC, resources.id", id="descending"),
        pytest.param("name asc", "resources.name, resources.id", id="ascending"),
        pytest.param("source, version desc", "resources.source, resources.version DESC, resources.id", id="two-fields"),
        pytest.param("id desc", "resources.id DESC", id="id-itself"),
        pytest.param("id,name", "resources.id, resources.name", id="id-first"),
        pytest.param("name,name desc", "resources.name, resources.id", id="named-twice"),
        pytest.param("resources.NAME", "resources.name, resources.id", id="qualified"),
    ],
)
def test_order(text: str, clause: str) -> None:
    assert search.compile_order(text, collection=search.RESOURCES) == clause


def test_order_of_consumers() -> None:
    assert search.compile_order("", collection=search.CONSUMERS) == "consumers.created_at, consumers.id"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("name DESC", f"bad order value 'name DESC'; {RULE}", id="capitals"),
        pytest.param("name  desc", f"bad order value 'name  desc'; {RULE}", id="two-spaces"),
        pytest.param("name desc nulls last", f"bad order value 'name desc nulls last'; {RULE}", id="more-words"),
        pytest.param("name,", f"bad order value ''; {RULE}", id="empty-item"),
        pytest.param(" , name", f"bad order value ''; {RULE}", id="empty-first"),
        pytest.param("a.b", None, id="other-table"),
        pytest.param("resources.a.b", None, id="two-dots"),
        pytest.param("(select 1)", f"bad order value '(select 1)'; {RULE}", id="expression"),
        pytest.param("name;drop", None, id="statement"),
        pytest.param("1", None, id="ordinal"),
        pytest.param("name\0", None, id="nul"),
        pytest.param("\udfff", None, id="lone-surrogate"),
    ],
)
def test_rejected_order(text: str, reason: str | None) -> None:
    with pytest.raises(search.SearchError) as caught:
        search.compile_order(text, collection=search.RESOURCES)
    assert caught.value.code == 21
    assert reason in (None, caught.value.reason)


def test_path_into_json_is_no_order() -> None:
    with pytest.raises(search.SearchError, match=r"^metadata is not a related resource of Resource; searchable fields"):
        search.compile_order("metadata.name", collection=search.RESOURCES)


def test_unknown_field_is_named_with_the_valid_ones() -> None:
    with pytest.raises(search.SearchError, match=r"colour is not a valid field name; .*: id, name, created_at"):
        search.compile_order("colour desc", collection=search.RESOURCES)
