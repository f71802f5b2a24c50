"""Check what a task means: reserved names, template variables, CEL, operator values and lifecycle gates. Pure.

HyperFleet's loader collects these under `validation failed with N error(s)`.
"""

import re
from collections.abc import Iterator, Mapping, Set
from typing import Any

import yaml

from maestropy.adapter.tasks.language import expressions, go_template
from maestropy.adapter.tasks.language.go_functions import TemplateError
from maestropy.adapter.tasks.load.fields import joined
from maestropy.adapter.tasks.load.problems import LoadProblem, error, warning
from maestropy.adapter.tasks.load.structure import POLICIES, Entry, api_calls, at, entries, is_blank

RESERVED = ("adapter", "config", "env", "event", "resources", "resource_states")
BUILT_IN = frozenset(("adapter", "config", "env", "event"))
MANDATORY = ("Available", "Applied", "Health")
"""The conditions without which the API rejects a status."""
_VARIABLE = re.compile(r"\{\{\s*\.([a-zA-Z_][a-zA-Z0-9_.]*)\s*(?:\|[^}]*)?\}\}")


def problems(task: Entry) -> Iterator[LoadProblem]:
    """Yield the semantic problems of a task."""
    yield from _reserved_names(task)
    yield from _deprecated_calls(task)
    yield from _condition_values(task)
    yield from _templates(task)
    for path, expression in cel_expressions(task):
        problem = expressions.parse_problem(expression)
        if problem:
            yield error(path, f"CEL parse error: {problem}", "check parentheses, quotes and operators")
    for path, resource in entries(task, "resources"):
        yield from _lifecycle(resource, path)
    yield from _statuses(task)


def variables_before_resources(task: Entry) -> set[str]:
    """Return the names that exist when `target_cluster` is rendered."""
    return {*BUILT_IN, *_names(task, "params"), *_captured(task)}


def undefined(template: Any, names: Set[str]) -> list[str]:
    """Return the variables of a template that nothing defines."""
    found = _VARIABLE.findall(template) if isinstance(template, str) else []
    return [name for name in found if name.partition(".")[0] not in names]


def cel_expressions(task: Entry) -> Iterator[tuple[str, str]]:
    """Yield every CEL expression of a task with its path."""
    for path, param in entries(task, "params"):
        yield from _cel(f"{path}.source.expression", at(param, "source", "expression"))
    for path, precondition in entries(task, "preconditions"):
        yield from _cel(f"{path}.expression", precondition.get("expression"))
        for where, capture in entries(precondition, "capture", within=f"{path}."):
            yield from _cel(f"{where}.expression", capture.get("expression"))
    for path, resource in entries(task, "resources"):
        for moment in ("create", "delete"):
            where = f"{path}.lifecycle.{moment}.when.expression"
            yield from _cel(where, at(resource, "lifecycle", moment, "when", "expression"))
    post = task.get("post") or {}
    for path, payload in entries(post, "payloads", within="post."):
        yield from _cel(f"{path}.when.expression", at(payload, "when", "expression"))
        yield from _built(payload.get("build"), f"{path}.build")
    for path, action in entries(post, "post_actions", within="post."):
        yield from _cel(f"{path}.when.expression", at(action, "when", "expression"))


def _cel(path: str, expression: Any) -> Iterator[tuple[str, str]]:
    if isinstance(expression, str) and expression.strip():
        yield path, expression


