"""Protobuf bodies are decoded to the JSON of the same object; malformed bytes raise BadMessage and nothing else."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi.http import protobuf


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | bytes | str) -> bytes:
    """Write one field."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def sent(version: str, kind: str, *fields: bytes) -> bytes:
    about = field(1, version) + field(2, kind)
    return b"k8s\x00" + field(1, about) + field(2, b"".join(fields))


def entry(key: str, value: str | bytes) -> bytes:
    """Write one entry of a map."""
    return field(1, key) + field(2, value)


METADATA = field(1, field(1, "n") + field(11, entry("k", "v")))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            sent("v1", "ConfigMap", METADATA, field(2, entry("a", "b")), field(3, entry("x", b"\xff"))),
            {"metadata": {"name": "n", "labels": {"k": "v"}}, "data": {"a": "b"}, "binaryData": {"x": "/w=="}},
            id="maps-and-bytes",
        ),
        pytest.param(
            sent("apps/v1", "Deployment", field(2, field(1, 3) + field(7, 1))),
            {"spec": {"replicas": 3, "paused": True}},
            id="numbers-and-booleans",
        ),
        pytest.param(
            sent("v1", "Pod", field(2, field(1, field(1, "v") + field(2, field(2, b""))) + field(1, field(1, "w")))),
            {"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}]}},
            id="embedded-structs-are-flat-in-json",
        ),
        pytest.param(
            sent("v1", "Service", field(2, field(1, field(3, 80) + field(4, field(1, 1) + field(3, "http"))))),
            {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}},
            id="int-or-string",
        ),
        pytest.param(
            sent("v1", "DeleteOptions", field(1, -1), field(2, field(1, "u"))),
            {"gracePeriodSeconds": -1, "preconditions": {"uid": "u"}},
            id="options-and-negative-numbers",
        ),
        pytest.param(
            sent("v1", "ConfigMap", field(1, field(8, field(1, 86400))), field(99, "unknown")),
            {"metadata": {"creationTimestamp": "1970-01-02T00:00:00Z"}},
            id="times-and-unknown-fields",
        ),
    ],
)
def test_decode(body: bytes, expected: dict[str, Any]) -> None:
    obj = protobuf.read(body)
    assert {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")} == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{}", id="json"),
        pytest.param(b"k8s\x00", id="only-the-magic-number"),
        pytest.param(sent("v1", "Nothing"), id="unknown-kind"),
        pytest.param(sent("v1", "ConfigMap", METADATA)[:-3], id="truncated"),
        pytest.param(sent("v1", "ConfigMap", field(1, 5)), id="number-for-a-message"),
        pytest.param(sent("v1", "ConfigMap", field(1, field(1, b"\xff"))), id="not-utf-8"),
        pytest.param(b"k8s\x00" + struct.pack("B", 0x0B), id="unused-wire-type"),
    ],
)
def test_malformed_body_is_rejected(body: bytes) -> None:
    with pytest.raises(protobuf.BadMessage):
        protobuf.read(body)


@given(st.sampled_from(["ConfigMap", "Pod", "Secret", "Event", "Node"]), st.binary(max_size=40))
def test_any_bytes_are_decoded_or_rejected(kind: str, data: bytes) -> None:
    try:
        obj = protobuf.read(sent("v1", kind, data))
    except protobuf.BadMessage:
        return
    assert obj["kind"] == kind
