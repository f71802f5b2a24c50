"""Decode the protobuf bodies of kubectl and typed Go clients into the JSON of the same object.

Responses are always JSON, which these clients accept too. Unknown fields are skipped; malformed bytes raise
`BadMessage`.
"""

import base64
import functools
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.schemas import builtin_types

MEDIA = "application/vnd.kubernetes.protobuf"
Json = dict[str, Any]
_MAGIC = b"k8s\x00"
_MESSAGES = Path(__file__).with_name("builtin_messages.json")
_MAX_DEPTH = 64


class BadMessage(Exception):
    """The bytes are not a message of a known kind."""


@functools.cache
def _messages() -> dict[str, dict[int, tuple[str, str]]]:
    table = orjson.loads(_MESSAGES.read_bytes())
    return {
        name: {int(number): (field.partition(":")[0], field.partition(":")[2]) for number, field in fields.items()}
        for name, fields in table.items()
    }


def read(body: bytes) -> Json:
    """Return the object in a Kubernetes protobuf envelope (`runtime.Unknown`)."""
    if not body.startswith(_MAGIC):
        raise BadMessage("the body does not begin as a Kubernetes protobuf does")
    envelope = dict(_fields(body[len(_MAGIC) :]))
    about = {number: _text(value) for number, value in _fields(_bytes(envelope.get(1, b"")))}
    version, kind = about.get(1, ""), about.get(2, "")
    name = _message_name(version, kind)
    return {"apiVersion": version, "kind": kind, **_message(_bytes(envelope.get(2, b"")), name, _MAX_DEPTH)}


def _message_name(version: str, kind: str) -> str:
    group, _, number = version.rpartition("/")
    root = builtin_types.roots().get(f"{group}/{number}/{kind}")
    short = f"{group.partition('.')[0] or 'core'}.{number}.{kind}"
    message_name = next((name for name in (root, short, f"meta.v1.{kind}") if name in _messages()), None)
    if message_name is None:
        raise BadMessage(f"no built-in kind is called {kind} in {version}")
    return message_name


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            size, position = _varint(data, position)
            if position + size > len(data):
                raise BadMessage("a field is longer than its message")
            yield number, data[position : position + size]
            position += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield number, data[position : position + size]
            position += size
        else:
            raise BadMessage(f"wire type {wire} is not in use")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise BadMessage("a number does not end")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result, position
        shift += 7


def _message(data: bytes, name: str, depth: int) -> Json:
    if depth == 0:
        raise BadMessage("messages are nested too deeply")
    numbered_fields = _messages()[name]
    written = builtin_types.field_names(name)
    obj: Json = {}
    for number, value in _fields(data):
        if number not in numbered_fields:
            continue
        field, kind = numbered_fields[number]
        if kind.startswith("["):
            obj.setdefault(field, []).append(_value(value, kind[1:], depth))
        elif kind.startswith("{"):
            entry = dict(_fields(_bytes(value)))
            obj.setdefault(field, {})[_text(entry.get(1, b""))] = _value(entry.get(2, b""), kind[1:], depth)
        elif written is not None and field not in written and kind in _messages():
            # Go embeds this struct: its fields belong to the outer object.
            obj |= _message(_bytes(value), kind, depth - 1)
        else:
            obj[field] = _value(value, kind, depth)
    return obj


def _value(value: int | bytes, kind: str, depth: int) -> Any:
    if kind in _SPECIAL:
        return _SPECIAL[kind](_bytes(value))
    if kind == "string":
        return _text(value)
    if kind == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    if kind == "bool":
        return bool(value)
    if kind == "double":
        return struct.unpack("<d", _bytes(value).rjust(8, b"\0")[:8])[0]
    if kind in _messages():
        return _message(_bytes(value), kind, depth - 1)
    return _signed(value)


def _signed(value: int | bytes) -> int:
    number = value if isinstance(value, int) else int.from_bytes(value, "little")
    return number - (1 << 64) if number >= 1 << 63 else number


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        # An absent value of a map arrives as the default of any type.
        raise BadMessage("a number stands where a message was expected")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError as error:
        raise BadMessage("a text is not UTF-8") from error


def _time(data: bytes) -> str | None:
    fields = dict(_fields(data))
    seconds, nanos = _signed(fields.get(1, 0)), _signed(fields.get(2, 0))
    # Go's zero time: year 1.
    if not fields or seconds == -62135596800:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError) as error:
        raise BadMessage("a time is out of range") from error
    return f"{moment}.{nanos // 1000:06d}Z" if nanos else f"{moment}Z"


def _int_or_string(data: bytes) -> int | str:
    fields = dict(_fields(data))
    return _text(fields.get(3, b"")) if fields.get(1) else _signed(fields.get(2, 0))


def _quantity(data: bytes) -> str:
    return _text(dict(_fields(data)).get(1, b"0"))


def _raw(data: bytes) -> Any:
    content = _bytes(dict(_fields(data)).get(1, b""))
    try:
        return orjson.loads(content) if content else None
    except orjson.JSONDecodeError as error:
        raise BadMessage("an embedded object is not JSON") from error


_SPECIAL = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _time,
    "util.intstr.IntOrString": _int_or_string,
    "api.resource.Quantity": _quantity,
    "runtime.RawExtension": _raw,
    "meta.v1.FieldsV1": _raw,
}
