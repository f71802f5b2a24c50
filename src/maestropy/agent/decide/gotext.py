"""How Go writes a value as text: its JSON, its `%v`, and the names of its types.

Feedback values, one annotation and several messages carry such text, and a cluster may pass from a Go agent to this one
and back, so it has to be the same to the byte. Only JSON values are known here.
"""

import hashlib
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from maestropy.wire import hashing

_SHOWN_MAX = 256
_PLAIN = range(-4, 6)
_PLAIN_IN_JSON = range(-6, 21)
"""The powers of ten that are written without an exponent."""


def json_text(value: object) -> str:
    """Return compact JSON with sorted keys and `<`, `>`, `&` escaped."""
    return hashing.canonical(_with_go_floats(value)).decode()


def shown(value: object) -> str:
    """Return the `%v` of a value, shortened for a message."""
    text = rendering(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."


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


def object_hash(body: Mapping[str, Any]) -> str:
    """Return the MD5 of an object's `%v`: the value of the annotation `config-spec-hash`."""
    return hashlib.md5(f"&{{{rendering(body)}}}".encode(), usedforsecurity=False).hexdigest()


def type_name(value: object) -> str:
    """Return what Go calls the type of a decoded JSON value."""
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
    """Write a number with the fewest digits, and with an exponent if it is large or small."""
    if math.isinf(value) or math.isnan(value):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(repr(value), "NaN")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    shortest = Decimal(repr(value)).normalize()
    exponent = shortest.adjusted()
    if exponent in plain:
        return format(shortest, "f")
    mantissa = format(shortest.scaleb(-exponent), "f")
    # Go pads an exponent to two digits; its JSON takes the zero of a small one away again.
    width = 1 if plain is _PLAIN_IN_JSON else 2
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"
