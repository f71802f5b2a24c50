"""Which values of an object does a JSONPath select?

The dialect is client-go's, as `pathsyntax` describes it, with `AllowMissingKeys`: what is not there selects nothing and
is no error. Members are visited in the order of their names, where Go leaves the order to chance and values flap.
Evaluation ends after a bounded number of steps whatever path and object are. Nothing here changes the object.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maestropy.agent.decide import gotext, pathsyntax
from maestropy.agent.decide.pathsyntax import JsonPathError as JsonPathError

MAX_STEPS = 200_000
"""Values looked at in one evaluation. The largest object a cluster accepts (1.5 MiB) has fewer."""
MAX_DEPTH = 200
"""Levels of an object that `..` descends."""

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find(template: pathsyntax.Template, root: object) -> list[list[Any]]:
    """Return what each action of the template selects from `root`."""
    return _Evaluation().run(template, root)


class _Evaluation:
    def __init__(self) -> None:
        self._steps_left = MAX_STEPS

    def run(self, template: pathsyntax.Template, root: object) -> list[list[Any]]:
        results, position = self._block(template, root, start=0, in_range=False)
        assert position == len(template)
        return results

    def _block(
        self, template: pathsyntax.Template, root: object, *, start: int, in_range: bool
    ) -> tuple[list[list[Any]], int]:
        """Evaluate actions up to the `end` of this range, or to the end; say where it stopped."""
        results: list[list[Any]] = []
        position = start
        while position < len(template):
            action = template[position]
            position += 1
            words = [step.name for step in action if isinstance(step, pathsyntax.Word)]
            if "range" in words:
                items = self._select([root], action)
                after = position
                # A range over nothing still has to be walked once, to find its end.
                for item in items or [None]:
                    inner, after = self._block(template, item, start=position, in_range=True)
                    if items:
                        results.extend(inner)
                position = after
            elif "end" in words and in_range:
                return results, position
            else:
                results.append(self._select([root], action))
        return results, position

    def _select(self, values: list[Any], action: pathsyntax.Action) -> list[Any]:
        for step in action:
            values = self._step(values, step)
        return values

    def _step(self, values: list[Any], step: pathsyntax.Step) -> list[Any]:
        self._spend(len(values) + 1)
        match step:
            case pathsyntax.Field(name):
                return [value[name] for value in values if isinstance(value, Mapping) and name in value]
            case pathsyntax.Literal(literal):
                # Text replaces what was selected so far; a number or truth value stands once for each of it.
                return [literal] if isinstance(literal, str) else [literal for _ in values]
            case pathsyntax.Wildcard():
                return self._spent([child for value in values for child in _children(value)])
            case pathsyntax.Recursive():
                return [found for value in values for found in self._descend(value, depth=0)]
            case pathsyntax.Slice():
                return self._slice(values, step)
            case pathsyntax.Union(choices):
                return self._spent([found for choice in choices for found in self._select(values, choice)])
            case pathsyntax.Filter():
                return [item for value in values for item in self._filter(value, step)]
            case pathsyntax.Word(name):
                return _word(name, values)

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise JsonPathError(f"path visits more than {MAX_STEPS} values: name fewer of them")

    def _spent(self, values: list[Any]) -> list[Any]:
        self._spend(len(values))
        return values

    def _descend(self, value: object, *, depth: int) -> Iterator[Any]:
        if depth > MAX_DEPTH:
            raise JsonPathError(f"object is nested more than {MAX_DEPTH} deep")
        self._spend(1)
        if isinstance(value, str):
            if value:
                yield value
            return
        children = _children(value)
        if children:
            yield value
        for child in children:
            yield from self._descend(child, depth=depth + 1)

    def _slice(self, values: list[Any], step: pathsyntax.Slice) -> list[Any]:
        selected: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JsonPathError(f"{gotext.type_name(value)} is not array or slice")
            bounds = _bounds(step, len(value))
            if bounds is None:
                # Asking for zero items ends the whole selection in client-go, whatever follows.
                return selected
            selected.extend(value[bounds])
        return self._spent(selected)

    def _filter(self, value: object, step: pathsyntax.Filter) -> Iterator[Any]:
        if not isinstance(value, list):
            raise JsonPathError(f"{gotext.shown(value)} is not array or slice and cannot be filtered")
        for item in value:
            if self._passes(item, step):
                yield item

    def _passes(self, item: object, step: pathsyntax.Filter) -> bool:
        if not step.operator:
            try:
                return bool(self._select([item], step.left))
            except JsonPathError:
                self._spend(0)  # what failed because the steps ran out must go on failing
                return False
        lefts = self._select([item], step.left)
        if not lefts:
            return False
        rights = self._select([item], step.right) if len(lefts) == 1 else []
        if len(lefts) > 1 or len(rights) > 1:
            raise JsonPathError("can only compare one element at a time")
        return bool(rights) and _compare(lefts[0], step.operator, rights[0])


def _children(value: object) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[name] for name in sorted(value)]
    if isinstance(value, list):
        return value
    return list(value.encode()) if isinstance(value, str) else []


def _word(name: str, values: list[Any]) -> list[Any]:
    if name == "range":
        return values
    if name == "end":
        raise JsonPathError("not in range, nothing to end")
    raise JsonPathError(f"unrecognized identifier {name}")


def _bounds(step: pathsyntax.Slice, length: int) -> slice | None:
    """Return the slice of a list of this length, or None if it asks for nothing."""
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
    """Return the type that decides what compares with what: a whole number is no fraction, a truth value no number."""
    if type(value) in (bool, int, float, str):
        return type(value)
    raise JsonPathError("invalid type for comparison")
