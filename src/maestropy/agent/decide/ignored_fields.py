"""Remove the `ignoreFields` of a server-side apply from a manifest.

They are named by JSONPath, JSON pointer or jq path and removed from a copy. `update_strategy` decides whether the copy
or the full manifest is applied.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from maestropy.agent.expressions import jq, jsonpath, jsonpath_syntax
from maestropy.agent.expressions.budget import Budget, BudgetExceeded
from maestropy.wire.json_types import Object
from maestropy.wire.works import options

_SHOWN = 256
"""Characters of an expression that a message shows."""


class IgnoreFieldsError(Exception):
    """An ignoreFields entry is invalid; the text goes into the condition."""


def without_fields(
    manifest: Object, ignored: Sequence[options.IgnoreFields], *, budget: Budget
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a copy without the ignored fields, and warnings for the log.

    Fields with `OnSpokeChange` stay: they are applied when the manifest itself changes.
    """
    body: dict[str, Any] = _copied(manifest)
    warnings: list[str] = []
    for entry in ignored:
        if entry.condition == options.ON_SPOKE_CHANGE:
            continue
        for path in entry.json_paths:
            warnings += _remove_by_json_path(body, path, budget=budget)
        for pointer in entry.json_pointers:
            _remove_by_pointer(body, pointer)
        for expression in entry.jq_path_expressions:
            _remove_by_jq(body, expression, budget=budget)
    return body, tuple(warnings)


def _copied(value: Any) -> Any:
    """Copy a JSON value; `copy.deepcopy` takes ten times as long."""
    if isinstance(value, Mapping):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _remove_by_json_path(body: dict[str, Any], path: str, *, budget: Budget) -> list[str]:
    """Remove a member from every map that the path before the last dot selects; list items stay."""
    key = path.rpartition(".")[2]
    parents = path.removesuffix(f".{key}")
    try:
        with budget.expression() as own_budget:
            own_budget.spend(len(path))
            results = jsonpath.find(jsonpath_syntax.parse_path(parents), body, budget=own_budget)
    except BudgetExceeded as error:
        # Applying the manifest all the same would overwrite the fields that the work wants to leave alone.
        raise IgnoreFieldsError(f"JSONPath error in '{path[:_SHOWN]}': {error}") from error
    except jsonpath_syntax.JsonPathError as error:
        return [f"ignoreFields path {path} selects nothing: {error}"]
    for parent in (value for result in results for value in result):
        if isinstance(parent, dict):
            parent.pop(key, None)
    return []


def _remove_by_pointer(body: dict[str, Any], pointer: str) -> None:
    if not pointer.startswith("/"):
        raise IgnoreFieldsError(f"JSON Pointer error in '{pointer}': a pointer starts with /")
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
    parent: Any = body
    for part in parents:
        parent = _child(parent, part)
    if isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, list) and last.isdecimal() and int(last[:9]) < len(parent):
        del parent[int(last)]


def _child(value: object, part: str) -> object:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and part.isdecimal() and int(part[:9]) < len(value):
        return value[int(part)]
    return None


def _remove_by_jq(body: dict[str, Any], expression: str, *, budget: Budget) -> None:
    try:
        paths = jq.paths(expression, body, budget=budget)
    except BudgetExceeded as error:
        raise IgnoreFieldsError(f"JQ expression error in '{expression[:_SHOWN]}': {error}") from error
    except jq.JqSyntaxError as error:
        problem = f"failed to parse jq expression: {error}"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}") from error
    except jq.JqError as error:
        problem = f"jq expression returned error: {error}"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}") from error
    if () in paths:
        problem = "jq expression result is not a valid object"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}")
    # From the end, so that removing one item does not shift the next.
    for path in sorted(set(paths), key=_backwards, reverse=True):
        _remove_at(body, path)


def _backwards(path: jq.Path) -> tuple[tuple[int, str, int], ...]:
    return tuple((1, "", part) if isinstance(part, int) else (0, part, 0) for part in path)


def _remove_at(body: dict[str, Any], path: jq.Path) -> None:
    parent: Any = body
    for part in path[:-1]:
        is_there = isinstance(parent, dict) or (
            isinstance(parent, list) and isinstance(part, int) and part < len(parent)
        )
        if not is_there:
            return
        parent = parent.get(part) if isinstance(parent, dict) else parent[part]
    last = path[-1]
    if isinstance(parent, dict):
        parent.pop(last, None)
    elif isinstance(parent, list) and isinstance(last, int) and 0 <= last < len(parent):
        del parent[last]
