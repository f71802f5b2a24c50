"""Evaluate jq path expressions to the paths of an object.

The supported subset: members (`.a.b`, `.["a b"]`, `."a"`), items (`.[0]`, `.[]`), recursion (`..`), `?`, pipes, commas,
parentheses, and `select` with `==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not`, `has`, `startswith`, `endswith`,
`contains`, `test`, `length` and `type`. Anything else is rejected by name. Evaluation is bounded and does not change
the object.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.agent.expressions import regex
from maestropy.agent.expressions.budget import Budget, search_steps, spend_value
from maestropy.agent.expressions.cel.values import equal

MAX_NESTING = 30
MAX_LENGTH = 4096
MAX_CHAIN = 50
_PARSE_STEPS = 2
_NODE_STEPS = 2

Path = tuple[str | int, ...]
Selected = tuple[Path | None, Any]
"""A path and its value; no path for a computed value."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<field>\.[A-Za-z_][A-Za-z_0-9]*)
    |(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>\.\.|==|!=|<=|>=|[.\[\]()|,?<>-]))""",
    re.VERBOSE,
)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KINDS = {"null": 0, "boolean": 1, "number": 3, "string": 4, "array": 5, "object": 6}
_WITH_ARGUMENT = ("select", "has", "startswith", "endswith", "contains", "test")
_WITHOUT_ARGUMENT = ("not", "length", "type", "recurse")


class JqSyntaxError(Exception):
    """The expression cannot be parsed, or uses an unsupported feature."""


class JqError(Exception):
    """The evaluation fails on this object."""


@dataclass(frozen=True, slots=True)
class JqNode:
    """One operation and its operands."""

    kind: str
    value: Any = None
    inner: "tuple[JqNode, ...]" = ()


_CURRENT = JqNode("current")


def parse(expression: str) -> JqNode:
    """Parse an expression."""
    if len(expression) > MAX_LENGTH:
        raise JqSyntaxError(f"expression has more than {MAX_LENGTH} characters")
    reader = _JqParser(expression)
    node = reader.pipe()
    reader.expect_end()
    return node


def paths(expression: str, root: object, *, budget: Budget) -> list[Path]:
    """Return the paths that an expression selects; a result without a path is an error, as in jq's `del`."""
    with budget.expression() as own_budget:
        own_budget.spend(len(expression) * _PARSE_STEPS)
        return _paths(parse(expression), root, budget=own_budget)


def _paths(node: JqNode, root: object, *, budget: Budget) -> list[Path]:
    try:
        selected = [path for path, _ in _JqEvaluation(budget).run(node, ((), root))]
    except RecursionError as error:
        raise JqError("expression or object is nested too deep") from error
    resolved = [path for path in selected if path is not None]
    if len(resolved) < len(selected):
        raise JqError("Invalid path expression")
    return resolved


