"""Compile and evaluate CEL expressions, charging every step.

Errors are exceptions. `&&`, `||`, `all` and `exists` ignore an error if another operand decides the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from maestropy.agent.expressions.budget import Budget, text_steps
from maestropy.agent.expressions.cel import costs, library, syntax
from maestropy.agent.expressions.cel.tokens import MAX_LENGTH, tokenize
from maestropy.agent.expressions.cel.values import (
    NONE,
    TYPES,
    CelError,
    CelOptional,
    CompileError,
    type_name,
)

Scope = Mapping[str, Any]

_STEPS_PER_TOKEN = 5
_STEPS_PER_ITEM = 3
_SHORT = 256
"""Characters of an expression that is cached among many others; a long one takes a thousand times its memory."""


def evaluate(
    expression: str, variables: Scope, *, budget: Budget, functions: Mapping[str, library.MeteredFunction] | None = None
) -> Any:
    """Compile and evaluate an expression within its own limit; compiling is charged whether it is cached or not.

    `functions` are all that it may call; CEL's own without it.
    """
    with budget.expression() as own_budget:
        callable_functions = functions or library.FUNCTIONS
        added = frozenset(callable_functions.keys() - library.FUNCTIONS.keys()) if functions else frozenset()
        compilation = _compilation(expression, frozenset(variables), added)
        own_budget.spend(compilation.steps)
        return compilation.program.evaluate(variables, budget=own_budget, functions=callable_functions)


class CelProgram:
    """A compiled expression."""

    def __init__(self, tree: syntax.Node) -> None:
        self._tree = tree

    def evaluate(
        self, variables: Scope, *, budget: Budget, functions: Mapping[str, library.MeteredFunction] = library.FUNCTIONS
    ) -> Any:
        """Return the value, and charge the steps to the budget."""
        try:
            return _CelRun(budget, functions).evaluate(self._tree, {**TYPES, **variables})
        except RecursionError as error:
            raise CelError("value is nested too deep") from error


def compiled(expression: str, *, variables: frozenset[str]) -> CelProgram:
    """Compile an expression that may use these variables."""
    return _compilation(expression, variables, frozenset()).program


@dataclass(frozen=True, slots=True)
class _Compilation:
    """A program or an error, so that both are cached."""

    outcome: CelProgram | CompileError
    steps: int

    @property
    def program(self) -> CelProgram:
        if isinstance(self.outcome, CompileError):
            raise self.outcome.with_traceback(None)
        return self.outcome


def _compilation(expression: str, variables: frozenset[str], added: frozenset[str]) -> _Compilation:
    return (_compile_short if len(expression) <= _SHORT else _compile_long)(expression, variables, added)


def _compile(expression: str, variables: frozenset[str], added: frozenset[str]) -> _Compilation:
    """Compile; `added` are the names of functions beyond CEL's own."""
    try:
        tokens = tokenize(expression)
        functions = library.FUNCTIONS.keys() | added
        tree = syntax.parse(expression, tokens, variables=[*variables, *TYPES], functions=functions)
    except CompileError as error:
        return _Compilation(error, min(len(expression), MAX_LENGTH))
    except RecursionError:
        too_deep = CompileError("expression is nested too deep", source=expression, position=0)
        return _Compilation(too_deep, len(expression))
    return _Compilation(CelProgram(tree), _STEPS_PER_TOKEN * len(tokens))


_compile_short = lru_cache(maxsize=1024)(_compile)
_compile_long = lru_cache(maxsize=16)(_compile)


