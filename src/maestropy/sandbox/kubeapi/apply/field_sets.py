"""Encode and decode `fieldsV1`: the set of field paths that a field manager owns.

A path is a tuple of elements as `fieldsV1` writes them: `f:name` a field, `k:{"name":"x"}` the list item with these
keys, `v:"x"` the item of a set, `i:0` an index. A set of paths is a plain frozenset, so union and difference need no
code.
"""

from typing import Any

import orjson

Path = tuple[str, ...]
Paths = frozenset[Path]
Trie = dict[str, Any]

EMPTY: Paths = frozenset()
_RANK = {"f": 0, "k": 1, "v": 2, "i": 3}


def trie_of(paths: Paths) -> Trie:
    """Return `paths` as a trie; the end of every path is marked by `.`."""
    root: Trie = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return root


def encode(paths: Paths) -> Trie:
    """Return `paths` as a `fieldsV1` value."""
    return _compact(trie_of(paths))


def _compact(node: Trie) -> Trie:
    ordered = sorted((key for key in node if key != "."), key=lambda key: (_RANK[key[0]], key))
    children = {key: _compact(node[key]) for key in ordered}
    return {".": {}, **children} if "." in node and children else children


def decode(fields: Trie) -> Paths:
    """Return the paths of a `fieldsV1` value."""
    paths: set[Path] = set()
    _collect(fields, (), paths)
    return frozenset(paths)


def _collect(node: Trie, prefix: Path, paths: set[Path]) -> None:
    for element, child in node.items():
        if element == ".":
            paths.add(prefix)
            continue
        path = (*prefix, element)
        if child:
            _collect(child, path, paths)
        else:
            paths.add(path)


def show(path: Path) -> str:
    """Return `path` as messages print it: `.spec.containers[name="a"].image`."""
    return "".join(_show_element(element) for element in path)


def _show_element(element: str) -> str:
    mark, text = element[0], element[2:]
    if mark == "f":
        return f".{text}"
    if mark == "k":
        keys = ",".join(f"{name}={_scalar(value)}" for name, value in orjson.loads(text).items())
        return f"[{keys}]"
    return f"[={_scalar(orjson.loads(text))}]" if mark == "v" else f"[{text}]"


def _scalar(value: object) -> str:
    return orjson.dumps(value).decode()
