"""Label selectors and field selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi.rules import selectors

LABELS = {"app": "web", "tier": "2"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=2", True),
        ("app!=web", False),
        ("none!=x", True),
        ("app in (web, db)", True),
        ("app notin (web,db)", False),
        ("app", True),
        ("!app", False),
        ("!none", True),
        ("tier>1", True),
        ("tier<2", False),
        ("app>1", False),
        ("app=", False),
    ],
)
def test_label_selector(text: str, matches: bool) -> None:
    test = selectors.labels(text)
    assert (test is None or test({"metadata": {"labels": LABELS}})) is matches


@given(st.text("ab=!,()< in", max_size=12))
def test_any_selector_is_parsed_or_rejected(text: str) -> None:
    try:
        test = selectors.labels(text)
    except selectors.BadSelector:
        return
    assert test is None or test({"metadata": {}}) in (True, False)
