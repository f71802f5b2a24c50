"""How do two values of a kind combine and differ, field by field? The arithmetic under server-side apply.

Follows the published rules: maps and structs merge by key, lists by their keys or as sets, atomic ones are one value.
Pure; knows nothing of managers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.fieldsets import Path, Paths, Trie, trie_of
from maestropy.sandbox.kubeapi.schema import Schema

_MISSING: Any = object()
# The published schemas give these keys a default, so an item that leaves them out is still the same item.
_KEY_DEFAULTS = {"protocol": "TCP"}


class NotMergeable(Exception):
    """A value does not fit its schema, so that its items cannot be told apart."""


def element_of(item: Any, schema: Schema) -> str:
    """Return the path element of `item` in a list that merges."""
    if schema.is_set:
        return "v:" + orjson.dumps(item).decode()
    if not isinstance(item, dict):
        raise NotMergeable(f"expected map, got {type(item).__name__}")
    keys = {}
    for name in schema.keys:
        value = item.get(name, _KEY_DEFAULTS.get(name))
        if value is not None:
            keys[name] = value
    if not keys:
        raise NotMergeable(f"associative list with keys has an element that omits key field {schema.keys[0]!r}")
    return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()


def _is_map(value: Any, schema: Schema) -> bool:
    return isinstance(value, dict) and not schema.atomic


def _is_list(value: Any, schema: Schema) -> bool:
    return isinstance(value, list) and schema.is_granular_list


def fields_of(value: Any, schema: Schema) -> Paths:
    """Return the paths a manager owns by applying `value`."""
    found: set[Path] = set()
    _own(value, schema, (), found)
    return frozenset(found)


def _own(value: Any, schema: Schema, path: Path, found: set[Path]) -> None:
    if _is_map(value, schema):
        for name, child in value.items():
            below = (*path, f"f:{name}")
            _own(child, schema.child(name), below, found)
            if child is None or child == {} or name not in schema.fields:
                found.add(below)
    elif _is_list(value, schema):
        for item in value:
            below = (*path, element_of(item, schema))
            _own(item, schema.item, below, found)
            found.add(below)
    elif path:
        found.add(path)


@dataclass(slots=True)
class Difference:
    """What changed from one value to another, as paths."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def compare(old: Any, new: Any, schema: Schema) -> Difference:
    """Return the difference between two values of one kind."""
    difference = Difference()
    _compare(old, new, schema, (), difference)
    return difference


def _compare(old: Any, new: Any, schema: Schema, path: Path, difference: Difference) -> None:
    if old is new:
        return
    shape = new if new is not _MISSING and new is not None else old
    children = list(_children(old, new, shape, schema))
    for element, below, left, right in children:
        _compare(left, right, below, (*path, element), difference)
    if old is _MISSING:
        difference.added.add(path)
    elif new is _MISSING:
        difference.removed.add(path)
    elif not _are_alike(old, new) if children else old != new:
        difference.modified.add(path)


def _are_alike(old: Any, new: Any) -> bool:
    """Whether two values differ in their parts only; nothing at all is like everything."""
    return old is None or new is None or type(old) is type(new)


def _children(old: Any, new: Any, shape: Any, schema: Schema) -> Iterator[tuple[str, Schema, Any, Any]]:
    if _is_map(shape, schema):
        left, right = _as_dict(old), _as_dict(new)
        for name in left | right:
            yield f"f:{name}", schema.child(name), left.get(name, _MISSING), right.get(name, _MISSING)
    elif _is_list(shape, schema):
        before, after = _indexed(old, schema), _indexed(new, schema)
        for element in before | after:
            yield element, schema.item, before.get(element, _MISSING), after.get(element, _MISSING)


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _indexed(value: Any, schema: Schema) -> dict[str, Any]:
    return {element_of(item, schema): item for item in value} if isinstance(value, list) else {}


def merge(live: Any, wish: Any, schema: Schema) -> Any:
    """Return `live` with everything `wish` says laid over it."""
    if _is_map(live, schema) and isinstance(wish, dict):
        return {
            name: merge(live[name], wish[name], schema.child(name))
            if name in live and name in wish
            else (wish[name] if name in wish else live[name])
            for name in live | wish
        }
    if _is_list(live, schema) and isinstance(wish, list):
        return _merge_lists(live, wish, schema)
    return wish


def _merge_lists(live: list[Any], wish: list[Any], schema: Schema) -> list[Any]:
    """Keep the order of `wish`; items only `live` has stay behind the neighbours they had."""
    mine, theirs = _indexed(live, schema), _indexed(wish, schema)
    if len(theirs) != len(wish):
        raise NotMergeable("duplicate entries for key")
    waiting = list(mine)
    out = []
    for element, item in theirs.items():
        while waiting and (waiting[0] not in theirs or (element in mine and waiting[0] != element)):
            skipped = waiting.pop(0)
            if skipped not in theirs:
                out.append(mine[skipped])
        if waiting and waiting[0] == element:
            waiting.pop(0)
        out.append(merge(mine[element], item, schema.item) if element in mine else item)
    out.extend(mine[element] for element in waiting if element not in theirs)
    return out


def remove(value: Any, paths: Paths, schema: Schema) -> Any:
    """Return `value` without `paths`; what becomes empty by that goes too."""
    if not paths:
        return value
    left = _remove(value, trie_of(paths), schema)
    return {} if left is _MISSING else left


def _remove(value: Any, trie: Trie, schema: Schema) -> Any:
    if _is_map(value, schema):
        kept: Any = {}
        for name, child in value.items():
            left = _without(child, trie.get(f"f:{name}"), schema.child(name))
            if left is not _MISSING:
                kept[name] = left
    elif _is_list(value, schema):
        kept = []
        for item in value:
            left = _without(item, trie.get(element_of(item, schema)), schema.item)
            if left is not _MISSING:
                kept.append(left)
    else:
        return value
    return kept if kept or not value else _MISSING


def _without(child: Any, trie: Trie | None, schema: Schema) -> Any:
    if not trie:
        return child
    return _MISSING if "." in trie else _remove(child, trie, schema)


def with_parents(paths: Paths, schema: Schema) -> Paths:
    """Return `paths` and the named fields above them: a struct field counts as present when something below it is."""
    found = set(paths)
    for path in paths:
        node = schema
        for position, element in enumerate(path[:-1]):
            if element.startswith("f:"):
                name = element[2:]
                if name in node.fields:
                    found.add(path[: position + 1])
                node = node.child(name)
            else:
                node = node.item
    return frozenset(found)