class _JqParser:
    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text)]
        self._position = 0
        self._nesting = 0

    def pipe(self) -> JqNode:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise JqSyntaxError(f"expression is nested more than {MAX_NESTING} deep")
        node = self._chain("pipe", "|", lambda: self._chain("comma", ",", self._or))
        self._nesting -= 1
        return node

    def expect_end(self) -> None:
        if self._position < len(self._tokens):
            raise JqSyntaxError(f"unexpected token {self._tokens[self._position][1]!r}")

    def _or(self) -> JqNode:
        return self._chain("or", "or", lambda: self._chain("and", "and", self._comparison))

    def _chain(self, kind: str, sign: str, read: Callable[[], JqNode]) -> JqNode:
        parts = [read()]
        while self._take(sign):
            parts.append(read())
        return parts[0] if len(parts) == 1 else JqNode(kind, inner=tuple(parts))

    def _comparison(self) -> JqNode:
        left = self._postfix()
        for sign in ("==", "!=", *_ORDER):
            if self._take(sign):
                return JqNode("compare", sign, (left, self._postfix()))
        return left

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position] if self._position < len(self._tokens) else ("end", "")

    def _take(self, text: str) -> bool:
        is_there = self._peek()[1] == text and self._peek()[0] != "text"
        self._position += is_there
        return is_there

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise JqSyntaxError(f"unexpected token {self._peek()[1]!r}, expected {text!r}")

    def _postfix(self) -> JqNode:
        parts = [self._primary()]
        while True:
            kind, text = self._peek()
            if len(parts) > MAX_CHAIN:
                raise JqSyntaxError(f"more than {MAX_CHAIN} steps in a row")
            if kind == "field":
                self._position += 1
                parts.append(JqNode("field", text[1:]))
            elif self._take("?"):
                parts = [JqNode("try", inner=tuple(parts))]
            elif self._take("["):
                parts.append(self._brackets())
            elif self._take("."):
                parts.append(self._after_dot())
            else:
                return parts[0] if len(parts) == 1 else JqNode("pipe", inner=tuple(parts))

    def _primary(self) -> JqNode:
        kind, text = self._peek()
        self._position += 1
        match kind:
            case "field":
                return JqNode("field", text[1:])
            case "text":
                return JqNode("literal", _text(text))
            case "number":
                return JqNode("literal", float(text) if "." in text else int(text))
            case "name":
                return self._named(text)
        match text:
            case "..":
                return JqNode("recurse")
            case ".":
                return self._after_dot(is_start=True)
            case "(":
                node = self.pipe()
                self._expect(")")
                return node
            case "-":
                negated = self._primary()
                if negated.kind == "literal" and isinstance(negated.value, int | float):
                    return JqNode("literal", -negated.value)
        raise JqSyntaxError(f"unexpected token {text!r}" if text else "unexpected EOF")

    def _after_dot(self, *, is_start: bool = False) -> JqNode:
        kind, text = self._peek()
        if kind == "text":
            self._position += 1
            return JqNode("field", _text(text))
        if self._take("["):
            return self._brackets()
        if is_start:
            return _CURRENT
        raise JqSyntaxError(f"unexpected token {text!r}" if text else "unexpected EOF")

    def _brackets(self) -> JqNode:
        if self._take("]"):
            return JqNode("each")
        index = self.pipe()
        self._expect("]")
        if index.kind != "literal" or not isinstance(index.value, str | int):
            raise JqSyntaxError("only a string or a whole number can stand in brackets")
        return JqNode("field", index.value)

    def _named(self, name: str) -> JqNode:
        if name in ("true", "false", "null"):
            return JqNode("literal", {"true": True, "false": False, "null": None}[name])
        if name in _WITHOUT_ARGUMENT:
            return JqNode(name)
        if name not in _WITH_ARGUMENT:
            raise JqSyntaxError(f"function not defined: {name}")
        self._expect("(")
        argument = self.pipe()
        self._expect(")")
        return JqNode(name, inner=(argument,))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        matched = _TOKEN.match(text, position)
        if matched is None or matched.lastgroup is None:
            raise JqSyntaxError(f"unexpected token {text[position:].strip()[:16]!r}")
        yield matched.lastgroup, matched.group(matched.lastgroup)
        position = matched.end()


def _text(token: str) -> str:
    try:
        return str(msgspec.json.decode(token.encode()))
    except msgspec.DecodeError as error:
        raise JqSyntaxError(f"invalid string {token[:32]}") from error


