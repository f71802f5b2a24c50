"""The values CEL knows beside those of JSON, and the errors of its expressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1
UINT_MAX = 2**64 - 1


class CelError(Exception):
    """An expression failed; the text goes into a condition."""


class CompileError(CelError):
    """The expression cannot be read, or names what does not exist."""

    def __init__(self, problem: str, *, source: str, position: int) -> None:
        before = source[:position]
        line = before.count("\n") + 1
        column = position - (before.rfind("\n") + 1)
        snippet = source.split("\n")[line - 1]
        self.headline = f"ERROR: <input>:{line}:{column + 1}: {problem}"
        super().__init__(f"{self.headline}\n | {snippet}\n | {'.' * column}^")


class BudgetExceeded(CelError):
    """The expression took more steps than it may."""

    def __init__(self) -> None:
        super().__init__("CEL evaluation budget exceeded")


class Uint(int):
    """An unsigned number, which does not mix with signed ones."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, since 1970 in UTC."""

    nanos: int


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that may be missing."""

    value: Any = None
    is_present: bool = False


NONE = Optional()


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value of one of Kubernetes' libraries: a quantity, a URL, an address, a network or a version."""

    type: str
    value: Any


_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (list, "list"),
    (Mapping, "map"),
    (Duration, "google.protobuf.Duration"),
    (Timestamp, "google.protobuf.Timestamp"),
    (Optional, "optional_type"),
    (Type, "type"),
    (type(None), "null_type"),
)

TYPES = {name: Type(name) for _, name in _NAMES}
"""The types an expression can name."""


def type_name(value: object) -> str:
    """Return what CEL calls the type of a value."""
    if isinstance(value, Opaque):
        return value.type
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return type(value).__name__


def equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value, everything else only with its own type."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return len(left) == len(right) and all(key in right and equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def no_overload(name: str) -> CelError:
    """Return the error of a function or operator that does not know its arguments."""
    return CelError(f"no such overload: {name}" if name else "no such overload")
