"""What is packed comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import packing

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_everything_comes_back(value: dict[str, object]) -> None:
    assert packing.unpack(packing.pack(value)) == value


@pytest.mark.parametrize("length", [10, 4000, 5000, 400_000])
def test_large_objects_come_back_smaller(length: int) -> None:
    value = {"kind": "ConfigMap", "data": {"words": "all the same words " * (length // 19)}}
    packed = packing.pack(value)
    assert packing.unpack(packed) == value
    assert len(packed) < max(length, 200) + 60
    assert length < 5000 or len(packed) < length / 10
