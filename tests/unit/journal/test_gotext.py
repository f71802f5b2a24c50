import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.journal import go_quoting


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("plain", '"plain"', id="plain"),
        pytest.param("", '""', id="empty"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes-and-backslashes"),
        pytest.param("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"', id="named-escapes"),
        pytest.param("\x00\x1b\x7f", r'"\x00\x1b\x7f"', id="control"),
        pytest.param("é ☺ 世", '"é ☺ 世"', id="printable-beyond-ascii"),
        pytest.param("\u0085\u00a0\u200b\ufeff\ue000", r'"\u0085\u00a0\u200b\ufeff\ue000"', id="not-printable"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="not-printable-beyond-the-first-plane"),
        pytest.param(b"\xff".decode("utf-8", "surrogateescape"), r'"\xff"', id="byte-that-is-not-utf-8"),
        pytest.param("\ud800", r'"\ufffd"', id="lone-surrogate"),
        pytest.param("<&>", '"<&>"', id="html-is-not-escaped"),
    ],
)
def test_string_is_quoted_as_in_go(text: str, quoted: str) -> None:
    assert go_quoting.quote(text) == quoted


def test_bytes_are_quoted_as_ascii() -> None:
    assert go_quoting.quote_bytes('é"\n\xff'.encode() + b"\xff\x7f") == r'"\u00e9\"\n\u00ff\xff\x7f"'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": "x"}, '{"a":"x","b":1}', id="keys-are-sorted"),
        pytest.param({"a": {"d": 1, "c": [1, "2", None, True]}}, '{"a":{"c":[1,"2",null,true],"d":1}}', id="nested"),
        pytest.param({"a": "<b>&"}, r'{"a":"\u003cb\u003e\u0026"}', id="html"),
        pytest.param({"a": "\u2028é\u2029"}, r'{"a":"\u2028é\u2029"}', id="line-separators"),
        pytest.param({"a": 1.0, "b": 0.5, "c": 1e-7, "d": 1e21}, '{"a":1,"b":0.5,"c":1e-7,"d":1e+21}', id="floats"),
        pytest.param([3.0, 100000000000000000000.0, -0.0], "[3,100000000000000000000,-0]", id="whole-floats"),
        pytest.param({"a": 2**70}, '{"a":1180591620717411303424}', id="huge-integer"),
        pytest.param({1: "a"}, '{"1":"a"}', id="keys-that-are-numbers"),
        pytest.param({"a": b"\x00\xff"}, '{"a":"AP8="}', id="bytes"),
        pytest.param({"a": "\ud800"}, '{"a":"\ufffd"}', id="lone-surrogate"),
        pytest.param({"a": timedelta(seconds=1)}, '{"a":1000000000}', id="nested-duration"),
        pytest.param(None, "null", id="null"),
        pytest.param(object, "\"\\u003cclass 'object'\\u003e\"", id="any-object"),
    ],
)
def test_json_is_written_as_in_go(value: object, text: str) -> None:
    assert go_quoting.json_text(value) == text


@pytest.mark.long
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_json_text_decodes_to_the_value(value: object) -> None:
    text = go_quoting.json_text(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029\n") & set(text)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        pytest.param(timedelta(), "0s", id="zero"),
        pytest.param(timedelta(microseconds=15), "15µs", id="micro"),
        pytest.param(timedelta(microseconds=1500), "1.5ms", id="milli"),
        pytest.param(timedelta(seconds=1), "1s", id="second"),
        pytest.param(timedelta(minutes=5, microseconds=250), "5m0.00025s", id="minutes"),
        pytest.param(timedelta(days=1, seconds=0.5), "24h0m0.5s", id="hours"),
        pytest.param(-timedelta(seconds=90), "-1m30s", id="negative"),
    ],
)
def test_duration_is_written_as_in_go(span: timedelta, text: str) -> None:
    assert go_quoting.duration(span) == text
