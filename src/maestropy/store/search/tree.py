"""The syntax tree of a search, common to both dialects.

Both parsers build these values and `emit` writes their SQL. Columns are resolved; literals are still unconverted,
because their type depends on the column they are compared with.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, unique

from maestropy.store.search.columns import Column

Literal = str | Decimal
"""A quoted or bare word, or a number of the tree dialect."""


@unique
class Comparator(Enum):
    """Ordering and equality; the value is the SQL operator."""

    EQUAL = "="
    DIFFERENT = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@unique
class Arithmetic(Enum):
    """The five operations on numeric fields."""

    TIMES = "*"
    DIVIDE = "/"
    MODULO = "%"
    PLUS = "+"
    MINUS = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonText:
    """`column->'a'->>'b'`: the value at a path, as text."""

    column: Column
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Math:
    """An operation on a numeric field."""

    operator: Arithmetic
    left: "Operand"
    right: "Operand"


Operand = Column | JsonText | Math | Decimal
"""The left side of a comparison; a bare number occurs only inside arithmetic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """`operand <comparator> literal`."""

    operand: Operand
    comparator: Comparator
    literal: Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """`operand LIKE pattern`."""

    operand: Operand
    pattern: str
    any_case: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """`operand IS NULL`; `negated` asks for the opposite, which unlike NOT is never unknown."""

    operand: Operand
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """`operand BETWEEN low AND high`, ends included."""

    operand: Operand
    low: Literal
    high: Literal
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """`operand IN (literals)`; the list may be empty."""

    operand: Operand
    literals: tuple[Literal, ...]
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contains:
    """`column->'a'->'b' @> json`."""

    column: Column
    keys: tuple[str, ...]
    json: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsAny:
    """`column->'a'->'b' @> ANY (documents)`; only `rewrite` makes it."""

    column: Column
    keys: tuple[str, ...]
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; unknown stays unknown."""

    term: "Predicate"


@dataclass(frozen=True, slots=True)
class AllOf:
    """Terms joined by AND, kept flat so that a long search is not a deep one."""

    terms: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Terms joined by OR, kept flat."""

    terms: "tuple[Predicate, ...]"


Predicate = Compare | Like | IsNull | Between | OneOf | Contains | ContainsAny | Not | AllOf | AnyOf