class _CelRun:
    def __init__(self, budget: Budget, functions: Mapping[str, library.MeteredFunction]) -> None:
        self._budget = budget
        self._functions = functions
        self._spend = budget.spend
        self._evaluators: dict[type, Callable[[Any, Scope], Any]] = {
            syntax.Constant: lambda node, _: node.value,
            syntax.Name: lambda node, scope: scope[node.name],
            syntax.Select: self._select,
            syntax.Index: self._index,
            syntax.FunctionCall: self._call,
            syntax.Logical: self._logic,
            syntax.Conditional: self._choice,
            syntax.ListLiteral: self._items,
            syntax.MapLiteral: self._members,
            syntax.Macro: self._macro,
        }

    def evaluate(self, node: syntax.Node, scope: Scope) -> Any:
        self._spend(1)
        return self._evaluators[type(node)](node, scope)

    def _select(self, node: syntax.Select, scope: Scope) -> Any:
        operand = self.evaluate(node.operand, scope)
        is_optional = node.is_optional or isinstance(operand, CelOptional)
        if isinstance(operand, CelOptional):
            operand = operand.value if operand.is_present else {}
        if isinstance(operand, list) and not is_optional:
            raise CelError("unsupported index type 'string' in list")
        if not isinstance(operand, Mapping):
            # A value without members does not have this one; clusters write null where a map is expected.
            operand = {}
        if node.is_test:
            return node.field in operand
        if is_optional:
            return CelOptional(operand[node.field], is_present=True) if node.field in operand else NONE
        if node.field not in operand:
            raise CelError(f"no such key: {node.field}")
        return operand[node.field]

    def _index(self, node: syntax.Index, scope: Scope) -> Any:
        operand = self.evaluate(node.operand, scope)
        index = self.evaluate(node.index, scope)
        if isinstance(index, str):
            self._spend(text_steps(len(index)))
        if not node.is_optional and not isinstance(operand, CelOptional):
            return library.item(operand, index)
        if isinstance(operand, CelOptional):
            if not operand.is_present:
                return NONE
            operand = operand.value
        try:
            return CelOptional(library.item(operand, index), is_present=True)
        except library.NoSuchItem:
            return NONE

    def _call(self, node: syntax.FunctionCall, scope: Scope) -> Any:
        arguments = [self.evaluate(argument, scope) for argument in node.arguments]
        costs.charge(node.name, arguments, budget=self._budget)
        return self._functions[node.name](node.name, arguments, self._budget)

    def _logic(self, node: syntax.Logical, scope: Scope) -> bool:
        problem: CelError | None = None
        for operand in node.operands:
            try:
                value = self.evaluate(operand, scope)
                if not isinstance(value, bool):
                    raise CelError("no such overload")  # noqa: TRY301  # it has to be weighed like any other error
            except CelError as error:
                problem = problem or error
                continue
            if value is node.is_or:
                return value
        if problem is not None:
            raise problem
        return not node.is_or

    def _choice(self, node: syntax.Conditional, scope: Scope) -> Any:
        condition = self.evaluate(node.condition, scope)
        if not isinstance(condition, bool):
            raise CelError("no such overload")
        return self.evaluate(node.first if condition else node.second, scope)

    def _items(self, node: syntax.ListLiteral, scope: Scope) -> list[Any]:
        items: list[Any] = []
        for entry, is_optional in node.entries:
            value = self.evaluate(entry, scope)
            items += _present(value) if is_optional else [value]
        return items

    def _members(self, node: syntax.MapLiteral, scope: Scope) -> dict[Any, Any]:
        members: dict[Any, Any] = {}
        for key_node, value_node, is_optional in node.entries:
            key = self.evaluate(key_node, scope)
            value = self.evaluate(value_node, scope)
            if not isinstance(key, str | int):
                raise CelError(f"unsupported key type: {type_name(key)}")
            if isinstance(key, str):
                self._spend(text_steps(len(key)))
            for member in _present(value) if is_optional else [value]:
                members[key] = member
        return members

    def _macro(self, node: syntax.Macro, scope: Scope) -> Any:
        source = self.evaluate(node.source, scope)
        if node.kind in ("optMap", "optFlatMap"):
            return self._opt_map(node, source, scope)
        if not isinstance(source, list | Mapping):
            raise CelError("no such overload")
        scopes = self._scopes(node.variable, source, scope)
        match node.kind:
            case "all" | "exists":
                return self._quantify(node, scopes)
            case "exists_one" | "existsOne":
                return sum(self._holds(node.bodies[0], inner) for inner in scopes) == 1
            case "filter":
                return [inner[node.variable] for inner in scopes if self._holds(node.bodies[0], inner)]
            case "sortBy":
                items = list(source)
                keys = [self.evaluate(node.bodies[0], inner) for inner in scopes]
                return self._functions[node.kind](node.kind, [items, keys], self._budget)
            case _:
                *guard, body = node.bodies
                return [self.evaluate(body, inner) for inner in scopes if not guard or self._holds(guard[0], inner)]

    def _scopes(self, variable: str, items: Iterable[Any], scope: Scope) -> Iterator[Scope]:
        """Yield a scope for each item."""
        steps = _STEPS_PER_ITEM + len(scope) // 16
        for item in items:
            self._spend(steps)
            yield {**scope, variable: item}

    def _quantify(self, node: syntax.Macro, scopes: Iterator[Scope]) -> bool:
        is_exists = node.kind == "exists"
        problem: CelError | None = None
        for inner in scopes:
            try:
                if self._holds(node.bodies[0], inner) is is_exists:
                    return is_exists
            except CelError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return not is_exists

    def _holds(self, body: syntax.Node, scope: Scope) -> bool:
        value = self.evaluate(body, scope)
        if not isinstance(value, bool):
            raise CelError("no such overload")
        return value

    def _opt_map(self, node: syntax.Macro, source: object, scope: Scope) -> CelOptional:
        if not isinstance(source, CelOptional):
            raise CelError("no such overload")
        if not source.is_present:
            return NONE
        value = self.evaluate(node.bodies[0], {**scope, node.variable: source.value})
        if node.kind == "optMap":
            return CelOptional(value, is_present=True)
        if not isinstance(value, CelOptional):
            raise CelError("no such overload")
        return value


def _present(value: object) -> list[Any]:
    if not isinstance(value, CelOptional):
        raise CelError(f"cannot initialize optional entry from non-optional value {type_name(value)}")
    return [value.value] if value.is_present else []
