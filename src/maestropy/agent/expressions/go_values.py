"""Format values as Go does: its JSON, its `%v`, and its type names.

Feedback values, one annotation and several messages contain such text. A cluster may switch between a Go agent and this
one, so it is the same byte for byte. Only JSON values are supported.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import msgspec

from maestropy.wire.works import status_hash

_SHOWN_MAX = 256
_PLAIN = range(-4, 6)
_PLAIN_IN_JSON = range(-6, 21)
"""The powers of ten that are written without an exponent."""


def json_text(value: object) -> str:
    """Return compact JSON with sorted keys and `<`, `>`, `&` escaped."""
    return status_hash.canonical(_with_go_floats(value)).decode()


def json_text_within(value: object, *, max_bytes: int) -> str | None:
    """Return the same text as `json_text`, or None if it takes more bytes."""
    text = status_hash.canonical_within(_with_go_floats(value), max_bytes=max_bytes)
    return None if text is None else text.decode()


def shown(value: object) -> str:
    """Return the `%v` of a value, shortened for a message."""
    text = ""
    for part in _parts(value):
        text += part[: _SHOWN_MAX + 1]
        if len(text) > _SHOWN_MAX:
            return f"{text[:_SHOWN_MAX]}..."
    return text


def rendering(value: object) -> str:
    """Return the `%v` of a JSON value."""
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{name}:{rendering(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list | tuple):
        return "[" + " ".join(map(rendering, value)) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value, plain=_PLAIN)
    return str(value)


def _parts(value: object) -> Iterator[str]:
    """Yield the parts of a rendering; the caller may stop early, however large the value is."""
    if isinstance(value, Mapping):
        yield "map["
        for index, name in enumerate(sorted(value)):
            yield f" {name}:" if index else f"{name}:"
            yield from _parts(value[name])
        yield "]"
    elif isinstance(value, list | tuple):
        yield "["
        for index, item in enumerate(value):
            yield " " if index else ""
            yield from _parts(item)
        yield "]"
    elif isinstance(value, str):
        yield value
    else:
        yield rendering(value)


def object_hash(body: Mapping[str, Any]) -> str:
    """Return the MD5 of an object's `%v`: the value of the annotation `config-spec-hash`."""
    return hashlib.md5(f"&{{{rendering(body)}}}".encode(), usedforsecurity=False).hexdigest()


def type_name(value: object) -> str:
    """Return the Go type name of a decoded JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Mapping):
        return "map[string]interface {}"
    names = {int: "int64", float: "float64", str: "string", list: "[]interface {}", type(None): "<nil>"}
    return names.get(type(value), type(value).__name__)


def _with_go_floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_go_floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_go_floats(item) for item in value]
    if isinstance(value, float):
        return msgspec.Raw(_float_text(value, plain=_PLAIN_IN_JSON).encode())
    return value


def _float_text(value: float, *, plain: range) -> str:
    """Format a number with the fewest digits, and with an exponent if it is large or small."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(repr(value), "NaN")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    shortest = Decimal(repr(value)).normalize()
    exponent = shortest.adjusted()
    if exponent in plain:
        return format(shortest, "f")
    mantissa = format(shortest.scaleb(-exponent), "f")
    # Go pads an exponent to two digits; its JSON encoder removes that zero again.
    width = 1 if plain is _PLAIN_IN_JSON else 2
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"
