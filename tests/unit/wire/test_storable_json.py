"""JSON that PostgreSQL cannot store is rejected; all other JSON is accepted."""

import json
import math
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors, storable_json
from maestropy.wire.works import validation


def nested(depth: int, *, inner: str = "1") -> bytes:
    return ('{"a":[' * (depth // 2) + inner + "]}" * (depth // 2)).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(rb'{"a":"x\u0000"}', "\\u0000", id="nul"),
        pytest.param(rb'{"\\\u0000":1}', "\\u0000", id="nul-in-key-after-backslash"),
        pytest.param(b'{"a":1e309}', "number", id="beyond-float"),
        pytest.param(b'{"a":[-1.5E+400]}', "number", id="negative"),
        pytest.param(b"1e999999999999", "number", id="huge-exponent"),
        pytest.param(b'{"a":1e-20000}', "number", id="too-many-decimals"),
        pytest.param(b'{"a":' + b"9" * 400 + b"}", "number", id="400-digits"),
        pytest.param(b'{"a":' + b"9" * 250 + b"e99}", "number", id="250-digits-and-exponent"),
        pytest.param(b'{"a":0.' + b"1" * 17000 + b"}", "number", id="17000-decimals"),
        pytest.param(nested(514), "nested deeper", id="deep"),
        pytest.param(nested(514, inner='"]}]}"'), "nested deeper", id="deep-with-brackets-in-text"),
        pytest.param(b'{"a":"}","b":' * 600 + b'"\\""' + b"}" * 600, "nested deeper", id="deep-behind-fake-brackets"),
    ],
)
def test_json_that_postgresql_cannot_store_is_rejected(data: bytes, reason: str) -> None:
    with pytest.raises(errors.InvalidContent, match=f"the payload.*{re.escape(reason)}"):
        storable_json.check_json(data, label="the payload")
    with pytest.raises(errors.InvalidContent, match="event data"):
        validation.validate_manifest_bundle(b'{"x":' + data + b"}")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(rb'{"a":"\\u0000"}', id="escaped-backslash"),
        pytest.param(b'{"a":"1e999, ","image":"x@sha256:0e123456e999999"}', id="numbers-in-text"),
        pytest.param(b'{"a":"x, 1e999,"}', id="number-in-text-between-commas"),
        pytest.param(b'{"a":"' + b"9" * 20000 + b'"}', id="digits-in-text"),
        pytest.param(b"[1e308,1E-300,-0,0.1e-400]", id="numbers-in-range"),
        pytest.param(nested(512), id="maximum-depth"),
        pytest.param(b"[" + b",".join([b'{"a":["]}"]}'] * 3000) + b"]", id="many-brackets"),
        pytest.param(b"[" + b",".join([b'{"a":["\\"]}"]}'] * 3000) + b"]", id="many-brackets-and-quotes"),
        pytest.param(rb'"\ud83d\ude00"', id="surrogate-pair"),
    ],
)
def test_storable_json_is_accepted(data: bytes) -> None:
    storable_json.check_json(data, label="the payload")


@pytest.mark.parametrize("data", [b"", b"[" * 100000, b"\xef\xbb\xbf{}", b"NaN"])
def test_invalid_json_is_rejected(data: bytes) -> None:
    with pytest.raises(errors.MalformedMessage, match="failed to unmarshal metadata"):
        storable_json.check_json(data, label="metadata")


numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,5})?([eE][-+]?[0-9]{1,6})?\Z")


def fits(number: str) -> bool:
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return math.isfinite(float(number)) and decimals - int(exponent or 0) <= 16383


@given(st.lists(numbers, max_size=5), st.text(max_size=10))
def test_numbers_are_checked_one_by_one(numbers_sent: list[str], text: str) -> None:
    quoted = json.dumps(text.replace("\x00", ""))
    document = f'{{"t":{quoted},"n":[{" ,".join(numbers_sent)}],"u":{quoted}}}'.encode()
    try:
        storable_json.check_json(document, label="x")
    except errors.InvalidContent:
        assert not all(map(fits, numbers_sent))
    else:
        assert all(map(fits, numbers_sent))


@given(st.binary(max_size=60) | st.text('[]{}":,e019.-+\\u dTrue', max_size=40).map(str.encode))
def test_accepted_json_can_be_parsed_by_orjson(data: bytes) -> None:
    try:
        storable_json.check_json(data, label="x")
    except errors.WireError:
        return
    orjson.loads(data)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(rb'{"a":"\ud800"}', r"\ud800 is half of a surrogate pair", id="first-half-at-the-end"),
        pytest.param(rb'{"a":"\ud800 and more text"}', r"\ud800 is half of a surrogate pair", id="first-half"),
        pytest.param(rb'{"a":"\\\uDFFF"}', r"\uDFFF is half of a surrogate pair", id="second-half-after-backslash"),
        pytest.param(rb'{"a":"\ud83d\ude00\udc00"}', r"\udc00 is half of a surrogate pair", id="after-a-pair"),
        pytest.param(rb'{"a":"\\ud800', "truncated", id="truncated-and-no-escape"),
        pytest.param(rb'{"a":"\ud83d\ude00', "truncated", id="truncated-after-a-pair"),
    ],
)
def test_document_that_is_not_json_is_described(data: bytes, problem: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=f"failed to unmarshal the payload: .*{re.escape(problem)}"):
        storable_json.check_json(data, label="the payload")
