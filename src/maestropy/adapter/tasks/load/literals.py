"""Find the apiVersion and kind of a manifest without rendering it: HyperFleet requires both to be literal values. Pure.

Objects are found and deleted by their kind before anything is rendered, so no template may choose it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TOP_LEVEL = re.compile(r"^(apiVersion|kind)[ \t]*:[ \t]*(.*)$")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """The apiVersion and kind of a manifest."""

    api_version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.api_version}/{self.kind}"


@dataclass(frozen=True, slots=True)
class NotLiteral:
    """The kind of a manifest cannot be read from its text."""

    reason: str


def kind_of(manifest: Any) -> ObjectKind | NotLiteral:
    """Return the kind of a manifest, given as an object or as text with templates."""
    if isinstance(manifest, Mapping):
        return _of_values({name: manifest.get(name) for name in ("apiVersion", "kind")})
    if isinstance(manifest, str):
        return _of_text(manifest)
    return NotLiteral("manifest must be an object or a text")


def _of_values(values: Mapping[str, Any], lines: Mapping[str, int] | None = None) -> ObjectKind | NotLiteral:
    for name, value in values.items():
        line = f"line {lines[name]}: " if lines and name in lines else ""
        if value is None or value == "":
            return NotLiteral(f"{line}{name} is required")
        if not isinstance(value, str) or "{{" in value:
            return NotLiteral(f"{line}{name} must be a literal value")
    return ObjectKind(str(values["apiVersion"]), str(values["kind"]))


def _of_text(text: str) -> ObjectKind | NotLiteral:
    values: dict[str, Any] = {"apiVersion": None, "kind": None}
    lines: dict[str, int] = {}
    depth = 0
    for number, line in enumerate(text.splitlines(), start=1):
        opened = len(re.findall(r"\{\{-?\s*(?:if|range|with)\b", line))
        depth += opened - len(re.findall(r"\{\{-?\s*end\b", line))
        match = _TOP_LEVEL.match(line)
        if match is None:
            continue
        name, value = match[1], _unquoted(_COMMENT.sub("", match[2]).strip())
        if name in lines:
            return NotLiteral(f"line {number}: {name} is set more than once")
        lines[name] = number
        # Inside of {{ if }} it is there or not, which is no literal value either.
        values[name] = "{{ if }}" if depth or opened else value
    return _of_values(values, lines)


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
