"""Answers are bounded and paged, and text from outside stays data."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maestropy.mcp import answers, texts
from maestropy.mcp.answers import Result
from maestropy.mcp.texts import Ours
from tests.unit.diagnose import planted
from tests.unit.mcp.injections import CORPUS

PROMISED = 4_000


def page(result: Result, start: int = 0) -> answers.Page:
    return answers.page(result, origin="test", start=start, cursor="tool-1:1000000")


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (*strings(key), *strings(item))]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_text_from_outside_cannot_leave_its_marks(text: str) -> None:
    model = page(Result(head={"says": text, text[:90]: "key"}, items=[{"text": text}])).model
    written = answers.written(model)
    assert json.loads(written) == model, "it is one JSON document, whatever the text holds"
    for shown in strings(model):
        assert shown.isprintable(), "no control, format or tag characters"
        if shown == texts.NOTICE:
            continue
        if " " in shown:
            marked = shown.startswith(texts.BEGIN) and shown.endswith(texts.END)
            assert marked or shown == "1 to 1 of 1", shown
        inner = shown.removeprefix(texts.BEGIN).removesuffix(texts.END)
        assert texts.BEGIN not in inner
        assert texts.END not in inner
    assert answers.tokens(written) < PROMISED


def test_secrets_are_hidden_wherever_a_text_stands() -> None:
    secrets = planted.secrets()
    places = [
        {
            "text": f"failed: {secret}",
            "list": [secret],
            "map": {secret: secret, "label": f"a={secret}"},
            "password": "x",
        }
        for secret in secrets
    ]
    start, written = 0, ""
    while start < len(places):
        shown = page(Result(head={"says": secrets[start % 200]}, items=places), start)
        written += answers.written(shown.model)
        start += shown.shown
    assert not [secret for secret in secrets if secret in written]


def test_ours_is_not_marked() -> None:
    model = page(Result(head={"title": Ours("The cluster rejected some manifests.")})).model
    assert model["title"] == "The cluster rejected some manifests."


def test_long_list_is_paged_without_loss() -> None:
    items = [{"work": f"work-{number}", "says": "a problem of some length " * 5} for number in range(500)]
    seen: list[str] = []
    start = 0
    while start < len(items):
        shown = page(Result(head={}, items=items), start)
        assert answers.tokens(answers.written(shown.model)) < PROMISED
        seen += [item["work"] for item in shown.model["items"]]
        assert shown.shown > 0
        start += shown.shown
    assert seen == [item["work"] for item in items]


@pytest.mark.long
@given(
    st.recursive(
        st.text(max_size=40).map(lambda text: text * 20) | st.integers() | st.floats() | st.none(),
        lambda inner: (
            st.lists(inner, max_size=8).map(lambda items: items * 10)
            | st.dictionaries(st.text(max_size=40), inner, max_size=8)
        ),
        max_leaves=20,
    )
)
@settings(max_examples=25)
def test_any_item_fits(value: Any) -> None:
    shown = page(Result(head={"value": value}, items=[{"value": value}, {"other": value}], unknown=["x" * 900] * 40))
    assert shown.shown >= 1
    assert answers.tokens(answers.written(shown.model)) < PROMISED


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("4b8eac98-7c81-505e-aebc-2b8a451ec8a5", 15),
        ("The cluster rejected some manifests.", 7),
        ("集群拒绝了清单", 7),
        ("👩‍👩‍👧‍👦", 4),
        ("x" * 3500, 875),
    ],
    ids=["uuid", "words", "chinese", "emoji", "letters"],
)
def test_tokens_are_estimated_on_the_safe_side(text: str, least: int) -> None:
    assert answers.tokens(text) >= least


@pytest.mark.parametrize(
    "char", [*"\u200b\u2060\u115f\u1160\u3164\uffa0\u2800\u034f\ufe0f\u180b", "\U000e0101", "\U000e0041"]
)
def test_characters_that_show_nothing_are_escaped(char: str) -> None:
    assert char not in texts.data(f"a{char}b")
    assert char not in texts.safe(Ours(f"a{char}b"))
    assert f"{ord(char):x}" in texts.data(f"a{char}b")


def test_line_of_a_log_is_marked_also_if_it_is_one_word() -> None:
    order = "delete_all_works_now"
    assert texts.data(order) == order
    assert texts.safe({"text": texts.Quoted(order)}) == {"text": f"{texts.BEGIN}{order}{texts.END}"}
