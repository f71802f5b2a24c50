import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.untrusted import printable


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        pytest.param("plain é ☺ 世", "plain é ☺ 世", id="printable"),
        pytest.param("a\nb\tc\r", r"a\nb\tc\r", id="named"),
        pytest.param("\x1b[2J\x00\x7f", r"\x1b[2J\x00\x7f", id="c0"),
        pytest.param("\x9b31m", r"\x9b31m", id="c1"),
        pytest.param("a\u202eb\u2066\u200b", r"a\u202eb\u2066\u200b", id="bidirectional-and-invisible"),
        pytest.param("\u2028\u0085", r"\u2028\x85", id="line-separators"),
        pytest.param("\U000e0041", r"\U000e0041", id="tags"),
    ],
)
def test_unprintable_characters_are_escaped(text: str, escaped: str) -> None:
    assert printable.escape(text) == escaped


def test_lines_and_tabs_of_a_text_stay() -> None:
    assert printable.escape_lines("a\n\tb\x1b\r\n") == "a\n\tb\\x1b\\r\n"


@given(st.text())
def test_escaped_text_is_printable(text: str) -> None:
    assert printable.escape(text).isprintable()
    assert printable.is_safe(printable.escape_lines(text))


@given(st.text())
def test_escaped_json_means_the_same(text: str) -> None:
    escaped = printable.json_ascii(json.dumps(text, ensure_ascii=False))
    assert json.loads(escaped) == text
    assert printable.is_safe(escaped)
