"""Parse YAML as gopkg.in/yaml.v3 does, the library with which HyperFleet's adapter reads tasks and rendered manifests.

PyYAML reads YAML 1.1: there `yes` is a boolean, `1e3` a text and `12:30` a number. In yaml.v3 a plain scalar is

| text | value |
|---|---|
| `true`, `True`, `TRUE`, `false` … | a boolean; `yes`, `no`, `on`, `off` are texts, unless the field is a boolean |
| `~`, `null`, `Null`, `NULL`, nothing | null |
| `0x1F`, `0b101`, `0o17`, `017`, `1_000` | an integer of 64 bits, `017` in base 8, underscores anywhere |
| `1e3`, `1.5`, `.5`, `089`, a larger integer | a float |
| everything else | a text; so are dates here, which yaml.v3 writes as a time |

A key that an object has twice is an error, as there. Pure.
"""

import math
import re
from typing import Any, Final

import yaml

from maestropy.untrusted import yaml_documents

_TAG: Final = "tag:yaml.org,2002:"
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), "null"),
    **dict.fromkeys(("true", "True", "TRUE", "false", "False", "FALSE"), "bool"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "float"),
    **dict.fromkeys((f"{sign}.{text}" for sign in ("", "+", "-") for text in ("inf", "Inf", "INF")), "float"),
    "<<": "merge",
}
_INTEGER: Final = re.compile(r"[-+]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES: Final = {"x": 16, "b": 2, "o": 8}
TRUE: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
"""Texts that a field of the type boolean takes for true."""
FALSE: Final = frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF"))


def number(text: str) -> int | float | None:
    """Return the number that a plain scalar is; None if it is none."""
    # Underscores stand anywhere in a number, except in one that begins with a point.
    plain = text if text.startswith(".") else text.replace("_", "")
    if text[:1] not in tuple("+-.0123456789") or len(plain) > yaml_documents.NUMBER_LENGTH:
        return None
    if (match := _INTEGER.fullmatch(plain)) is not None:
        base = next((base for name, base in _BASES.items() if match[name]), 10)
        digits = next((match[name] for name in _BASES if match[name]), plain.lstrip("+-"))
        value = -int(digits, base) if plain.startswith("-") else int(digits, base)
        # A range above int64 is that of uint64, which Go parses without a sign.
        if -(2**63) <= value < (2**63 if plain[0] in "+-" else 2**64):
            return value
    if _FLOAT.fullmatch(plain) is None:
        return None
    return None if math.isinf(real := float(plain)) else real


class GoYamlLoader(yaml_documents.UniqueKeysLoader):
    """YAML values as yaml.v3 reads them."""

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> Any:
        """Return the tag of a node; `implicit[0]` says that a scalar is plain."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAG + _type(value)
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]  # no types

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Return a number, also where a tag says what it is."""
        value = number(str(node.value))
        if value is None:
            return super().construct_number(node)
        return float(value) if node.tag == f"{_TAG}float" else value


for _name in ("int", "float"):
    GoYamlLoader.add_constructor(_TAG + _name, GoYamlLoader.construct_number)


def _type(text: str) -> str:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    value = number(text)
    return "str" if value is None else "float" if isinstance(value, float) else "int"
