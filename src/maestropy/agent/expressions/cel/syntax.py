"""Parse a CEL expression into a tree.

Macros (`has`, `all`, `exists`, `map`, …) are recognised here, because their arguments are not evaluated like those of
functions. A name that is neither a variable nor a function is rejected here, before anything is evaluated.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from maestropy.agent.expressions.cel import tokens
from maestropy.agent.expressions.cel.values import INT_MAX, CelUint, CompileError

MAX_NESTING = 40
"""Nesting depth of an expression."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A member; `is_optional` for `a.?b`, `is_test` for `has(a.b)`."""

    operand: "Node"
    field: str
    is_optional: bool = False
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """An item, or the member with a computed key."""

    operand: "Node"
    index: "Node"
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function or operator."""

    name: str
    arguments: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Logical:
    """`&&` and `||`: an operand that decides the result wins over an error of another."""

    is_or: bool
    operands: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? first : second`."""

    condition: "Node"
    first: "Node"
    second: "Node"


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list; an entry marked optional is left out if it is missing."""

    entries: "tuple[tuple[Node, bool], ...]"


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """A map."""

    entries: "tuple[tuple[Node, Node, bool], ...]"


@dataclass(frozen=True, slots=True)
class Macro:
    """A comprehension over `source`, or `optMap` or `optFlatMap`, with a variable that the bodies see."""

    kind: str
    source: "Node"
    variable: str
    bodies: "tuple[Node, ...]"


Node = Constant | Name | Select | Index | FunctionCall | Logical | Conditional | ListLiteral | MapLiteral | Macro

_MACROS = {
    "all": (2,),
    "exists": (2,),
    "exists_one": (2,),
    "existsOne": (2,),
    "filter": (2,),
    "map": (2, 3),
    "optMap": (2,),
    "optFlatMap": (2,),
    "sortBy": (2,),
}
_EXTENSION_MACROS = frozenset({"sortBy"})
"""Macros of extensions: expressions have them only if a function of the same name is given, which gets the results."""
_RELATIONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_LEVELS = (_RELATIONS, ("+", "-"), ("*", "/", "%"))
_STARTS = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_NAMESPACES = ("optional", "strings", "ip", "cidr", "semver")


def parse(
    source: str, expression: Sequence[tokens.CelToken], *, variables: Collection[str], functions: Collection[str]
) -> Node:
    """Return the tree of an expression, tokenized from `source`, that may use these variables and functions."""
    return _CelParser(source, expression, variables=variables, functions=functions).parse()


class _CelParser:
    def __init__(
        self,
        source: str,
        expression: Sequence[tokens.CelToken],
        *,
        variables: Collection[str],
        functions: Collection[str],
    ) -> None:
        self._source = source
        self._tokens = expression
        self._position = 0
        self._nesting = 0
        self._scope = list(variables)
        self._functions = functions

    def parse(self) -> Node:
        node = self._expression()
        self._expect("end")
        return node

    @property
    def _next(self) -> tokens.CelToken:
        return self._tokens[self._position]

    def _take(self, *kinds: str) -> tokens.CelToken | None:
        token = self._next
        is_word = token.kind == "name" and token.value == "in" and "in" in kinds
        if token.kind in kinds or is_word:
            self._position += 1
            return token
        return None

    def _expect(self, kind: str) -> tokens.CelToken:
        token = self._take(kind)
        if token is None:
            actual = self._next
            if kind == "end":
                raise self._error(f"Syntax error: extraneous input '{actual.value}' expecting <EOF>", at=actual)
            raise self._error(f"Syntax error: mismatched input '{actual.value}' expecting '{kind}'", at=actual)
        return token

    def _error(self, problem: str, *, at: tokens.CelToken) -> CompileError:
        return CompileError(problem, source=self._source, position=at.position)

    def _nested(self, read: Callable[[], Node]) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._error(f"expression is nested more than {MAX_NESTING} deep", at=self._next)
        node = read()
        self._nesting -= 1
        return node

    def _expression(self) -> Node:
        return self._nested(self._choice)

    def _choice(self) -> Node:
        condition = self._logic(is_or=True)
        if not self._take("?"):
            return condition
        first = self._logic(is_or=True)
        self._expect(":")
        return Conditional(condition, first, self._expression())

    def _logic(self, *, is_or: bool) -> Node:
        def operand() -> Node:
            return self._logic(is_or=False) if is_or else self._binary(0)

        operands = [operand()]
        while self._take("||" if is_or else "&&"):
            operands.append(operand())
        return operands[0] if len(operands) == 1 else Logical(is_or, tuple(operands))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        chained = 0
        while operator := self._take(*_LEVELS[level]):
            chained += 1
            # A chain of operators is a left-leaning tree: as deep as it is long.
            if chained > MAX_NESTING:
                raise self._error(f"more than {MAX_NESTING} operators in a row: use parentheses", at=operator)
            left = FunctionCall(f"_{operator.value}_", (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Node:
        if self._take("!"):
            return FunctionCall("!_", (self._nested(self._unary),))
        if self._take("-"):
            return self._negative()
        return self._member()

    def _negative(self) -> Node:
        number = self._next
        if (
            number.kind == "value"
            and isinstance(number.value, int | float)
            and not isinstance(number.value, bool | CelUint)
        ):
            self._position += 1
            return self._postfix(Constant(-number.value))
        return FunctionCall("-_", (self._nested(self._unary),))

    def _member(self) -> Node:
        return self._postfix(self._primary())

    def _primary(self) -> Node:
        token = self._next
        self._position += 1
        match token.kind:
            case "value":
                return self._constant(token)
            case "(":
                node = self._expression()
                self._expect(")")
                return node
            case "[" | "[?":
                return self._items(is_first_optional=token.kind == "[?")
            case "{" | "{?":
                return self._members(is_first_optional=token.kind == "{?")
            case "name":
                return self._named(token)
            case ".":
                return self._named(self._expect("name"))
            case _:
                raise self._error(f"Syntax error: mismatched input '{token.value}' expecting {_STARTS}", at=token)

    def _constant(self, token: tokens.CelToken) -> Node:
        if type(token.value) is int and token.value > INT_MAX:
            raise self._error("invalid int literal", at=token)
        return Constant(token.value)

    def _named(self, token: tokens.CelToken) -> Node:
        name = token.value
        if name in tokens.RESERVED:
            raise self._error(f"reserved identifier: {name}", at=token)
        if self._next.kind == "(":
            if name == "has":
                return self._has()
            return self._call(name, receiver=None)
        if name not in self._scope and self._next.kind == "." and self._is_namespace(name):
            self._position += 1
            member = self._expect("name")
            return self._call(f"{name}.{member.value}", receiver=None, at=member)
        if name not in self._scope:
            raise self._undeclared(name, at=token)
        return Name(name)

    def _is_namespace(self, name: str) -> bool:
        member = self._tokens[self._position + 1]
        return name in _NAMESPACES or (member.kind == "name" and f"{name}.{member.value}" in self._functions)

    def _undeclared(self, name: str, *, at: tokens.CelToken) -> CompileError:
        return self._error(f"undeclared reference to '{name}' (in container '')", at=at)

    def _has(self) -> Node:
        opening = self._expect("(")
        argument = self._expression()
        self._expect(")")
        if not isinstance(argument, Select) or argument.is_test:
            raise self._error("invalid argument to has() macro", at=opening)
        return Select(argument.operand, argument.field, is_optional=argument.is_optional, is_test=True)

    def _call(self, name: str, *, receiver: Node | None, at: tokens.CelToken | None = None) -> Node:
        opening = self._expect("(")
        if name not in self._functions:
            raise self._undeclared(name, at=at or opening)
        arguments = self._list(")", self._expression)
        return FunctionCall(name, (receiver, *arguments) if receiver is not None else tuple(arguments))

    def _list(self, closing: str, read: Callable[[], Node]) -> list[Node]:
        nodes: list[Node] = []
        while not self._take(closing):
            if nodes:
                self._expect(",")
                if self._take(closing):
                    break
            nodes.append(read())
        return nodes

    def _postfix(self, node: Node) -> Node:
        chained = 0
        while sign := self._take(".", ".?", "[", "[?"):
            chained += 1
            if chained > MAX_NESTING:
                raise self._error(f"more than {MAX_NESTING} selections in a row", at=sign)
            if sign.kind in ("[", "[?"):
                index = self._expression()
                self._expect("]")
                node = Index(node, index, is_optional=sign.kind == "[?")
                continue
            member = self._expect("name")
            is_call = sign.kind == "." and self._next.kind == "("
            node = self._method(node, member) if is_call else Select(node, member.value, is_optional=sign.kind == ".?")
        return node

    def _method(self, receiver: Node, member: tokens.CelToken) -> Node:
        is_extension = member.value in _EXTENSION_MACROS
        if member.value in _MACROS and (not is_extension or member.value in self._functions):
            return self._macro(receiver, member)
        return self._call(member.value, receiver=receiver)

    def _macro(self, source: Node, member: tokens.CelToken) -> Node:
        opening = self._expect("(")
        variable = self._expect("name")
        self._expect(",")
        self._scope.append(variable.value)
        bodies = self._list(")", self._expression)
        self._scope.pop()
        if 1 + len(bodies) not in _MACROS[member.value]:
            raise self._undeclared(member.value, at=opening)
        return Macro(member.value, source, variable.value, tuple(bodies))

    def _items(self, *, is_first_optional: bool) -> Node:
        entries: list[tuple[Node, bool]] = []
        is_optional = is_first_optional
        while is_optional or not self._take("]"):
            if entries and not is_first_optional:
                self._expect(",")
                if self._take("]"):
                    break
            is_optional = is_first_optional or self._take("?") is not None
            entries.append((self._expression(), is_optional))
            is_first_optional = is_optional = False
        return ListLiteral(tuple(entries))

    def _members(self, *, is_first_optional: bool) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        is_pending = is_first_optional
        while is_pending or not self._take("}"):
            if entries:
                self._expect(",")
                if self._take("}"):
                    break
            is_optional = is_pending or self._take("?") is not None
            is_pending = False
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression(), is_optional))
        return MapLiteral(tuple(entries))