class _JqEvaluation:
    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spend = budget.spend

    def run(self, node: JqNode, at: Selected) -> Iterator[Selected]:
        self._spend(_NODE_STEPS)
        match node.kind:
            case "current":
                yield at
            case "literal":
                yield None, node.value
            case "field":
                yield self._member(at, node.value)
            case "each":
                yield from self._each(at)
            case "recurse":
                yield from self._recurse(at)
            case "pipe" | "comma" | "try" | "select":
                yield from self._combine(node, at)
            case _:
                yield from ((None, value) for value in self._compute(node, at))

    def _combine(self, node: JqNode, at: Selected) -> Iterator[Selected]:
        match node.kind:
            case "pipe":
                yield from self._pipe(node.inner, at)
            case "comma":
                for inner in node.inner:
                    yield from self.run(inner, at)
            case "select":
                yield from (at for _, value in self.run(node.inner[0], at) if _is_true(value))
            case _:
                # Results before the error count.
                try:
                    yield from self._pipe(node.inner, at)
                except JqError:
                    return

    def _pipe(self, nodes: tuple[JqNode, ...], at: Selected) -> Iterator[Selected]:
        first, *rest = nodes
        for selected in self.run(first, at):
            if rest:
                yield from self._pipe(tuple(rest), selected)
            else:
                yield selected

    def _member(self, at: Selected, key: str | int) -> Selected:
        path, value = at
        self._spend(_path_steps(path))
        current = None if path is None else (*path, key)
        if value is None:
            return current, None
        if isinstance(value, Mapping) and isinstance(key, str):
            return current, value.get(key)
        if isinstance(value, list) and isinstance(key, int):
            index = key + len(value) if key < 0 else key
            return (None if path is None else (*path, index)), value[index] if 0 <= index < len(value) else None
        expected = "object" if isinstance(key, str) else "array"
        raise JqError(f"expected an {expected} but got: {_kind(value)}")

    def _each(self, at: Selected) -> list[Selected]:
        path, value = at
        if isinstance(value, Mapping | list):
            self._spend(len(value) * (1 + _path_steps(path)))
        if isinstance(value, Mapping):
            return [(None if path is None else (*path, name), item) for name, item in value.items()]
        if isinstance(value, list):
            return [(None if path is None else (*path, index), item) for index, item in enumerate(value)]
        raise JqError(f"cannot iterate over: {_kind(value)}")

    def _recurse(self, at: Selected) -> Iterator[Selected]:
        pending = [at]
        while pending:
            self._spend(1)
            current = pending.pop()
            yield current
            if isinstance(current[1], Mapping | list):
                pending.extend(reversed(self._each(current)))

    def _compute(self, node: JqNode, at: Selected) -> Iterator[Any]:
        value = at[1]
        match node.kind:
            case "not":
                yield not _is_true(value)
            case "length":
                yield len(value) if isinstance(value, str | list | Mapping) else 0
            case "type":
                yield _kind(value)
            case "or" | "and":
                is_or = node.kind == "or"
                truths = (any(_is_true(value) for _, value in self.run(inner, at)) for inner in node.inner)
                yield any(truths) if is_or else all(truths)
            case "compare":
                left, right = node.inner
                for _, second in self.run(right, at):
                    for _, first in self.run(left, at):
                        yield self._compare(node.value, first, second)
            case _:
                for _, argument in self.run(node.inner[0], at):
                    yield self._text_test(node.kind, value, argument)

    def _text_test(self, name: str, value: Any, argument: Any) -> bool:
        if name == "has" and isinstance(value, Mapping):
            return argument in value
        if not isinstance(value, str) or not isinstance(argument, str):
            raise JqError(f"{name} cannot be applied to: {_kind(value)}")
        self._spend(search_steps(value, argument))
        match name:
            case "startswith":
                return value.startswith(argument)
            case "endswith":
                return value.endswith(argument)
            case "contains":
                return argument in value
            case "test":
                try:
                    return regex.search(argument, value, budget=self._budget) is not None
                except (regex.RegexError, UnicodeError) as error:
                    raise JqError(str(error)) from error
            case _:
                raise JqError(f"{name} cannot be applied to: {_kind(value)}")

    def _compare(self, sign: str, left: Any, right: Any) -> bool:
        if sign in ("==", "!="):
            return equal(left, right, budget=self._budget) is (sign == "==")
        kinds = (_kind(left), _kind(right))
        if kinds[0] != kinds[1]:
            # jq orders values of different types by their types.
            return _ORDER[sign](_KINDS[kinds[0]], _KINDS[kinds[1]])
        if kinds[0] in ("object", "null"):
            return sign in ("<=", ">=") and equal(left, right, budget=self._budget)
        spend_value(left, self._budget)
        spend_value(right, self._budget)
        try:
            return _ORDER[sign](left, right)
        except TypeError as error:
            raise JqError(f"cannot compare: {kinds[0]}") from error


def _path_steps(path: Path | None) -> int:
    return len(path or ()) // 16


def _is_true(value: object) -> bool:
    return value is not None and value is not False


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
