"""Decide which index serves a search, and name the expressions that none serves.

Pure: a table of what `migrations` creates. The planner of PostgreSQL decides by itself; this decides how a list is
read, and what a client is told when its search takes too long.
"""

from enum import IntEnum, unique

from maestropy.store.search.columns import Column
from maestropy.store.search.rewrite import LABELS_PATH, NAME_PATH, PAYLOAD
from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Between,
    Comparator,
    Compare,
    Contains,
    ContainsAny,
    IsNull,
    JsonText,
    Like,
    Math,
    Not,
    OneOf,
    Operand,
    Predicate,
)

_EQUAL = frozenset({"id", "name", "source", "consumer_name", "deleted_at", "created_at"})
_PREFIX = frozenset({"name", "source", "consumer_name"})
_RANGE = frozenset({"id", "created_at", "deleted_at"})
_ORDERED = frozenset({"id", "name", "source", "consumer_name", "created_at", "deleted_at"})
_MAX_EXPRESSION = 80

REMEDY = (
    "use fields that have an index: id, name, source, consumer_name (=, in; like 'x%' but for id), created_at, "
    "payload->'metadata'->>'name' (=, in, like 'x%'), payload->'metadata'->'labels' (@>, or ->>'key' with = or in); "
    "with `and`, one of them is enough"
)


@unique
class Reach(IntEnum):
    """How much of the table PostgreSQL reads for a search."""

    SCAN = 0
    """Any number of rows: no index serves the search."""
    RANGE = 1
    """A part of an index in its order, possibly all of it."""
    MATCHES = 2
    """Only rows that match one of its terms."""


def reach(predicate: Predicate) -> Reach:
    """Return how much of `resources` must be read for a search."""
    match predicate:
        case AllOf(terms):
            return max((reach(term) for term in terms), default=Reach.SCAN)
        case AnyOf(terms):
            return min((reach(term) for term in terms), default=Reach.SCAN)
        case Not():
            return Reach.SCAN
        case _:
            return _reach_of_term(predicate)


def unserved(predicate: Predicate) -> tuple[str, ...]:
    """Return the expressions for which PostgreSQL reads every row, as a client would recognise them."""
    if reach(predicate) is not Reach.SCAN:
        return ()
    match predicate:
        case AllOf(terms) | AnyOf(terms):
            return tuple(dict.fromkeys(text for term in terms for text in unserved(term)))
        case Not(term):
            return (f"not {described(term)}",)
        case _:
            return (described(predicate),)


def is_ordered_by_index(predicate: Predicate | None) -> bool:
    """Return whether an index has exactly the matching rows in the order of their creation."""
    match predicate:
        case None:
            return True
        case Compare(operand=Column(name="source" | "consumer_name"), comparator=Comparator.EQUAL):
            return True
        case _:
            return False


def slow_order(field: str) -> str:
    """Return an expression for `orderBy` if no index has the order of its first field, else an empty text."""
    return "" if field in _ORDERED else f"orderBy {field}"


def described(node: Predicate) -> str:
    """Return a term without its values."""
    match node:
        case Not(term):
            return f"not {described(term)}"
        case AllOf(terms) | AnyOf(terms):
            return f"({(' and ' if isinstance(node, AllOf) else ' or ').join(map(described, terms))})"
        case Contains(column=column, keys=keys) | ContainsAny(column=column, keys=keys):
            text = f"{column.name}{''.join(f'->{key!r}' for key in keys)} @>"
        case _:
            text = f"{_operand(node.operand)} {_operator(node)}"
    return text if len(text) <= _MAX_EXPRESSION else f"{text[:_MAX_EXPRESSION]}…"


def _reach_of_term(node: Compare | Like | IsNull | Between | OneOf | Contains | ContainsAny) -> Reach:
    match node:
        case Compare(operand=operand, comparator=Comparator.EQUAL) | OneOf(operand=operand, negated=False):
            return Reach.MATCHES if _is_indexed(operand, _EQUAL) else Reach.SCAN
        case Compare(operand=Column() as column, comparator=comparator) if comparator is not Comparator.DIFFERENT:
            return Reach.RANGE if column.name in _RANGE else Reach.SCAN
        case Between(operand=Column() as column, negated=False):
            return Reach.RANGE if column.name in _RANGE else Reach.SCAN
        case IsNull(operand=Column(name="deleted_at"), negated=True):
            return Reach.MATCHES
        case Like(operand=operand, pattern=pattern, any_case=False) if pattern[:1] not in ("", "%", "_", "\\"):
            return Reach.MATCHES if _is_indexed(operand, _PREFIX) else Reach.SCAN
        case Contains() | ContainsAny():
            is_empty = isinstance(node, Contains) and node.json.strip() in ("{}", "[]")
            is_labels = node.column.sql == PAYLOAD and node.keys == LABELS_PATH
            return Reach.MATCHES if is_labels and not is_empty else Reach.SCAN
        case _:
            return Reach.SCAN


def _is_indexed(operand: Operand, columns: frozenset[str]) -> bool:
    match operand:
        case Column():
            return operand.name in columns
        case JsonText():
            return operand.column.sql == PAYLOAD and operand.keys == NAME_PATH
        case _:
            return False


def _operand(operand: Operand) -> str:
    match operand:
        case Column():
            return operand.name
        case JsonText():
            *path, last = operand.keys
            return f"{operand.column.name}{''.join(f'->{key!r}' for key in path)}->>{last!r}"
        case Math():
            return f"{_operand(operand.left)} {operand.operator.value} {_operand(operand.right)}"
        case _:
            return str(operand)


def _operator(node: Compare | Like | IsNull | Between | OneOf) -> str:
    match node:
        case Compare():
            return node.comparator.value
        case Like():
            return "ilike" if node.any_case else f"like {node.pattern!r}"
        case IsNull():
            return "is not null" if node.negated else "is null"
        case Between():
            return "not between" if node.negated else "between"
        case OneOf():
            return "not in" if node.negated else "in"
