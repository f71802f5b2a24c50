"""Check which fields a task file has, and of which types they are: HyperFleet reads task files strictly. Pure.

An unknown field, a field that is given twice and a value of another type are errors there, so they are errors here.
"""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from maestropy.adapter.tasks.load.problems import LoadProblem, error
from maestropy.untrusted import go_yaml

_TAG = "tag:yaml.org,2002:"
Check = Callable[[Any, str], Iterator[LoadProblem]]


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields of an object and how each is checked."""

    fields: Mapping[str, Check]

    def __call__(self, value: Any, path: str) -> Iterator[LoadProblem]:
        """Yield the problems of a value that should be this object."""
        if not isinstance(value, Mapping):
            yield error(path, f"must be an object, and is {_type(value)}", f"give it {_listed(self.fields)}")
            return
        for name, member in value.items():
            at = joined(path, str(name))
            if name not in self.fields:
                yield error(at, f"field {name} not found", _similar(str(name), self.fields))
            elif member is not None:
                yield from self.fields[name](member, at)


def joined(path: str, name: str) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else name


@dataclass(frozen=True, slots=True)
class _Many:
    """A list of such values."""

    check: Check

    def __call__(self, value: Any, path: str) -> Iterator[LoadProblem]:
        """Yield the problems of a value that should be a list."""
        if not isinstance(value, list):
            yield error(path, f"must be a list, and is {_type(value)}", "begin each entry with `- `")
            return
        for index, item in enumerate(value):
            yield from self.check(item, f"{path}[{index}]")


def typed(node: yaml.Node, check: Check) -> yaml.Node:
    """Return a node as Go reads it into a field of this type.

    A text takes every scalar as it is written (`0123` stays that), a boolean also takes `yes` and `off`, and a whole
    number takes `1e3`. Fields of any type keep what YAML makes of the scalar.
    """
    if check is _source:
        check = _MAPPED_SOURCE if isinstance(node, yaml.MappingNode) else _TEXT
    if isinstance(node, yaml.ScalarNode):
        return _typed_scalar(node, check)
    if isinstance(node, yaml.MappingNode) and isinstance(check, Shape):
        members = [(key, _typed_member(key, value, check)) for key, value in node.value]
        return yaml.MappingNode(node.tag, members, node.start_mark, node.end_mark)
    if isinstance(node, yaml.SequenceNode) and isinstance(check, _Many):
        items = [typed(item, check.check) for item in node.value]
        return yaml.SequenceNode(node.tag, items, node.start_mark, node.end_mark)
    return node


def _typed_member(key: yaml.Node, value: yaml.Node, shape: Shape) -> yaml.Node:
    if key.tag != f"{_TAG}merge":
        return typed(value, shape.fields.get(str(key.value), _anything))
    # What a merge key brings are fields of this object: of one other object, or of a list of them.
    return typed(value, _Many(shape) if isinstance(value, yaml.SequenceNode) else shape)


def _typed_scalar(node: yaml.ScalarNode, check: Check) -> yaml.ScalarNode:
    tag, text = node.tag.removeprefix(_TAG), str(node.value)
    if check in (_TEXT, _expression) and tag != "null":
        tag = "str"
    elif check is _BOOL and tag == "str" and text in go_yaml.TRUE | go_yaml.FALSE:
        tag, text = "bool", "true" if text in go_yaml.TRUE else "false"
    elif check is _WHOLE and tag == "float" and isinstance(value := go_yaml.number(text), float):
        tag, text = "int", str(int(value))
    return yaml.ScalarNode(_TAG + tag, text, node.start_mark, node.end_mark)


def repeated_fields(node: yaml.Node | None) -> Iterator[LoadProblem]:
    """Yield every field that an object of the file has twice."""
    yield from _repeated(node, "", seen=set())


def _repeated(node: yaml.Node | None, path: str, *, seen: set[int]) -> Iterator[LoadProblem]:
    # An alias is the same node again.
    if not isinstance(node, yaml.CollectionNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _repeated(item, f"{path}[{index}]", seen=seen)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            message = f'line {line}: mapping key "{name}" already defined at line {lines[name]}'
            yield error(joined(path, name), message, "keep one of the two")
        lines.setdefault(name, line)
        yield from _repeated(value, joined(path, name), seen=seen)


def _of_type(kind: type | tuple[type, ...], words: str) -> Check:
    def check(value: Any, path: str) -> Iterator[LoadProblem]:
        is_bool_by_chance = isinstance(value, bool) and kind is int
        if not isinstance(value, kind) or is_bool_by_chance:
            yield error(path, f"must be {words}, and is {_type(value)}", f"give {words}")

    return check


def _anything(_: Any, __: str) -> Iterator[LoadProblem]:
    yield from ()


def _source(value: Any, path: str) -> Iterator[LoadProblem]:
    if isinstance(value, Mapping):
        yield from _MAPPED_SOURCE(value, path)
    elif isinstance(value, list):
        yield error(path, "expected string or mapping, got !!seq", "give `event.id`, or {expression: …}")


def _type(value: Any) -> str:
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names)


def _similar(name: str, fields: Mapping[str, Any]) -> str:
    similar = difflib.get_close_matches(name, list(fields), n=1)
    return f"did you mean {similar[0]}?" if similar else f"remove it, or use one of: {_listed(fields)}"


def _expression(value: Any, path: str) -> Iterator[LoadProblem]:
    # A converted adapter may have a Python function where the task had CEL.
    if not callable(value):
        yield from _TEXT(value, path)


_TEXT = _of_type((str, int, float), "text")
_BOOL = _of_type(bool, "true or false")
_WHOLE = _of_type(int, "a whole number")
_WHEN = Shape({"expression": _expression})
_HEADER = Shape({"name": _TEXT, "value": _TEXT})
_API_CALL = Shape(
    {
        "method": _TEXT,
        "url": _TEXT,
        "timeout": _TEXT,
        "retry_attempts": _WHOLE,
        "retry_backoff": _TEXT,
        "body": _TEXT,
        "headers": _Many(_HEADER),
    }
)
_MAPPED_SOURCE = Shape(
    {"api_call": _API_CALL, "expression": _expression, "file": Shape({"path": _TEXT, "trim": _BOOL})}
)
_PARAM = Shape(
    {
        "name": _TEXT,
        "source": _source,
        "type": _TEXT,
        "default": _anything,
        "required": _BOOL,
        "description": _TEXT,
    }
)
_CAPTURE = Shape({"name": _TEXT, "field": _TEXT, "expression": _expression, "default": _anything})
_CONDITION = Shape({"field": _TEXT, "operator": _TEXT, "value": _anything, "values": _anything})
_LOG = Shape({"message": _TEXT, "level": _TEXT})
_PRECONDITION = Shape(
    {
        "name": _TEXT,
        "api_call": _API_CALL,
        "log": _LOG,
        "expression": _expression,
        "capture": _Many(_CAPTURE),
        "conditions": _Many(_CONDITION),
    }
)
_DISCOVERY = Shape(
    {"namespace": _TEXT, "by_name": _TEXT, "by_selectors": Shape({"label_selector": _of_type(dict, "an object")})}
)
_LIFECYCLE = Shape({"create": Shape({"when": _WHEN}), "delete": Shape({"when": _WHEN, "propagationPolicy": _TEXT})})
_RESOURCE = Shape(
    {
        "name": _TEXT,
        "transport": _anything,
        "manifest": _anything,
        "discovery": _DISCOVERY,
        "lifecycle": _LIFECYCLE,
        "recreate_on_change": _BOOL,
        "nested_discoveries": _anything,
    }
)
_PAYLOAD = Shape({"name": _TEXT, "build": _anything, "build_ref": _TEXT, "when": _WHEN})
_POST_ACTION = Shape({"name": _TEXT, "api_call": _API_CALL, "log": _LOG, "when": _WHEN})
TASK = Shape(
    {
        "schema_version": _anything,
        "params": _Many(_PARAM),
        "preconditions": _Many(_PRECONDITION),
        "resources": _Many(_RESOURCE),
        "post": Shape({"payloads": _Many(_PAYLOAD), "post_actions": _Many(_POST_ACTION)}),
    }
)
"""The fields of a task file."""
