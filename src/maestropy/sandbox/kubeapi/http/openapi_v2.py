"""Build the document of `/openapi/v2`, as JSON and as protobuf: kubectl validates a List with it, on its own side.

kubectl accepts only protobuf here (`openapi.v2.Document` of gnostic). The definitions are those of OpenAPI v3, with the
differences of the older version: references have no siblings, and a value of any form has no properties.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.http import openapi
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = (PROTOBUF, PROTOBUF.replace("v2.v1.0", "v2@v1.0"))
"""What clients ask for; the form with `@` is not a valid media type, but kubectl sends it."""
_V3_REFERENCE, _V2_REFERENCE = "#/components/schemas/", "#/definitions/"
_EXTENSIONS = (
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
)


def document(kinds: Iterable[ServedKind]) -> Json:
    """Return the document as JSON."""
    served = list(kinds)
    definitions: Json = {}
    for group, version in dict.fromkeys((kind.group, kind.version) for kind in served):
        schemas = (openapi.document(group, version, served) or {})["components"]["schemas"]
        definitions |= {name: _definition(schema) for name, schema in schemas.items()}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": {},
        "definitions": definitions,
    }


def protobuf(content: Mapping[str, Any]) -> bytes:
    """Return a document as `openapi.v2.Document`."""
    info = content["info"]
    named = [_message(1, _named_schema(name, schema)) for name, schema in content["definitions"].items()]
    return b"".join(
        (
            _text(1, content["swagger"]),
            _message(2, _text(1, info["title"]) + _text(2, info["version"])),
            _message(8, b""),
            _message(9, b"".join(named)),
        )
    )


def _definition(schema: Mapping[str, Any]) -> Json:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf") or () if "$ref" in part), None)
    if reference:
        return {"$ref": reference.replace(_V3_REFERENCE, _V2_REFERENCE)}
    extensions = {name: schema[name] for name in _EXTENSIONS if name in schema}
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return {"type": "string", "format": "int-or-string", **extensions}
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return {"type": "object", **extensions}
    if schema == openapi.QUANTITY_SCHEMA:
        return {"type": "string"}  # this version has no alternatives, and kubectl accepts numbers for it
    converted: Json = {name: schema[name] for name in ("type", "format", "description") if name in schema}
    if schema.get("properties"):
        converted["properties"] = {name: _definition(child) for name, child in schema["properties"].items()}
        converted |= {"required": schema["required"]} if schema.get("required") else {}
    elif isinstance(schema.get("additionalProperties"), Mapping):
        converted["additionalProperties"] = _definition(schema["additionalProperties"])
    if isinstance(schema.get("items"), Mapping):
        converted["items"] = _definition(schema["items"])
    return converted | extensions


def _schema(schema: Mapping[str, Any]) -> bytes:
    """Encode a message Schema; the numbers are those of OpenAPIv2.proto."""
    parts = [
        _text(number, schema[name])
        for number, name in ((1, "$ref"), (2, "format"), (4, "description"))
        if schema.get(name)
    ]
    parts += [_text(19, name) for name in schema.get("required") or ()]
    if "additionalProperties" in schema:
        parts.append(_message(21, _message(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        named = [_message(1, _named_schema(name, child)) for name, child in schema["properties"].items()]
        parts.append(_message(25, b"".join(named)))
    # The value of an extension is YAML, of which JSON is a part.
    parts += [
        _message(31, _text(1, name) + _message(2, _text(2, orjson.dumps(schema[name]).decode())))
        for name in _EXTENSIONS
        if name in schema
    ]
    return b"".join(parts)


def _named_schema(name: str, schema: Mapping[str, Any]) -> bytes:
    return _text(1, name) + _message(2, _schema(schema))


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, content: bytes) -> bytes:
    """Encode a field of the wire type `length-delimited`: a string, or a message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
