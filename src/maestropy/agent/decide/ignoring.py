"""Which fields of a manifest does server-side apply leave to the cluster?

A work may name them by JSONPath, JSON pointer or jq path. They are taken out of a copy before it is applied; whether
the copy or the whole manifest is applied is `strategy`'s half.
"""

import copy
from collections.abc import Sequence
from typing import Any

from maestropy.agent.decide import jqpath, jsonpath, pathsyntax
from maestropy.wire import options
from maestropy.wire.jsontypes import Object


class IgnoreFieldsError(Exception):
    """A field to ignore cannot be found out; the text goes into the condition."""


def without_fields(manifest: Object, ignored: Sequence[options.IgnoreFields]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a copy without the ignored fields, and what is worth a log line.

    Fields ignored on change stay: they count when the wish itself changes.
    """
    body: dict[str, Any] = copy.deepcopy(dict(manifest))
    notes: list[str] = []
    for entry in ignored:
        if entry.condition == options.ON_SPOKE_CHANGE:
            continue
        for path in entry.json_paths:
            notes += _remove_by_json_path(body, path)
        for pointer in entry.json_pointers:
            _remove_by_pointer(body, pointer)
        for expression in entry.jq_path_expressions:
            _remove_by_jq(body, expression)
    return body, tuple(notes)


def _remove_by_json_path(body: dict[str, Any], path: str) -> list[str]:
    """Remove a member from every map that the path before the last dot selects; items of lists stay."""
    key = path.rpartition(".")[2]
    parents = path.removesuffix(f".{key}")
    try:
        results = jsonpath.find(pathsyntax.parse_path(parents), body)
    except pathsyntax.JsonPathError as error:
        return [f"ignoreFields path {path} selects nothing: {error}"]
    for found in (value for result in results for value in result):
        if isinstance(found, dict):
            found.pop(key, None)
    return []


def _remove_by_pointer(body: dict[str, Any], pointer: str) -> None:
    if not pointer.startswith("/"):
        raise IgnoreFieldsError(f"JSON Pointer error in '{pointer}': a pointer starts with /")
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
    found: Any = body
    for part in parents:
        found = _child(found, part)
    if isinstance(found, dict):
        found.pop(last, None)
    elif isinstance(found, list) and last.isdecimal() and int(last[:9]) < len(found):
        del found[int(last)]


def _child(found: object, part: str) -> object:
    if isinstance(found, dict):
        return found.get(part)
    if isinstance(found, list) and part.isdecimal() and int(part[:9]) < len(found):
        return found[int(part)]
    return None


def _remove_by_jq(body: dict[str, Any], expression: str) -> None:
    try:
        places = jqpath.paths(jqpath.parse(expression), body)
    except jqpath.JqSyntaxError as error:
        problem = f"failed to parse jq expression: {error}"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}") from error
    except jqpath.JqError as error:
        problem = f"jq expression returned error: {error}"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}") from error
    if () in places:
        problem = "jq expression result is not a valid object"
        raise IgnoreFieldsError(f"JQ expression error in '{expression}': {problem}")
    # From the end, so that removing one item does not move the next.
    for place in sorted(set(places), key=_backwards, reverse=True):
        _remove_at(body, place)


def _backwards(place: jqpath.Path) -> tuple[tuple[int, str, int], ...]:
    return tuple((1, "", part) if isinstance(part, int) else (0, part, 0) for part in place)


def _remove_at(body: dict[str, Any], place: jqpath.Path) -> None:
    found: Any = body
    for part in place[:-1]:
        is_there = isinstance(found, dict) or (isinstance(found, list) and isinstance(part, int) and part < len(found))
        if not is_there:
            return
        found = found.get(part) if isinstance(found, dict) else found[part]
    last = place[-1]
    if isinstance(found, dict):
        found.pop(last, None)
    elif isinstance(found, list) and isinstance(last, int) and 0 <= last < len(found):
        del found[last]
