"""How long a text is as Go writes it, without writing it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire.works import status, status_hash


@given(st.text(alphabet=st.sampled_from('z"\\<>&\u2028\u2029é😀\x00\x01\n\t\x7f/'), max_size=50))
def test_length_of_any_text(text: str) -> None:
    assert status_hash.escaped_length(text) == len(status_hash.canonical(text))


@pytest.mark.parametrize("value", [{"a": ["<", 1, None, {"é": "\u2028&"}]}, "x", 1.5])
def test_text_within_a_limit(value: object) -> None:
    text = status_hash.canonical(value)
    assert status_hash.escaped_length(text) == len(text)
    assert status_hash.canonical_within(value, max_bytes=len(text)) == text
    assert status_hash.canonical_within(value, max_bytes=len(text) - 1) is None


def test_status_keeps_its_hash() -> None:
    body = {"conditions": [{"type": "Applied", "status": "True"}]}
    whole = status.WorkStatus(body)
    assert whole.hash() == status_hash.hash_of_status(body) == whole.hash()
    assert whole == status.WorkStatus(body)
    assert whole.size == len(status_hash.canonical({**body, "resourceStatus": {}}))
