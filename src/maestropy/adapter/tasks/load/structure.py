"""Check what a task must have: names, sources, methods, operators, discovery, and fields that exclude each other. Pure.

HyperFleet's loader stops at the first of these; here all are reported, in its words.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from maestropy.adapter.tasks.load.problems import LoadProblem, error

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OPERATORS = ("equals", "notEquals", "in", "notIn", "contains", "greaterThan", "lessThan", "exists")
POLICIES = ("Background", "Foreground", "Orphan")
_NAME = re.compile(r"^[a-z][a-zA-Z0-9_]*$")
_NAME_RULE = "must start with lowercase letter and contain only letters, numbers, underscores (no hyphens)"

Entry = Mapping[str, Any]


def problems(task: Entry, *, is_set: Callable[[str], bool] = lambda _: True) -> Iterator[LoadProblem]:
    """Yield the structural problems of a task; `is_set` says whether an environment variable has a value."""
    for path, param in entries(task, "params"):
        yield from _required(param, path, "name")
        yield from _source(param, path, is_set=is_set)
    for path, precondition in entries(task, "preconditions"):
        yield from _precondition(precondition, path)
    yield from _resources(task)
    post = task.get("post")
    post = post if isinstance(post, Mapping) else {}
    for path, payload in entries(post, "payloads", within="post."):
        yield from _required(payload, path, "name")
        yield from _when(payload, path)
        yield from _either(payload, path, "build", "build_ref", neither="either 'build' or 'build_ref' must be set")
    for path, action in entries(post, "post_actions", within="post."):
        yield from _action(action, path)
        yield from _when(action, path)


def entries(parent: Entry, name: str, *, within: str = "") -> list[tuple[str, Entry]]:
    """Return the objects of a list with their paths; what is no object was reported by `fields`."""
    items = parent.get(name)
    if not isinstance(items, list):
        return []
    return [(f"{within}{name}[{index}]", item) for index, item in enumerate(items) if isinstance(item, Mapping)]


def at(entry: Entry, *names: str) -> Any:
    """Return a member of a member; None where one of them is missing."""
    value: Any = entry
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def is_blank(value: Any) -> bool:
    """Whether a text is missing or empty."""
    return value is None or (isinstance(value, str) and not value.strip())


def api_calls(task: Entry) -> Iterator[tuple[str, Entry]]:
    """Yield every API call of a task with its path."""
    for path, param in entries(task, "params"):
        yield f"{path}.source.api_call", at(param, "source", "api_call")
    for path, precondition in entries(task, "preconditions"):
        yield f"{path}.api_call", at(precondition, "api_call")
    for path, action in entries(task.get("post") or {}, "post_actions", within="post."):
        yield f"{path}.api_call", at(action, "api_call")


def _required(entry: Entry, path: str, *names: str) -> Iterator[LoadProblem]:
    for name in names:
        if is_blank(entry.get(name)):
            yield error(f"{path}.{name}", f"{name} is required", f"add {name}")


def _source(param: Entry, path: str, *, is_set: Callable[[str], bool]) -> Iterator[LoadProblem]:
    source = param.get("source")
    where = f"{path}.source"
    if is_blank(source):
        yield error(where, "source is required", "give `event.id`, `env.NAME`, or {expression: …}")
    elif isinstance(source, Mapping):
        yield from _mapped_source(source, where)
    elif isinstance(source, str) and source.startswith("env.") and param.get("required") and "default" not in param:
        variable = source.removeprefix("env.")
        if not is_set(variable):
            message = f"required environment variable {variable} is not set"
            yield error(path, message, "set it where the adapter runs, or give a default")


def _mapped_source(source: Entry, where: str) -> Iterator[LoadProblem]:
    kinds = [name for name in ("api_call", "expression", "file") if source.get(name) is not None]
    if not kinds:
        message = "mapping must contain one of 'api_call', 'expression', or 'file'"
        yield error(where, message, "give one of them")
    if len(kinds) > 1:
        message = "only one of 'api_call', 'expression', or 'file' may be set"
        yield error(where, message, f"keep one of {', '.join(kinds)}")
    if kinds == ["expression"] and is_blank(source["expression"]):
        yield error(where, "expression must not be empty", "write a CEL expression")
    if "api_call" in kinds:
        yield from _api_call(source["api_call"], f"{where}.api_call")
    if "file" in kinds and is_blank(at(source, "file", "path")):
        yield error(f"{where}.file.path", "path is required for file source", "give an absolute path")


def _api_call(call: Any, path: str) -> Iterator[LoadProblem]:
    if not isinstance(call, Mapping):
        return
    yield from _required(call, path, "method", "url")
    method = call.get("method")
    if not is_blank(method) and method not in METHODS:
        message = f'"{method}" is invalid (allowed: {", ".join(METHODS)})'
        yield error(f"{path}.method", message, "methods are written in capitals")


def _name(entry: Entry, path: str) -> Iterator[LoadProblem]:
    yield from _required(entry, path, "name")
    name = entry.get("name")
    if not is_blank(name) and not _NAME.match(str(name)):
        yield error(f"{path}.name", f'"{name}": {_NAME_RULE}', "CEL would read a hyphen as a minus")


def _precondition(precondition: Entry, path: str) -> Iterator[LoadProblem]:
    yield from _name(precondition, path)
    if not any(precondition.get(name) for name in ("api_call", "expression", "conditions")):
        yield error(path, "must specify api_call, expression, conditions", "add `expression` or `conditions`")
    if precondition.get("api_call") is not None:
        yield from _api_call(precondition["api_call"], f"{path}.api_call")
    for where, condition in entries(precondition, "conditions", within=f"{path}."):
        yield from _condition(condition, where)
    for where, capture in entries(precondition, "capture", within=f"{path}."):
        yield from _required(capture, where, "name")
        yield from _either(
            capture, where, "field", "expression", neither="must have either 'field' or 'expression' set"
        )


def _condition(condition: Entry, path: str) -> Iterator[LoadProblem]:
    yield from _required(condition, path, "operator")
    operator = condition.get("operator")
    if condition.get("value") is not None and condition.get("values") is not None:
        yield error(path, "condition has both 'value' and 'values' keys; use only one", "remove one of them")
    if not is_blank(operator) and operator not in OPERATORS:
        message = f'invalid operator "{operator}", must be one of: {", ".join(OPERATORS)}'
        yield error(f"{path}.operator", message, "write other comparisons as a CEL `expression`")


def _resources(task: Entry) -> Iterator[LoadProblem]:
    for path, resource in entries(task, "resources"):
        yield from _name(resource, path)
        yield from _discovery(resource, path)
    names = Counter(str(resource.get("name")) for _, resource in entries(task, "resources"))
    repeated = [name for name, count in names.items() if count > 1]
    if repeated:
        remedy = f"rename one of the resources {', '.join(repeated)}"
        yield error("resources", "contains duplicate name values", remedy)


def _discovery(resource: Entry, path: str) -> Iterator[LoadProblem]:
    discovery = resource.get("discovery")
    where = f"{path}.discovery"
    if not isinstance(discovery, Mapping):
        yield error(where, "discovery is required", "add by_name, or by_selectors")
        return
    neither = "must have either 'by_name' or 'by_selectors' set"
    yield from _either(discovery, where, "by_name", "by_selectors", neither=neither)
    selectors = discovery.get("by_selectors")
    if isinstance(selectors, Mapping) and not selectors.get("label_selector"):
        message = "must have at least 1 element(s)"
        yield error(f"{where}.by_selectors.label_selector", message, "name a label and its value")


def _action(action: Entry, path: str) -> Iterator[LoadProblem]:
    yield from _name(action, path)
    if action.get("api_call") is not None:
        yield from _api_call(action["api_call"], f"{path}.api_call")


def _when(entry: Entry, path: str) -> Iterator[LoadProblem]:
    if entry.get("when") is not None and is_blank(at(entry, "when", "expression")):
        yield error(f"{path}.when.expression", "expression is required", "write a CEL expression, or remove `when`")


def _either(entry: Entry, path: str, first: str, second: str, *, neither: str) -> Iterator[LoadProblem]:
    given: Sequence[str] = [name for name in (first, second) if not is_blank(entry.get(name))]
    if not given:
        yield error(path, neither, f"add {first} or {second}")
    elif len(given) == 2:
        yield error(path, f"'{first}' and '{second}' are mutually exclusive", f"keep {first} or {second}")
