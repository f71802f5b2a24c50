"""The OpenAPI document with which kubectl validates a List: complete, and decodable as protobuf."""

from collections.abc import Iterator
from typing import Any

from maestropy.sandbox.kubeapi.http import openapi_v2
from maestropy.sandbox.kubeapi.schemas import kinds

DOCUMENT = openapi_v2.document(kinds.builtin())


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if isinstance(value.get("$ref"), str) else [])
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while position < len(data):
        key, length = varint(), varint()
        assert key & 7 == 2
        yield key >> 3, data[position : position + length]
        position += length


def test_every_reference_has_a_definition_of_kubernetes() -> None:
    definitions = DOCUMENT["definitions"]
    assert {reference.removeprefix("#/definitions/") for reference in references(DOCUMENT)} <= set(definitions)
    replicas = definitions["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]
    assert replicas["type"] == "integer"
    [kind] = definitions["io.k8s.api.core.v1.ConfigMap"]["x-kubernetes-group-version-kind"]
    assert kind == {"group": "", "kind": "ConfigMap", "version": "v1"}
    port = definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert port == {"type": "string", "format": "int-or-string"}
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"type": "string"}


def test_protobuf_names_every_definition() -> None:
    message = dict(fields(openapi_v2.protobuf(DOCUMENT)))
    assert message[1] == b"2.0"
    named = [dict(fields(item)) for _, item in fields(message[9])]
    assert [item[1].decode() for item in named] == list(DOCUMENT["definitions"])
    config_map = dict(fields(next(item[2] for item in named if item[1] == b"io.k8s.api.core.v1.ConfigMap")))
    assert config_map[22] == b"\n\x06object"
    properties = [dict(fields(item))[1] for _, item in fields(config_map[25])]
    assert {b"apiVersion", b"data", b"metadata"} <= set(properties)
