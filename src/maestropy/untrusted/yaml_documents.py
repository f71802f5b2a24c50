"""Parse YAML that somebody else wrote, within limits.

A few lines of YAML with aliases or merge keys can stand for billions of values; a parser that only keeps references is
not harmed, but the program that writes the document out is. So values are counted as if every alias were written out.
Also bounded are the number of values as written, the depth, and the length of numbers. Pure.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, TypeVar

import yaml

from maestropy.untrusted.errors import InputRejected

VALUES: Final = 250_000
"""The most values of a text as written; one takes about a kilobyte of memory while it is parsed."""
ALIASED_VALUES: Final = 100_000
"""The most values that aliases and merge keys may add."""
DEPTH: Final = 100
"""The deepest nesting; Kubernetes objects have about 20 levels."""
TOO_MANY: Final = f"it has more than {VALUES} values, which is the limit"
TOO_DEEP: Final = f"it is nested more than {DEPTH} levels deep, which is the limit"
_CHARACTERS_PER_VALUE: Final = 256
"""A longer string counts as several values."""
NUMBER_LENGTH: Final = 400
_MERGE: Final = "tag:yaml.org,2002:merge"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_Parsed = TypeVar("_Parsed")


class _BoundedConstructor(yaml.constructor.SafeConstructor):
    """Builds plain values; merge keys and numbers are bounded."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace merge keys, within the limit of aliases."""
        total = 0
        for key, value in node.value:
            if key.tag == _MERGE:
                for mapping in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(mapping, yaml.MappingNode):
                        self.flatten_mapping(mapping)
                        total += len(mapping.value)
                    _check_aliased(total)
        super().flatten_mapping(node)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """Return a number; a very long one is rejected, because converting it takes long."""
        if len(node.value) > NUMBER_LENGTH:
            raise yaml.constructor.ConstructorError(
                None, None, f"a number has more than {NUMBER_LENGTH} digits", node.start_mark
            )
        is_int = node.tag == "tag:yaml.org,2002:int"
        return self.construct_yaml_int(node) if is_int else self.construct_yaml_float(node)


for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _BoundedConstructor.add_constructor(_tag, _BoundedConstructor.construct_number)  # type: ignore[type-var]  # stub


class BoundedLoader(_BoundedConstructor, yaml.SafeLoader):
    """Plain YAML values within limits."""

    def __init__(self, stream: bytes | str) -> None:
        super().__init__(stream)
        self._values = 0
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Count the values while they are read."""
        self._values += 1
        if self._values > VALUES:
            raise InputRejected(TOO_MANY)
        self._depth += 1
        if self._depth > DEPTH:
            raise InputRejected(TOO_DEEP)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


class KubernetesLoader(BoundedLoader):
    """YAML as Kubernetes parses it: a date stays a string."""


KubernetesLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class UniqueKeysLoader(BoundedLoader):
    """YAML in which no object has a key twice: PyYAML would silently take the last one."""

    keys_are_checked: ClassVar[bool] = True
    """False where the caller reports repeated keys itself, and wants to report what else is wrong too."""

    def construct_document(self, node: yaml.Node) -> Any:
        """Check the keys, and return the value."""
        if self.keys_are_checked:
            _check_unique(node, path="", seen=set())
        return super().construct_document(node)


def _check_unique(node: yaml.Node, *, path: str, seen: set[int]) -> None:
    # An alias is the same node again.
    if isinstance(node, yaml.ScalarNode) or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_unique(item, path=f"{path}[{index}]", seen=seen)
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue  # such a key is rejected where the object is built
        name, line = str(key.value), key.start_mark.line + 1
        field = f"{path}.{name}" if path else name
        if name in lines and key.tag != _MERGE:
            raise InputRejected(
                f"line {line}: the key {field} is there twice, first in line {lines[name]}; keep one of the two"
            )
        lines.setdefault(name, line)
        _check_unique(value, path=field, seen=seen)


class FastLoader(_BoundedConstructor, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # either
    """Plain YAML values, parsed by libyaml where it is installed: for large exports; errors are less exact."""


_Loader = type[BoundedLoader] | type[FastLoader]


def load(text: bytes | str, *, loader: _Loader = BoundedLoader) -> Any:
    """Return the only document of a text; raises InputRejected, or YAMLError if it is not YAML."""
    _count_values(text)
    return _within_limits(lambda: yaml.load(text, Loader=loader))  # noqa: S506 - a safe loader


def load_all(text: bytes | str, *, loader: _Loader = BoundedLoader) -> list[Any]:
    """Return all documents of a text; raises InputRejected, or YAMLError if it is not YAML."""
    _count_values(text)
    return _within_limits(lambda: list(yaml.load_all(text, Loader=loader)))


def _count_values(text: bytes | str) -> None:
    """Reject a text with too many values or levels at once: libyaml reads fifty times as fast as the loader."""
    loader = getattr(yaml, "CSafeLoader", None)
    if loader is None or len(text) < VALUES:
        return
    values = depth = 0
    try:
        for event in yaml.parse(text, Loader=loader):
            values += isinstance(event, yaml.NodeEvent)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if values > VALUES:
                raise InputRejected(TOO_MANY)
            if depth > DEPTH:
                raise InputRejected(TOO_DEEP)
    except yaml.YAMLError:
        return  # the loader gives the position and the reason


def _within_limits(parse: Callable[[], _Parsed]) -> _Parsed:
    try:
        parsed = parse()
    except RecursionError as error:
        raise InputRejected(TOO_DEEP) from error
    except ValueError as error:
        # A date that does not exist, or a number that cannot be converted.
        raise yaml.YAMLError(f"a value cannot be converted: {error}") from error
    _AliasCount().check(parsed)
    return parsed


class _AliasCount:
    """Counts what aliases add: the values of a document when every alias is written out, less those as written."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        """The written-out size of every collection and every long string, by identity."""
        self._written = 0
        self._open: set[int] = set()

    def check(self, value: Any) -> None:
        """Raise InputRejected if aliases add too much."""
        _check_aliased(self._size(value) - self._written)

    def _size(self, value: Any) -> int:
        is_long = isinstance(value, str) and len(value) > _CHARACTERS_PER_VALUE
        if not is_long and not isinstance(value, dict | list):
            return 0  # counted with the collection that has it
        key = id(value)
        if key in self._open:
            raise InputRejected("an alias stands inside of its own anchor")
        if key not in self._sizes:
            own = len(value) // _CHARACTERS_PER_VALUE if is_long else 1 + len(value)
            self._written += own
            self._open.add(key)
            self._sizes[key] = own + sum(map(self._size, _members(value)))
            self._open.remove(key)
            _check_aliased(self._sizes[key] - self._written)
        return self._sizes[key]


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _check_aliased(count: int) -> None:
    if count > ALIASED_VALUES:
        raise InputRejected(f"its aliases stand for more than {ALIASED_VALUES} values, which is the limit; write less")