def _built(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, member in value.items():
            if name == "expression":
                yield from _cel(joined(path, "expression"), member)
            yield from _built(member, joined(path, str(name)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _built(item, f"{path}[{index}]")


def _names(task: Entry, section: str) -> Iterator[str]:
    for _, entry in entries(task, section):
        if isinstance(entry.get("name"), str):
            yield entry["name"]


def _captured(task: Entry) -> Iterator[str]:
    for path, precondition in entries(task, "preconditions"):
        if precondition.get("api_call") is not None:
            yield str(precondition.get("name"))
            for _, capture in entries(precondition, "capture", within=f"{path}."):
                yield str(capture.get("name"))


def _reserved_names(task: Entry) -> Iterator[LoadProblem]:
    named = [*entries(task, "params"), *entries(task.get("post") or {}, "payloads", within="post.")]
    for path, precondition in entries(task, "preconditions"):
        if precondition.get("api_call") is not None:
            named += [(path, precondition), *entries(precondition, "capture", within=f"{path}.")]
    for path, entry in named:
        if entry.get("name") in RESERVED:
            message = f'"{entry["name"]}" is a reserved variable name (reserved: {", ".join(RESERVED)})'
            yield error(f"{path}.name", message, "rename it, and every use of it")


def _deprecated_calls(task: Entry) -> Iterator[LoadProblem]:
    for path, precondition in entries(task, "preconditions"):
        if precondition.get("api_call") is not None:
            remedy = "move it to a param with source.api_call"
            yield warning(f"{path}.api_call", "DEPRECATED: a precondition uses api_call directly", remedy)
    for path, param in entries(task, "params"):
        file = at(param, "source", "file", "path")
        if isinstance(file, str) and file and not file.startswith("/"):
            message = f'file source path "{file}" is not absolute'
            yield warning(f"{path}.source.file.path", message, "use the absolute path of the mounted volume")


def _condition_values(task: Entry) -> Iterator[LoadProblem]:
    for path, precondition in entries(task, "preconditions"):
        for where, condition in entries(precondition, "conditions", within=f"{path}."):
            operator = condition.get("operator")
            value = condition.get("value") if condition.get("value") is not None else condition.get("values")
            if operator == "exists" and value is not None:
                yield error(where, 'value/values should not be set for operator "exists"', "remove the value")
            elif operator in ("in", "notIn") and value is not None and not isinstance(value, list):
                yield error(where, f'value must be a list for operator "{operator}"', "write it as a YAML list")
            elif operator != "exists" and value is None and not is_blank(operator):
                yield error(where, f'value is required for operator "{operator}"', "add a value")


def _templates(task: Entry) -> Iterator[LoadProblem]:
    known = {*variables_before_resources(task), *_names(task.get("post") or {}, "payloads")}
    earlier = set(BUILT_IN)
    for path, param in entries(task, "params"):
        # A param is rendered with those before it only.
        yield from _call_templates(at(param, "source", "api_call"), f"{path}.source.api_call", earlier)
        earlier.add(str(param.get("name")))
    for path, call in api_calls(task):
        if not path.startswith("params"):
            yield from _call_templates(call, path, known)
    for path, resource in entries(task, "resources"):
        yield from _manifest_templates(resource.get("manifest"), f"{path}.manifest", known)
        yield from _texts(resource.get("discovery"), f"{path}.discovery", known)
    for path, payload in entries(task.get("post") or {}, "payloads", within="post."):
        yield from _texts(payload.get("build"), f"{path}.build", known)


def _manifest_templates(manifest: Any, path: str, names: Set[str]) -> Iterator[LoadProblem]:
    text = manifest if isinstance(manifest, str) else yaml.safe_dump(manifest, width=10**6)
    yield from _template(text, path, names)


def _call_templates(call: Any, path: str, names: Set[str]) -> Iterator[LoadProblem]:
    if isinstance(call, Mapping):
        for name in ("url", "body"):
            yield from _template(call.get(name), f"{path}.{name}", names)
        for where, header in entries(call, "headers", within=f"{path}."):
            yield from _template(header.get("value"), f"{where}.value", names)


def _texts(value: Any, path: str, names: Set[str]) -> Iterator[LoadProblem]:
    """Check every text of a value, but CEL."""
    if isinstance(value, str):
        yield from _template(value, path, names)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]", names)
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if name != "expression":
                yield from _texts(member, joined(path, str(name)), names)


def _template(template: Any, path: str, names: Set[str]) -> Iterator[LoadProblem]:
    if not isinstance(template, str):
        return
    try:
        go_template.check(template)
    except TemplateError as problem:
        yield error(path, f"template: {problem}", "check the text between {{ and }}")
    for name in undefined(template, names):
        yield error(path, f'undefined template variable "{name}"', "add it to params, or check its spelling")


def _lifecycle(resource: Entry, path: str) -> Iterator[LoadProblem]:
    create, delete = at(resource, "lifecycle", "create"), at(resource, "lifecycle", "delete")
    where = f"{path}.lifecycle"
    if isinstance(create, Mapping) and is_blank(at(create, "when", "expression")):
        message = "lifecycle.create.when.expression is required when lifecycle.create is configured"
        yield error(f"{where}.create.when.expression", message, "write when it may be created, or remove create")
    if not isinstance(delete, Mapping):
        return
    if is_blank(at(delete, "when", "expression")):
        message = "lifecycle.delete.when.expression is required: without it the resource will never be deleted"
        yield error(f"{where}.delete.when.expression", message, "the usual one is `is_deleting`")
    policy = delete.get("propagationPolicy")
    if not is_blank(policy) and policy not in POLICIES:
        message = f'invalid propagationPolicy "{policy}": must be one of {", ".join(POLICIES)}'
        yield error(f"{where}.delete.propagationPolicy", message, "Background is the default")


def _statuses(task: Entry) -> Iterator[LoadProblem]:
    """Warn about payloads that the API would reject; HyperFleet's loader does not look at them."""
    for path, payload in entries(task.get("post") or {}, "payloads", within="post."):
        build = payload.get("build")
        if not isinstance(build, Mapping) or not isinstance(build.get("conditions"), list):
            continue
        reported = [entry.get("type") for _, entry in entries(build, "conditions")]
        missing = [kind for kind in MANDATORY if kind not in reported]
        if missing and all(isinstance(kind, str) for kind in reported):
            message = f"a status without {', '.join(missing)} is rejected by the API (400)"
            yield warning(f"{path}.build.conditions", message, "report Available, Applied and Health")
        if isinstance(build.get("observed_generation"), str):
            message = "a text, and the API expects a number"
            remedy = "write {expression: generation}: a template always gives text"
            yield warning(f"{path}.build.observed_generation", message, remedy)
