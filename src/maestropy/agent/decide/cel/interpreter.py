"""Evaluate CEL trees, step by counted step.

Errors are exceptions. `&&`, `||`, `all` and `exists` may swallow one: if another operand decides, it decides.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from maestropy.agent.decide.cel import library, syntax
from maestropy.agent.decide.cel.values import NONE, TYPES, BudgetExceeded, CelError, CompileError, Optional, type_name

STEPS_PER_EXPRESSION = 200_000
"""Steps one expression may take: a fraction of a second. Rules that people write take hundreds."""

Scope = Mapping[str, Any]


class Budget:
    """Steps that several expressions share; each has a limit of its own besides."""

    def __init__(self, steps: int) -> None:
        self.left = steps


class Program:
    """A compiled expression."""

    def __init__(self, tree: syntax.Node) -> None:
        self._tree = tree

    def evaluate(self, variables: Scope, *, budget: Budget) -> Any:
        """Return the value, and take the steps from the budget."""
        run = _Run(min(budget.left, STEPS_PER_EXPRESSION))
        try:
            return run.evaluate(self._tree, {**TYPES, **variables})
        except RecursionError as error:
            raise CelError("value is nested too deep") from error
        finally:
            budget.left -= run.steps_taken


@lru_cache(maxsize=1024)
def compiled(expression: str, *, variables: frozenset[str]) -> Program:
    """Read an expression that may use these variables."""
    functions = library.FUNCTIONS.keys()
    try:
        return Program(syntax.parse(expression, variables=[*variables, *TYPES], functions=functions))
    except RecursionError as error:
        raise CompileError("expression is nested too deep", source=expression, position=0) from error


class _Run:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._left = steps
        self._evaluators: dict[type, Callable[[Any, Scope], Any]] = {
            syntax.Constant: lambda node, _: node.value,
            syntax.Name: lambda node, scope: scope[node.name],
            syntax.Select: self._select,
            syntax.Index: self._index,
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Choice: self._choice,
            syntax.Items: self._items,
            syntax.Members: self._members,
            syntax.Macro: self._macro,
        }

    @property
    def steps_taken(self) -> int:
        return self._steps - max(self._left, 0)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise BudgetExceeded

    def evaluate(self, node: syntax.Node, scope: Scope) -> Any:
        self.spend(1)
        return self._evaluators[type(node)](node, scope)

    def _select(self, node: syntax.Select, scope: Scope) -> Any:
        operand = self.evaluate(node.operand, scope)
        is_optional = node.is_optional or isinstance(operand, Optional)
        if isinstance(operand, Optional):
            operand = operand.value if operand.is_present else {}
        if isinstance(operand, list) and not is_optional:
            raise CelError("unsupported index type 'string' in list")
        if not isinstance(operand, Mapping):
            # What has no members has not this one; a cluster writes null where a map is expected.
            operand = {}
        if node.is_test:
            return node.field in operand
        if is_optional:
            return Optional(operand[node.field], is_present=True) if node.field in operand else NONE
        if node.field not in operand:
            raise CelError(f"no such key: {node.field}")
        return operand[node.field]

    def _index(self, node: syntax.Index, scope: Scope) -> Any:
        operand = self.evaluate(node.operand, scope)
        index = self.evaluate(node.index, scope)
        if not node.is_optional and not isinstance(operand, Optional):
            return library.item(operand, index)
        if isinstance(operand, Optional):
            if not operand.is_present:
                return NONE
            operand = operand.value
        try:
            return Optional(library.item(operand, index), is_present=True)
        except library.NoSuchItem:
            return NONE

    def _call(self, node: syntax.Call, scope: Scope) -> Any:
        arguments = [self.evaluate(argument, scope) for argument in node.arguments]
        for argument in arguments:
            if isinstance(argument, str | bytes | list):
                self.spend(len(argument) // 10)
        if node.name in library.REGULAR:
            return library.REGULAR[node.name](arguments, spend=self.spend)
        result = library.FUNCTIONS[node.name](node.name, arguments)
        if isinstance(result, str | bytes | list):
            self.spend(len(result) // 10)
        return result

    def _logic(self, node: syntax.Logic, scope: Scope) -> bool:
        problem: CelError | None = None
        for operand in node.operands:
            try:
                value = self.evaluate(operand, scope)
                if not isinstance(value, bool):
                    raise CelError("no such overload")  # noqa: TRY301  # it has to be weighed like any other error
            except BudgetExceeded:
                raise
            except CelError as error:
                problem = problem or error
                continue
            if value is node.is_or:
                return value
        if problem is not None:
            raise problem
        return not node.is_or

    def _choice(self, node: syntax.Choice, scope: Scope) -> Any:
        condition = self.evaluate(node.condition, scope)
        if not isinstance(condition, bool):
            raise CelError("no such overload")
        return self.evaluate(node.first if condition else node.second, scope)

    def _items(self, node: syntax.Items, scope: Scope) -> list[Any]:
        items: list[Any] = []
        for entry, is_optional in node.entries:
            value = self.evaluate(entry, scope)
            items += _present(value) if is_optional else [value]
        return items

    def _members(self, node: syntax.Members, scope: Scope) -> dict[Any, Any]:
        members: dict[Any, Any] = {}
        for key_node, value_node, is_optional in node.entries:
            key = self.evaluate(key_node, scope)
            value = self.evaluate(value_node, scope)
            if not isinstance(key, str | int):
                raise CelError(f"unsupported key type: {type_name(key)}")
            for found in _present(value) if is_optional else [value]:
                members[key] = found
        return members

    def _macro(self, node: syntax.Macro, scope: Scope) -> Any:
        source = self.evaluate(node.source, scope)
        if node.kind in ("optMap", "optFlatMap"):
            return self._opt_map(node, source, scope)
        if not isinstance(source, list | Mapping):
            raise CelError("no such overload")
        scopes = ({**scope, node.variable: item} for item in source)
        match node.kind:
            case "all" | "exists":
                return self._quantify(node, scopes)
            case "exists_one" | "existsOne":
                return sum(self._holds(node.bodies[0], inner) for inner in scopes) == 1
            case "filter":
                return [inner[node.variable] for inner in scopes if self._holds(node.bodies[0], inner)]
            case _:
                *guard, body = node.bodies
                return [self.evaluate(body, inner) for inner in scopes if not guard or self._holds(guard[0], inner)]

    def _quantify(self, node: syntax.Macro, scopes: Any) -> bool:
        is_exists = node.kind == "exists"
        problem: CelError | None = None
        for inner in scopes:
            try:
                if self._holds(node.bodies[0], inner) is is_exists:
                    return is_exists
            except BudgetExceeded:
                raise
            except CelError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        return not is_exists

    def _holds(self, body: syntax.Node, scope: Scope) -> bool:
        self.spend(2)
        value = self.evaluate(body, scope)
        if not isinstance(value, bool):
            raise CelError("no such overload")
        return value

    def _opt_map(self, node: syntax.Macro, source: object, scope: Scope) -> Optional:
        if not isinstance(source, Optional):
            raise CelError("no such overload")
        if not source.is_present:
            return NONE
        value = self.evaluate(node.bodies[0], {**scope, node.variable: source.value})
        if node.kind == "optMap":
            return Optional(value, is_present=True)
        if not isinstance(value, Optional):
            raise CelError("no such overload")
        return value


def _present(value: object) -> list[Any]:
    if not isinstance(value, Optional):
        raise CelError(f"cannot initialize optional entry from non-optional value {type_name(value)}")
    return [value.value] if value.is_present else []
