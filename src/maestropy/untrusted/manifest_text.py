"""Parse the text of manifests, YAML or JSON, so that it means what it means to Kubernetes.

JSON is parsed as JSON. In YAML a number with an exponent is a number, `12:30` is a string, and a date stays a string. A
key that an object has twice is rejected, because one of its values would be lost without a word. Pure.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from maestropy.untrusted import yaml_documents
from maestropy.untrusted.errors import InputRejected

_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_INT_PATTERN: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)\Z")
_FLOAT_PATTERN: Final = re.compile(
    r"(?:[-+]?(?:\.[0-9][0-9_]*|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
_TEXT: Final = "tag:yaml.org,2002:str"
_DECIMAL: Final = re.compile("0|-?[1-9][0-9]*")
_NOT_TEXT: Final = {
    "tag:yaml.org,2002:bool": "a boolean",
    "tag:yaml.org,2002:null": "null",
    _INT: "a number",
    _FLOAT: "a number",
}
_MERGE: Final = "tag:yaml.org,2002:merge"
_EXACT: Final = 2**63
"""Go writes a whole number below this limit without an exponent; fields of integers take no other form."""


class BadKey(yaml.constructor.ConstructorError):
    """A key that an object has twice, or that is not a string."""

    def __init__(self, problem: str, mark: Any = None, *, advice: str) -> None:
        super().__init__(None, None, problem, mark)
        self.advice = advice


class _ManifestLoader(yaml_documents.KubernetesLoader):
    """YAML with the numbers of Kubernetes, and with every key once."""

    def construct_document(self, node: yaml.Node) -> Any:
        """Check the keys, and return the value."""
        _check_keys(node, path="", seen=set())
        return super().construct_document(node)

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float | int:
        """Return a number; a whole one with an exponent is an integer."""
        value = float(super().construct_yaml_float(node))
        return _number(value, text=str(node.value))


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    numbers = (_INT, _FLOAT)
    kept = {
        first: [entry for entry in entries if entry[0] not in numbers]
        for first, entries in yaml_documents.KubernetesLoader.yaml_implicit_resolvers.items()
    }
    for first in "-+.0123456789":
        kept[first] = [*kept.get(first, []), (_INT, _INT_PATTERN), (_FLOAT, _FLOAT_PATTERN)]
    return kept


_ManifestLoader.yaml_implicit_resolvers = _resolvers()


def load_all(text: str) -> list[Any]:
    """Return all documents of a text; raises InputRejected, or YAMLError if it is neither JSON nor YAML."""
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        try:
            return [load_json(text)]
        except json.JSONDecodeError:
            pass  # YAML has such brackets too, and its parser gives the position
    return yaml_documents.load_all(text, loader=_ManifestLoader)


def load_json(text: str) -> Any:
    """Return the value of a JSON text; raises JSONDecodeError, BadKey for a key that is there twice, InputRejected."""
    try:
        value = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object, parse_float=_float, parse_int=_int)
    except RecursionError as error:
        raise InputRejected(yaml_documents.TOO_DEEP) from error
    _check_size(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise BadKey(f"an object has the key {json.dumps(repeated)} twice", advice="keep one of the two")
    return members


def _float(text: str) -> float | int:
    return _number(float(text), text=text)


def _int(text: str) -> int:
    if len(text) > yaml_documents.NUMBER_LENGTH:
        raise yaml.YAMLError(f"a number has more than {yaml_documents.NUMBER_LENGTH} digits")
    return int(text)


def _number(value: float, *, text: str) -> float | int:
    has_exponent = "e" in text.lower()
    return int(value) if has_exponent and value.is_integer() and abs(value) < _EXACT else value


def _check_size(value: Any) -> None:
    """Apply the limits of YAML to JSON."""
    count, level, depth = 1, [value], 1
    while level := [member for parent in level for member in _members(parent)]:
        count, depth = count + len(level), depth + 1
        if count > yaml_documents.VALUES:
            raise InputRejected(yaml_documents.TOO_MANY)
        if depth > yaml_documents.DEPTH:
            raise InputRejected(yaml_documents.TOO_DEEP)


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield member
    elif isinstance(value, list):
        yield from value


def _check_keys(node: yaml.Node, *, path: str, seen: set[int]) -> None:
    # An alias is the same node again.
    if isinstance(node, yaml.ScalarNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(item, path=f"{path}[{index}]", seen=seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadKey(f"a key of {path or 'the document'} is not a string", key.start_mark, advice="use a string")
        name, line = str(key.value), key.start_mark.line + 1
        field = f"{path}.{name}" if path else name
        if key.tag == _INT and _DECIMAL.fullmatch(name):
            key.tag = _TEXT  # as Kubernetes reads it
        if key.tag in _NOT_TEXT:
            problem = f"the key {field} is {_NOT_TEXT[key.tag]} in YAML, not a string"
            raise BadKey(problem, key.start_mark, advice=f'quote it: "{name}"')
        if name in lines and key.tag != _MERGE:
            problem = f"the key {field} is there twice, first in line {lines[name]}"
            raise BadKey(problem, key.start_mark, advice="keep one of the two")
        lines.setdefault(name, line)
        _check_keys(value, path=field, seen=seen)
