"""Which places of an object does a jq path expression name?

jq is a language; this is the part of it that names places: members (`.a.b`, `.["a b"]`, `."a"`), items (`.[0]`, `.[]`),
everything (`..`), `?`, pipes, commas, parentheses, and `select` with `==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`,
`not`, `has`, `startswith`, `endswith`, `contains`, `test`, `length` and `type`. Anything else is refused by name.
Evaluation is bounded; nothing here changes the object.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from maestropy.agent.decide.cel import regex
from maestropy.agent.decide.cel.values import CelError

MAX_STEPS = 100_000
MAX_NESTING = 30
MAX_LENGTH = 4096
MAX_CHAIN = 50

Path = tuple[str | int, ...]
Found = tuple[Path | None, Any]
"""A place and what is there; no place for a value that was computed."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<field>\.[A-Za-z_][A-Za-z_0-9]*)
    |(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<sign>\.\.|==|!=|<=|>=|[.\[\]()|,?<>-]))""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KINDS = {"null": 0, "boolean": 1, "number": 3, "string": 4, "array": 5, "object": 6}
_WITH_ARGUMENT = ("select", "has", "startswith", "endswith", "contains", "test")
_WITHOUT_ARGUMENT = ("not", "length", "type", "recurse")


class JqSyntaxError(Exception):
    """The expression cannot be read, or uses what is not known here."""


class JqError(Exception):
    """The expression fails on this object."""


@dataclass(frozen=True, slots=True)
class Node:
    """One operation and what it works on."""

    kind: str
    value: Any = None
    inner: "tuple[Node, ...]" = ()


_HERE = Node("here")


def parse(expression: str) -> Node:
    """Read an expression."""
    if len(expression) > MAX_LENGTH:
        raise JqSyntaxError(f"expression has more than {MAX_LENGTH} characters")
    reader = _Reader(expression)
    node = reader.pipe()
    reader.expect_end()
    return node


