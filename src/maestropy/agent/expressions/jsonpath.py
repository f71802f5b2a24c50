"""Evaluate JSONPath templates of the Kubernetes dialect.

The dialect is client-go's, as `jsonpath_syntax` describes it, with `AllowMissingKeys`: a missing key selects nothing
and is no error. Members are visited in the order of their names; Go visits them in random order, so values flap there.
Evaluation is charged to a budget and does not change the object.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maestropy.agent.expressions import go_values, jsonpath_syntax
from maestropy.agent.expressions.budget import Budget, text_steps
from maestropy.agent.expressions.jsonpath_syntax import JsonPathError as JsonPathError

MAX_DEPTH = 200
"""Levels of an object that `..` descends."""

_STEP_STEPS = 2
_ACTION_STEPS = 2

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find(template: jsonpath_syntax.Template, root: object, *, budget: Budget) -> list[list[Any]]:
    """Return what each action of the template selects from `root`."""
    return _JsonPathEvaluation(budget).run(template, root)


class _JsonPathEvaluation:
    def __init__(self, budget: Budget) -> None:
        self._spend = budget.spend

    def run(self, template: jsonpath_syntax.Template, root: object) -> list[list[Any]]:
        results, position = self._block(template, root, start=0, in_range=False)
        assert position == len(template)
        return results

    def _block(
        self, template: jsonpath_syntax.Template, root: object, *, start: int, in_range: bool
    ) -> tuple[list[list[Any]], int]:
        """Evaluate actions up to the `end` of this range, or to the end; return the position behind it."""
        results: list[list[Any]] = []
        position = start
        while position < len(template):
            action = template[position]
            position += 1
            self._spend(_ACTION_STEPS + len(action))
            keywords = [step.name for step in action if isinstance(step, jsonpath_syntax.Identifier)]
            if "range" in keywords:
                items = self._select([root], action)
                after = position
                # A range over an empty list is evaluated once, to find its end.
                for item in items or [None]:
                    inner, after = self._block(template, item, start=position, in_range=True)
                    if items:
                        results.extend(inner)
                position = after
            elif "end" in keywords and in_range:
                return results, position
            else:
                results.append(self._select([root], action))
        return results, position

    def _select(self, values: list[Any], action: jsonpath_syntax.Action) -> list[Any]:
        for step in action:
            values = self._step(values, step)
        return values

    def _step(self, values: list[Any], step: jsonpath_syntax.Step) -> list[Any]:
        self._spend(len(values) + _STEP_STEPS)
        match step:
            case jsonpath_syntax.Field(name):
                return [value[name] for value in values if isinstance(value, Mapping) and name in value]
            case jsonpath_syntax.Literal(literal):
                # Text replaces the selection; a number or boolean is repeated for each selected value.
                return [literal] if isinstance(literal, str) else [literal for _ in values]
            case jsonpath_syntax.Wildcard():
                return [child for value in values for child in self._children(value)]
            case jsonpath_syntax.Recursive():
                return [descendant for value in values for descendant in self._descend(value, depth=0)]
            case jsonpath_syntax.Slice():
                return self._slice(values, step)
            case jsonpath_syntax.Union(choices):
                return [selected for choice in choices for selected in self._choice(values, choice)]
            case jsonpath_syntax.Filter():
                return [item for value in values for item in self._filter(value, step)]
            case jsonpath_syntax.Identifier(name):
                return _identifier(name, values)

    def _choice(self, values: list[Any], choice: jsonpath_syntax.Action) -> list[Any]:
        selected = self._select(values, choice)
        self._spend(1 + len(selected))
        return selected

    def _children(self, value: object) -> list[Any]:
        if isinstance(value, Mapping | list | str):
            self._spend(len(value))
        return _children(value)

    def _descend(self, value: object, *, depth: int) -> Iterator[Any]:
        if depth > MAX_DEPTH:
            raise JsonPathError(f"object is nested more than {MAX_DEPTH} deep")
        # A value passes through the generators of all levels above it.
        self._spend(1 + depth // 8)
        if isinstance(value, str):
            if value:
                yield value
            return
        children = self._children(value)
        if children:
            yield value
        for child in children:
            yield from self._descend(child, depth=depth + 1)

    def _slice(self, values: list[Any], step: jsonpath_syntax.Slice) -> list[Any]:
        selected: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JsonPathError(f"{go_values.type_name(value)} is not array or slice")
            bounds = _bounds(step, len(value))
            if bounds is None:
                # A slice of zero items ends the whole selection in client-go, whatever follows.
                return selected
            self._spend(len(range(*bounds.indices(len(value)))))
            selected.extend(value[bounds])
        return selected

    def _filter(self, value: object, step: jsonpath_syntax.Filter) -> Iterator[Any]:
        if not isinstance(value, list):
            self._spend(len(value) if isinstance(value, Mapping) else 1)
            raise JsonPathError(f"{go_values.shown(value)} is not array or slice and cannot be filtered")
        for item in value:
            self._spend(_STEP_STEPS)
            if self._passes(item, step):
                yield item

    def _passes(self, item: object, step: jsonpath_syntax.Filter) -> bool:
        if not step.operator:
            try:
                return bool(self._select([item], step.left))
            except JsonPathError:
                return False
        lefts = self._select([item], step.left)
        if not lefts:
            return False
        rights = self._select([item], step.right) if len(lefts) == 1 else []
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        if not rights:
            return False
        if isinstance(lefts[0], str):
            self._spend(text_steps(len(lefts[0])))
        return _compare(lefts[0], step.operator, rights[0])


def _children(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[name] for name in sorted(value)]
    if isinstance(value, list):
        return value
    return list(value.encode()) if isinstance(value, str) else []


def _identifier(name: str, values: list[Any]) -> list[Any]:
    if name == "range":
        return values
    if name == "end":
        raise JsonPathError("not in range, nothing to end")
    raise JsonPathError(f"unrecognized identifier {name}")


def _bounds(step: jsonpath_syntax.Slice, length: int) -> slice | None:
    """Return the slice of a list of this length, or None for an empty one."""
    start = step.start or 0
    stop = start + 1 if step.is_index else length if step.stop is None else step.stop
    start += length if start < 0 else 0
    if stop < 0 or (stop == 0 and step.is_index):
        stop += length
    if start == stop:
        return None
    if not 0 <= start < length:
        raise JsonPathError(f"array index out of bounds: index {start}, length {length}")
    if not 0 <= stop <= length:
        raise JsonPathError(f"array index out of bounds: index {stop - 1}, length {length}")
    if start > stop:
        raise JsonPathError(f"starting index {start} is greater than ending index {stop}")
    if step.step is not None and step.step <= 0:
        raise JsonPathError("step must be > 0")
    return slice(start, stop, step.step)


def _compare(left: object, symbol: str, right: object) -> bool:
    if symbol not in ("==", "!=") and symbol not in _ORDER:
        raise JsonPathError(f"unrecognized filter operator {symbol}")
    kinds = (_kind(left), _kind(right))
    if kinds[0] != kinds[1]:
        raise JsonPathError("incompatible types for comparison")
    if symbol in ("==", "!="):
        return (left == right) is (symbol == "==")
    if bool in kinds:
        raise JsonPathError("invalid type for comparison")
    return _ORDER[symbol](left, right)


def _kind(value: object) -> type:
    """Return the comparable type: integers, floats, booleans and strings compare only with their own type."""
    if type(value) in (bool, int, float, str):
        return type(value)
    raise JsonPathError("invalid type for comparison")
