"""Parse and evaluate the CEL expressions of HyperFleet tasks, with the functions HyperFleet adds to CEL. Pure.

| function | value |
|---|---|
| `now()` | the time of the pass, as RFC 3339 |
| `toJson(x)` | JSON text |
| `dig(x, "a.b")` | the member at a path, or null |
| `conditionStatus(conditions, "T")` | the status of a condition, `Unknown` without it |
| `conditionAge(conditions, "T")` | seconds since its last transition, -1 without it |
| `stableFor(conditions, "T", 300)` | whether it has been True for that long |
| `triState(isTrue, isFalse)` | `True`, `False` or `Unknown` |

and those of CEL's list extension (`list_functions`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any

import orjson

from maestropy.adapter.tasks.language import list_functions
from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.agent.expressions.cel import interpreter, library, syntax, tokens
from maestropy.agent.expressions.cel.values import CelError, CelOptional, CelUint, CompileError, no_overload

Expression = str | Callable[[Mapping[str, Any]], Any]
"""CEL, or a Python function of the variables, in a converted adapter."""


class ExpressionError(Exception):
    """An expression cannot be evaluated."""


class MissingData(ExpressionError):
    """An expression is right, and the data it reads is not there, or is of another type."""


class _AnyName(Collection[str]):
    """Contains every name: HyperFleet's loader only parses, and finds unknown names when the expression runs."""

    def __contains__(self, _: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def parse_problem(expression: str) -> str:
    """Return why an expression cannot be parsed; empty if it can."""
    return _parse_problem(expression, _AnyName())


def _parse_problem(expression: str, functions: Collection[str]) -> str:
    """Return why an expression cannot be parsed, whatever variables it names; empty if it can."""
    text = expression.strip()
    try:
        words = tokens.tokenize(text)
        # `lists` of `lists.range(3)` names no variable, and must not become one.
        spaces = {name.partition(".")[0] for name in functions if "." in name}
        names = [str(word.value) for word in words if word.kind == "name" and word.value not in spaces]
        syntax.parse(text, words, variables=names, functions=functions)
    except CompileError as error:
        return error.headline.removeprefix("ERROR: ")
    except RecursionError:
        return "the expression is nested too deep"
    return ""


def evaluate(expression: Expression, variables: Mapping[str, Any], *, now: str) -> Any:
    """Return the value of an expression; raises ExpressionError. `now` is the time as RFC 3339."""
    if not isinstance(expression, str):
        try:
            return expression(variables)
        except Exception as error:  # a function of the adapter's author may raise anything
            raise ExpressionError(f"{type(error).__name__}: {error}") from error
    functions = {**library.FUNCTIONS, **list_functions.FUNCTIONS, **_functions(now)}
    try:
        value = interpreter.evaluate(expression.strip(), variables, budget=Budget(), functions=functions)
    except CompileError as error:
        # HyperFleet does not check names: a variable without a value is found missing when the expression runs.
        problem = MissingData if not _parse_problem(expression, functions) else ExpressionError
        raise problem(error.headline) from error
    except BudgetExceeded as error:
        raise ExpressionError(str(error)) from error
    except CelError as error:
        raise MissingData(str(error)) from error
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, CelOptional):
        return _plain(value.value) if value.is_present else None
    if isinstance(value, CelUint):
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _condition(conditions: Any, kind: Any) -> Mapping[str, Any] | None:
    if not isinstance(conditions, list) or not isinstance(kind, str):
        raise no_overload("")
    matches = (entry for entry in conditions if isinstance(entry, Mapping) and entry.get("type") == kind)
    return next(matches, None)


def _status(conditions: Any, kind: Any) -> str:
    condition = _condition(conditions, kind)
    return str(condition.get("status") or "Unknown") if condition else "Unknown"


def _age(conditions: Any, kind: Any, *, now: str) -> int:
    condition = _condition(conditions, kind)
    moment = str((condition or {}).get("last_transition_time") or (condition or {}).get("lastTransitionTime") or "")
    try:
        return int((datetime.fromisoformat(now) - datetime.fromisoformat(moment)).total_seconds())
    except (ValueError, TypeError):
        return -1


def _dig(value: Any, path: Any) -> Any:
    if not isinstance(path, str):
        raise no_overload("dig")
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _tri_state(is_true: Any, is_false: Any) -> str:
    if not isinstance(is_true, bool) or not isinstance(is_false, bool):
        raise no_overload("triState")
    return "True" if is_true else "False" if is_false else "Unknown"


def _stable(conditions: Any, kind: Any, seconds: Any, *, now: str) -> bool:
    age = _age(conditions, kind, now=now)
    return _status(conditions, kind) == "True" and age >= 0 and age >= seconds


def _functions(now: str) -> dict[str, library.MeteredFunction]:
    plain: dict[str, tuple[int, Callable[..., Any]]] = {
        "now": (0, lambda: now),
        "toJson": (1, lambda value: orjson.dumps(_plain(value), option=orjson.OPT_SORT_KEYS).decode()),
        "dig": (2, _dig),
        "conditionStatus": (2, _status),
        "conditionAge": (2, lambda conditions, kind: _age(conditions, kind, now=now)),
        "stableFor": (3, lambda conditions, kind, seconds: _stable(conditions, kind, seconds, now=now)),
        "triState": (2, _tri_state),
    }
    return {name: _counted(count, function) for name, (count, function) in plain.items()}


def _counted(count: int, function: Callable[..., Any]) -> library.MeteredFunction:
    def call(name: str, arguments: list[Any], _: Budget) -> Any:
        if len(arguments) != count:
            raise no_overload(name)
        return function(*arguments)

    return call