def paths(node: Node, root: object) -> list[Path]:
    """Return the places an expression names; what names no place is an error, as in jq's `del`."""
    try:
        places = [path for path, _ in _Evaluation().run(node, ((), root))]
    except RecursionError as error:
        raise JqError("expression or object is nested too deep") from error
    found = [path for path in places if path is not None]
    if len(found) < len(places):
        raise JqError("Invalid path expression")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [*_cut(text)]
        self._position = 0
        self._nesting = 0

    def pipe(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise JqSyntaxError(f"expression is nested more than {MAX_NESTING} deep")
        node = self._chain("pipe", "|", lambda: self._chain("comma", ",", self._or))
        self._nesting -= 1
        return node

    def expect_end(self) -> None:
        if self._position < len(self._tokens):
            raise JqSyntaxError(f"unexpected token {self._tokens[self._position][1]!r}")

    def _or(self) -> Node:
        return self._chain("or", "or", lambda: self._chain("and", "and", self._comparison))

    def _chain(self, kind: str, sign: str, read: Callable[[], Node]) -> Node:
        parts = [read()]
        while self._take(sign):
            parts.append(read())
        return parts[0] if len(parts) == 1 else Node(kind, inner=tuple(parts))

    def _comparison(self) -> Node:
        left = self._postfix()
        for sign in _COMPARISONS:
            if self._take(sign):
                return Node("compare", sign, (left, self._postfix()))
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

    def _postfix(self) -> Node:
        parts = [self._primary()]
        while True:
            kind, text = self._peek()
            if len(parts) > MAX_CHAIN:
                raise JqSyntaxError(f"more than {MAX_CHAIN} steps in a row")
            if kind == "field":
                self._position += 1
                parts.append(Node("field", text[1:]))
            elif self._take("?"):
                parts = [Node("try", inner=tuple(parts))]
            elif self._take("["):
                parts.append(self._brackets())
            elif self._take("."):
                parts.append(self._after_dot())
            else:
                return parts[0] if len(parts) == 1 else Node("pipe", inner=tuple(parts))

    def _primary(self) -> Node:
        kind, text = self._peek()
        self._position += 1
        match kind:
            case "field":
                return Node("field", text[1:])
            case "text":
                return Node("literal", _text(text))
            case "number":
                return Node("literal", float(text) if "." in text else int(text))
            case "name":
                return self._named(text)
        match text:
            case "..":
                return Node("recurse")
            case ".":
                return self._after_dot(is_start=True)
            case "(":
                node = self.pipe()
                self._expect(")")
                return node
            case "-":
                negated = self._primary()
                if negated.kind == "literal" and isinstance(negated.value, int | float):
                    return Node("literal", -negated.value)
        raise JqSyntaxError(f"unexpected token {text!r}" if text else "unexpected EOF")

    def _after_dot(self, *, is_start: bool = False) -> Node:
        kind, text = self._peek()
        if kind == "text":
            self._position += 1
            return Node("field", _text(text))
        if self._take("["):
            return self._brackets()
        if is_start:
            return _HERE
        raise JqSyntaxError(f"unexpected token {text!r}" if text else "unexpected EOF")

    def _brackets(self) -> Node:
        if self._take("]"):
            return Node("each")
        index = self.pipe()
        self._expect("]")
        if index.kind != "literal" or not isinstance(index.value, str | int):
            raise JqSyntaxError("only a string or a whole number can stand in brackets")
        return Node("field", index.value)

    def _named(self, name: str) -> Node:
        if name in ("true", "false", "null"):
            return Node("literal", {"true": True, "false": False, "null": None}[name])
        if name in _WITHOUT_ARGUMENT:
            return Node(name)
        if name not in _WITH_ARGUMENT:
            raise JqSyntaxError(f"function not defined: {name}")
        self._expect("(")
        argument = self.pipe()
        self._expect(")")
        return Node(name, inner=(argument,))


def _cut(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    text = text.rstrip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise JqSyntaxError(f"unexpected token {text[position:].strip()[:16]!r}")
        yield found.lastgroup, found.group(found.lastgroup)
        position = found.end()


def _text(token: str) -> str:
    try:
        return str(msgspec.json.decode(token.encode()))
    except msgspec.DecodeError as error:
        raise JqSyntaxError(f"invalid string {token[:32]}") from error


class _Evaluation:
    def __init__(self) -> None:
        self._left = MAX_STEPS

    def run(self, node: Node, at: Found) -> Iterator[Found]:
        self._spend(1)
        match node.kind:
            case "here":
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
                yield from ((None, found) for found in self._compute(node, at))

    def _combine(self, node: Node, at: Found) -> Iterator[Found]:
        match node.kind:
            case "pipe":
                yield from self._pipe(node.inner, at)
            case "comma":
                for inner in node.inner:
                    yield from self.run(inner, at)
            case "select":
                yield from (at for _, found in self.run(node.inner[0], at) if _is_true(found))
            case _:
                # What came before the error counts.
                try:
                    yield from self._pipe(node.inner, at)
                except JqError:
                    self._spend(0)  # what failed because the steps ran out must go on failing

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise JqError(f"expression takes more than {MAX_STEPS} steps")

    def _pipe(self, nodes: tuple[Node, ...], at: Found) -> Iterator[Found]:
        first, *rest = nodes
        for found in self.run(first, at):
            if rest:
                yield from self._pipe(tuple(rest), found)
            else:
                yield found

    def _member(self, at: Found, key: str | int) -> Found:
        path, value = at
        here = None if path is None else (*path, key)
        if value is None:
            return here, None
        if isinstance(value, Mapping) and isinstance(key, str):
            return here, value.get(key)
        if isinstance(value, list) and isinstance(key, int):
            index = key + len(value) if key < 0 else key
            return (None if path is None else (*path, index)), value[index] if 0 <= index < len(value) else None
        wanted = "object" if isinstance(key, str) else "array"
        raise JqError(f"expected an {wanted} but got: {_kind(value)}")

    def _each(self, at: Found) -> list[Found]:
        path, value = at
        if isinstance(value, Mapping):
            return [(None if path is None else (*path, name), item) for name, item in value.items()]
        if isinstance(value, list):
            return [(None if path is None else (*path, index), item) for index, item in enumerate(value)]
        raise JqError(f"cannot iterate over: {_kind(value)}")

    def _recurse(self, at: Found) -> Iterator[Found]:
        pending = [at]
        while pending:
            self._spend(1)
            found = pending.pop()
            yield found
            if isinstance(found[1], Mapping | list):
                pending.extend(reversed(self._each(found)))

    def _compute(self, node: Node, at: Found) -> Iterator[Any]:
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
                truths = (any(_is_true(found) for _, found in self.run(inner, at)) for inner in node.inner)
                yield any(truths) if is_or else all(truths)
            case "compare":
                left, right = node.inner
                for _, second in self.run(right, at):
                    for _, first in self.run(left, at):
                        yield _compare(node.value, first, second)
            case _:
                for _, argument in self.run(node.inner[0], at):
                    yield self._text_test(node.kind, value, argument)

    def _text_test(self, name: str, value: Any, argument: Any) -> bool:
        if name == "has" and isinstance(value, Mapping):
            return argument in value
        if not isinstance(value, str) or not isinstance(argument, str):
            raise JqError(f"{name} cannot be applied to: {_kind(value)}")
        match name:
            case "startswith":
                return value.startswith(argument)
            case "endswith":
                return value.endswith(argument)
            case "contains":
                return argument in value
            case "test":
                try:
                    return regex.search(argument, value, spend=self._spend) is not None
                except CelError as error:
                    raise JqError(str(error)) from error
            case _:
                raise JqError(f"{name} cannot be applied to: {_kind(value)}")


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


def _compare(sign: str, left: Any, right: Any) -> bool:
    kinds = (_kind(left), _kind(right))
    if kinds[0] != kinds[1]:
        # jq orders values of different types by their types.
        return _COMPARISONS[sign](_KINDS[kinds[0]], _KINDS[kinds[1]])
    if kinds[0] in ("object", "null") and sign not in ("==", "!="):
        return sign in ("<=", ">=") and left == right
    try:
        return _COMPARISONS[sign](left, right)
    except TypeError as error:
        raise JqError(f"cannot compare: {kinds[0]}") from error
