"""Define CEL's value types beyond JSON, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maestropy.agent.expressions.budget import Budget, text_steps

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1


class CelError(Exception):
    """An expression failed; the text goes into a condition."""


class CompileError(CelError):
    """The expression cannot be parsed, or uses an undeclared name."""

    def __init__(self, problem: str, *, source: str, position: int) -> None:
        before = source[:position]
        line = before.count("\n") + 1
        column = position - (before.rfind("\n") + 1)
        snippet = source.split("\n")[line - 1]
        self.headline = f"ERROR: <input>:{line}:{column + 1}: {problem}"
        super().__init__(f"{self.headline}\n | {snippet}\n | {'.' * column}^")


class CelUint(int):
    """An unsigned integer, which does not mix with signed ones."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class CelDuration:
    """A duration in nanoseconds."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class CelTimestamp:
    """A timestamp in nanoseconds since 1970 UTC."""

    nanos: int


@dataclass(frozen=True, slots=True)
class CelOptional:
    """An optional value."""

    value: Any = None
    is_present: bool = False


NONE = CelOptional()


@dataclass(frozen=True, slots=True)
class CelType:
    """The type of a value."""

    name: str


@dataclass(frozen=True, slots=True)
class CelOpaque:
    """A value of a Kubernetes library: a quantity, a URL, an IP address, a CIDR or a semantic version."""

    type: str
    value: Any


_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (CelUint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (Mapping, "map"),
    (CelDuration, "google.protobuf.Duration"),
    (CelTimestamp, "google.protobuf.Timestamp"),
    (CelOptional, "optional_type"),
    (CelType, "type"),
    (type(None), "null_type"),
)

TYPES = {name: CelType(name) for _, name in _NAMES}
"""The types an expression can name."""


def type_name(value: object) -> str:
    """Return CEL's name for the type of a value."""
    if isinstance(value, CelOpaque):
        return value.type
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return type(value).__name__


def equal(left: Any, right: Any, *, budget: Budget) -> bool:
    """Compare as CEL does: numbers by value, everything else only with its own type. Every compared node is charged."""
    budget.spend(1)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, str | bytes):
        budget.spend(text_steps(len(left)))
        return type(left) is type(right) and bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        budget.spend(1)
        return len(left) == len(right) and all(
            equal(first, second, budget=budget) for first, second in zip(left, right, strict=True)
        )
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        budget.spend(2)
        return len(left) == len(right) and all(
            key in right and equal(value, right[key], budget=budget) for key, value in left.items()
        )
    if isinstance(left, CelOptional) and isinstance(right, CelOptional):
        return left.is_present is right.is_present and equal(left.value, right.value, budget=budget)
    return type(left) is type(right) and bool(left == right)


def no_overload(name: str) -> CelError:
    """Return the error for arguments that no overload accepts."""
    return CelError(f"no such overload: {name}" if name else "no such overload")
