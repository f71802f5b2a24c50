"""Merge and compare two values of a kind field by field, as structured-merge-diff does for server-side apply.

Maps and structs merge by key, lists by their keys or as sets; atomic ones are one value. Pure; field managers are
handled in `server_side_apply`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.apply.field_sets import Path, Paths, Trie, trie_of
from maestropy.sandbox.kubeapi.schemas.schema import Schema

_MISSING: Any = object()
# The published schemas define a default for these keys, so an item without the key is the same item.
_KEY_DEFAULTS = {"protocol": "TCP"}


class NotMergeable(Exception):
    """A value does not fit its schema, so its list items have no identity."""


def element_of(item: Any, schema: Schema) -> str:
    """Return the path element of `item` in an associative list."""
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
    return isinstance(value, dict) and not schema.is_atomic


def _is_list(value: Any, schema: Schema) -> bool:
    return isinstance(value, list) and schema.is_granular_list


def fields_of(value: Any, schema: Schema) -> Paths:
    """Return the paths a manager owns by applying `value`."""
    paths: set[Path] = set()
    _own(value, schema, (), paths)
    return frozenset(paths)


def _own(value: Any, schema: Schema, path: Path, paths: set[Path]) -> None:
    if _is_map(value, schema):
        for name, child in value.items():
            below = (*path, f"f:{name}")
            _own(child, schema.child(name), below, paths)
            if child is None or child == {} or name not in schema.fields:
                paths.add(below)
    elif _is_list(value, schema):
        for item in value:
            below = (*path, element_of(item, schema))
            _own(item, schema.item, below, paths)
            paths.add(below)
    elif path:
        paths.add(path)


@dataclass(slots=True)
class Comparison:
    """Paths that were added, modified and removed between two values."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)


def compare(old: Any, new: Any, schema: Schema) -> Comparison:
    """Return the comparison of two values of one kind."""
    comparison = Comparison()
    _compare(old, new, schema, (), comparison)
    return comparison


def _compare(old: Any, new: Any, schema: Schema, path: Path, comparison: Comparison) -> None:
    if old is new:
        return
    shape = new if new is not _MISSING and new is not None else old
    children = list(_children(old, new, shape, schema))
    for element, below, left, right in children:
        _compare(left, right, below, (*path, element), comparison)
    if old is _MISSING:
        comparison.added.add(path)
    elif new is _MISSING:
        comparison.removed.add(path)
    elif not _are_alike(old, new) if children else old != new:
        comparison.modified.add(path)


def _are_alike(old: Any, new: Any) -> bool:
    """Whether two values differ only in their children; None is like any value."""
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


def merge(live: Any, config: Any, schema: Schema) -> Any:
    """Return `live` with all fields of `config` set."""
    if _is_map(live, schema) and isinstance(config, dict):
        return {
            name: merge(live[name], config[name], schema.child(name))
            if name in live and name in config
            else (config[name] if name in config else live[name])
            for name in live | config
        }
    if _is_list(live, schema) and isinstance(config, list):
        return _merge_lists(live, config, schema)
    return config


def _merge_lists(live: list[Any], config: list[Any], schema: Schema) -> list[Any]:
    """Keep the order of `config`; items that only `live` has stay behind their previous neighbours."""
    live_items, config_items = _indexed(live, schema), _indexed(config, schema)
    if len(config_items) != len(config):
        raise NotMergeable("duplicate entries for key")
    waiting = list(live_items)
    out = []
    for element, item in config_items.items():
        while waiting and (waiting[0] not in config_items or (element in live_items and waiting[0] != element)):
            skipped = waiting.pop(0)
            if skipped not in config_items:
                out.append(live_items[skipped])
        if waiting and waiting[0] == element:
            waiting.pop(0)
        out.append(merge(live_items[element], item, schema.item) if element in live_items else item)
    out.extend(live_items[element] for element in waiting if element not in config_items)
    return out


def remove(value: Any, paths: Paths, schema: Schema) -> Any:
    """Return `value` without `paths`; containers that become empty are removed too."""
    if not paths:
        return value
    remaining = _remove(value, trie_of(paths), schema)
    return {} if remaining is _MISSING else remaining


def _remove(value: Any, trie: Trie, schema: Schema) -> Any:
    if _is_map(value, schema):
        kept: Any = {}
        for name, child in value.items():
            remaining = _without(child, trie.get(f"f:{name}"), schema.child(name))
            if remaining is not _MISSING:
                kept[name] = remaining
    elif _is_list(value, schema):
        kept = []
        for item in value:
            remaining = _without(item, trie.get(element_of(item, schema)), schema.item)
            if remaining is not _MISSING:
                kept.append(remaining)
    else:
        return value
    return kept if kept or not value else _MISSING


def _without(child: Any, trie: Trie | None, schema: Schema) -> Any:
    if not trie:
        return child
    return _MISSING if "." in trie else _remove(child, trie, schema)


def with_parents(paths: Paths, schema: Schema) -> Paths:
    """Return `paths` and the named fields above them: a struct field is present when a field below it is."""
    result = set(paths)
    for path in paths:
        node = schema
        for position, element in enumerate(path[:-1]):
            if element.startswith("f:"):
                name = element[2:]
                if name in node.fields:
                    result.add(path[: position + 1])
                node = node.child(name)
            else:
                node = node.item
    return frozenset(result)
