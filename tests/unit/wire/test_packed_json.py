"""Packed JSON objects are unpacked without loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import packed_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_packed_object_round_trip(value: dict[str, object]) -> None:
    assert packed_json.unpack(packed_json.pack(value)) == value


@pytest.mark.parametrize("length", [10, 4000, 5000, 400_000])
def test_large_object_is_compressed(length: int) -> None:
    value = {"kind": "ConfigMap", "data": {"words": "all the same words " * (length // 19)}}
    packed = packed_json.pack(value)
    assert packed_json.unpack(packed) == value
    assert len(packed) < max(length, 200) + 60
    assert length < 5000 or len(packed) < length / 10
