"""Write the SQL of a search from its syntax tree.

The SQL consists of constants of this package and of `$n`; user input is always a parameter. The result is in
parentheses, so that it can be joined to other conditions with AND.
"""

from dataclasses import dataclass, field
from typing import assert_never

from maestropy.store.search import serving, values
from maestropy.store.search.columns import Column, ColumnType
from maestropy.store.search.errors import SearchError
from maestropy.store.search.rewrite import LABELS_PATH, NAME_PATH, PAYLOAD
from maestropy.store.search.serving import Reach
from maestropy.store.search.tree import (
    AllOf,
    AnyOf,
    Arithmetic,
    Between,
    Comparator,
    Compare,
    Contains,
    ContainsAny,
    IsNull,
    JsonText,
    Like,
    Literal,
    Math,
    Not,
    OneOf,
    Operand,
    Predicate,
)

_DOCUMENTS = (PAYLOAD, "resources.status")
_LABELS_SQL = "(resources.payload->'metadata'->'labels')"
_NAME_SQL = "(resources.payload->'metadata'->>'name')"
"""The expressions of indexes; with keys as parameters the planner would not recognise them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlCondition:
    """SQL for a WHERE clause, and its parameters in order."""

    sql: str
    params: tuple[object, ...]
    reach: Reach = field(default=Reach.RANGE, compare=False)
    """How much of the table must be read."""
    is_ordered_by_index: bool = field(default=False, compare=False)
    """Whether an index has exactly these rows in the order of their creation."""
    reads_documents: bool = field(default=False, compare=False)
    """Whether the condition needs the JSON of each row."""
    unserved: tuple[str, ...] = field(default=(), compare=False)
    """The expressions that no index serves."""


EVERYTHING = SqlCondition(sql="TRUE", params=(), is_ordered_by_index=True)


def emit(predicate: Predicate) -> SqlCondition:
    """Return the condition that `predicate` states, or reject a literal that does not fit its column."""
    writer = _Writer()
    sql = writer.predicate(predicate)
    return SqlCondition(
        sql=sql,
        params=tuple(writer.params),
        reach=serving.reach(predicate),
        is_ordered_by_index=serving.is_ordered_by_index(predicate),
        reads_documents=any(column in sql for column in _DOCUMENTS),
        unserved=serving.unserved(predicate),
    )


@dataclass(slots=True)
class _Writer:
    params: list[object] = field(default_factory=list)

    def predicate(self, node: Predicate) -> str:
        match node:
            case Not(term):
                return f"(NOT {self.predicate(term)})"
            case AllOf(terms):
                return f"({' AND '.join([self.predicate(term) for term in terms])})"
            case AnyOf(terms):
                return f"({' OR '.join([self.predicate(term) for term in terms])})"
            case _:
                return self.comparison(node)

    def comparison(self, node: Compare | Like | IsNull | Between | OneOf | Contains | ContainsAny) -> str:
        match node:
            case Compare():
                return self.compare(node)
            case Like():
                _require(node.operand, {ColumnType.TEXT}, action="matched with LIKE")
                operator = "ILIKE" if node.any_case else "LIKE"
                left = self.operand(node.operand)
                return f"({left} {operator} {self.value(values.pattern(node.pattern, field=_name(node.operand)))})"
            case IsNull():
                return f"({self.operand(node.operand)} {'IS NOT NULL' if node.negated else 'IS NULL'})"
            case Between():
                _require(node.operand, _ORDERED, action="ordered")
                left = self.operand(node.operand)
                word = "NOT BETWEEN" if node.negated else "BETWEEN"
                low = self.literal(node.low, operand=node.operand)
                return f"({left} {word} {low} AND {self.literal(node.high, operand=node.operand)})"
            case OneOf():
                return self.one_of(node)
            case Contains():
                path = self.path(node.column, node.keys)
                value = values.Value(parameter=values.json_text(node.json, field=node.column.name), cast="text::jsonb")
                return f"({path} @> {self.value(value)})"
            case ContainsAny():
                path = self.path(node.column, node.keys)
                if len(node.documents) == 1:
                    return f"({path} @> {self.value(values.Value(parameter=node.documents[0], cast='text::jsonb'))})"
                documents = values.Value(parameter=list(node.documents), cast="text[]::jsonb[]")
                return f"({path} @> ANY ({self.value(documents)}))"
            case unreachable:
                assert_never(unreachable)

    def compare(self, node: Compare) -> str:
        if node.comparator not in (Comparator.EQUAL, Comparator.DIFFERENT):
            _require(node.operand, _ORDERED, action="ordered")
        left = self.operand(node.operand)
        return f"({left} {node.comparator.value} {self.literal(node.literal, operand=node.operand)})"

    def one_of(self, node: OneOf) -> str:
        # One array parameter: the SQL is the same for any number of values, so its plan is reused.
        left = self.operand(node.operand)
        value = values.array(node.literals, _type(node.operand), field=_name(node.operand))
        quantifier = "<> ALL" if node.negated else "= ANY"
        return f"({left} {quantifier} ({self.value(value)}))"

    def operand(self, node: Operand) -> str:
        match node:
            case Column():
                return node.sql
            case JsonText() if node.column.sql == PAYLOAD and node.keys == NAME_PATH:
                return _NAME_SQL
            case JsonText():
                *path, last = node.keys
                left = self.path(node.column, tuple(path))
                return f"({left}->>{self.value(values.Value(parameter=last, cast='text'))})"
            case Math():
                return self.math(node)
            case _:
                return self.value(values.Value(parameter=node, cast="numeric"))

    def math(self, node: Math) -> str:
        left, right = self.numeric(node.left), self.numeric(node.right)
        match node.operator:
            case Arithmetic.DIVIDE if _is_whole(node.left) and _is_whole(node.right):
                return f"div({left}, NULLIF({right}, 0))"
            case Arithmetic.DIVIDE | Arithmetic.MODULO:
                return f"({left} {node.operator.value} NULLIF({right}, 0))"
            case _:
                return f"({left} {node.operator.value} {right})"

    def numeric(self, node: Operand) -> str:
        _require(node, {ColumnType.BIGINT}, action="calculated with")
        # Columns too become numeric: bigint arithmetic overflows.
        return f"{node.sql}::numeric" if isinstance(node, Column) else self.operand(node)

    def path(self, column: Column, keys: tuple[str, ...]) -> str:
        base = column.sql
        if column.sql == PAYLOAD and keys[:2] == LABELS_PATH:
            base, keys = _LABELS_SQL, keys[2:]
        arrows = [f"->{self.value(values.Value(parameter=key, cast='text'))}" for key in keys]
        return f"({base}{''.join(arrows)})" if arrows else base

    def literal(self, literal: Literal, *, operand: Operand) -> str:
        return self.value(values.scalar(literal, _type(operand), field=_name(operand)))

    def value(self, value: values.Value) -> str:
        self.params.append(value.parameter)
        return f"${len(self.params)}::{value.cast}"


_ORDERED = {ColumnType.TEXT, ColumnType.BIGINT, ColumnType.TIMESTAMPTZ}


def _type(operand: Operand) -> ColumnType:
    match operand:
        case Column():
            return operand.type
        case JsonText():
            return ColumnType.TEXT
        case _:
            return ColumnType.BIGINT


def _name(operand: Operand) -> str:
    match operand:
        case Column():
            return operand.name
        case JsonText():
            return operand.column.name
        case Math():
            return _name(operand.left)
        case _:
            return str(operand)


def _is_whole(operand: Operand) -> bool:
    match operand:
        case Math():
            return _is_whole(operand.left) and _is_whole(operand.right)
        case Column() | JsonText():
            return True
        case _:
            return operand == operand.to_integral_value()


def _require(operand: Operand, kinds: set[ColumnType], *, action: str) -> None:
    kind = _type(operand)
    if kind not in kinds:
        raise SearchError(f"{_name(operand)} is of type {kind.value} and cannot be {action}")
