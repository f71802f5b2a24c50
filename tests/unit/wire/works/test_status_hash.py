"""The status hash equals the hash of the Go agent."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors
from maestropy.wire.works import status_hash

DATA = Path(__file__).parents[3] / "data"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize("name", ["wire_status_from_agent", "wire_status_to_source"])
def test_hash_of_recorded_status_updates(name: str) -> None:
    sample = json.loads((DATA / f"{name}.json").read_text())
    assert status_hash.hash_of_data(json.dumps(sample["data"]).encode()) == sample["statushash"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="empty"),
        pytest.param({"conditions": []}, id="no-conditions"),
        pytest.param({"conditions": None, "resourceStatus": None}, id="nulls"),
        pytest.param({"resourceStatus": {"manifests": []}}, id="no-manifests"),
    ],
)
def test_empty_statuses_have_the_same_hash(status: dict[str, Any]) -> None:
    assert status_hash.hash_of_status(status) == status_hash.EMPTY_STATUS
    assert hashlib.sha256(b'{"resourceStatus":{}}').hexdigest() == status_hash.EMPTY_STATUS


def test_missing_data_has_the_hash_of_an_empty_status() -> None:
    assert status_hash.hash_of_data(b"") == status_hash.hash_of_data(b"{}") == status_hash.EMPTY_STATUS
    assert status_hash.NO_STATUS == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def digest(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.parametrize(
    ("data", "canonical"),
    [
        pytest.param(
            r'{"conditions":[{"type":"T","message":"<a> & \u2028\u2029 é \b\f\n\u0001\u007f"}]}',
            '{"conditions":[{"message":"\\u003ca\\u003e \\u0026 \\u2028\\u2029 é \\b\\f\\n\\u0001\x7f","type":"T"}],'
            '"resourceStatus":{}}',
            id="escapes-as-go",
        ),
        pytest.param(
            '{"z":1.0,"y":[1e5,0.10],"x":123456789012345678901234567890}',
            '{"resourceStatus":{},"x":123456789012345678901234567890,"y":[1e5,0.10],"z":1.0}',
            id="numbers-as-written",
        ),
        pytest.param(
            '{"conditions":[{"type":"T","observedGeneration":0}],"resourceStatus":[{"resourceMeta":{},'
            '"conditions":[{"type":"A","observedGeneration":0},{"type":"B","observedGeneration":2}]}]}',
            '{"conditions":[{"type":"T"}],"resourceStatus":{"manifests":[{"conditions":[{"type":"A"},'
            '{"observedGeneration":2,"type":"B"}],"resourceMeta":{},"statusFeedback":{}}]}}',
            id="omission-rules",
        ),
        pytest.param('{"manifestBundle":{"manifests":[1]}}', '{"resourceStatus":{}}', id="bundle-is-ignored"),
    ],
)
def test_hash_is_computed_over_the_go_notation(data: str, canonical: str) -> None:
    assert status_hash.hash_of_data(data.encode()) == digest(canonical)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_order_of_keys_and_whitespace_do_not_change_the_hash(body: dict[str, Any]) -> None:
    body.pop("resourceStatus", None)
    shuffled = dict(reversed(body.items()))
    assert status_hash.hash_of_data(json.dumps(body).encode()) == status_hash.hash_of_data(
        json.dumps(shuffled, indent=3).encode()
    )


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_work_and_event_have_the_same_hash(body: dict[str, Any]) -> None:
    body.pop("resourceStatus", None)
    body.pop("manifestBundle", None)
    manifests = [{"resourceMeta": {"ordinal": 0}, "conditions": []}]
    event_form = json.dumps({**body, "resourceStatus": manifests}).encode()
    assert status_hash.hash_of_data(event_form) == status_hash.hash_of_status(
        {**body, "resourceStatus": {"manifests": manifests}}
    )


@pytest.mark.parametrize("data", [b"[]", b"{", b'{"a":"\xff"}', b"[" * 5000], ids=["list", "cut", "utf8", "deep"])
def test_invalid_data_is_rejected(data: bytes) -> None:
    with pytest.raises(errors.MalformedMessage, match="failed to unmarshal event data"):
        status_hash.hash_of_data(data)
