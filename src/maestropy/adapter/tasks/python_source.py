"""Write a task as the Python source of an adapter of the kit. Pure.

The result has the task's fields, templates and CEL expressions, so that it behaves as the task does; each expression
can be replaced by a Python function later.
"""

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

from maestropy.adapter.tasks.language import criteria
from maestropy.adapter.tasks.load import routing
from maestropy.adapter.tasks.load.structure import Entry, entries

_WIDTH = 110
_SETTING = re.compile(r"\bconfig\.([A-Za-z0-9_.]+)")
_SECTIONS = (("params", "param"), ("preconditions", "precondition"), ("resources", "resource"))
_POST_SECTIONS = (("payloads", "payload"), ("post_actions", "post_action"))


def source(document: Entry, *, name: str, origin: str, deployment: Entry | None = None) -> str:
    """Return the source of an adapter for a task without load errors."""
    lines = [
        f'"""Adapter {name}, converted from the HyperFleet task {origin}.',
        "",
        "Texts in {{ }} are Go templates and expressions are CEL, as in the task. An expression may be replaced by a",
        'Python function of the variables: `lambda values: values["generation"] > 1`.',
        '"""',
        "",
        "from maestropy.adapter.tasks.task_adapter import TaskAdapter",
        "",
        *_constructor(name, document, deployment),
    ]
    post = document.get("post") or {}
    for section, method in _SECTIONS:
        lines += _calls(document, section, method)
    for section, method in _POST_SECTIONS:
        lines += _calls(post, section, method)
    return "\n".join([*lines, ""])


def notes(document: Entry) -> list[str]:
    """Return what a person should know about the converted adapter."""
    found = []
    for path, resource in entries(document, "resources"):
        if (resource.get("discovery") or {}).get("by_selectors"):
            found.append(f"{path}: an object is found by its work, so discovery.by_selectors is not used")
        if resource.get("recreate_on_change"):
            found.append(f"{path}: recreate_on_change is not carried out; objects are updated")
    for path, entry in [
        *entries(document, "preconditions"),
        *entries(document.get("post") or {}, "post_actions", within="post."),
    ]:
        if entry.get("log"):
            found.append(f"{path}: log is left out; the adapter logs every event itself")
    return found


def _constructor(name: str, document: Entry, deployment: Entry | None) -> Iterator[str]:
    used = {str(resource.get("transport")) for _, resource in entries(document, "resources")}
    declared = routing.transports(deployment)
    targets = {
        transport: str(declared[transport.strip().lower()]["target_cluster"])
        for transport in sorted(used)
        if declared.get(transport.strip().lower(), {}).get("target_cluster")
    }
    config = _read_settings(document, deployment or {})
    arguments = {**({"target_clusters": targets} if targets else {}), **({"config": config} if config else {})}
    line = (
        f"adapter = TaskAdapter({', '.join([_text(name), *(f'{key}={_inline(arguments[key])}' for key in arguments)])})"
    )
    if len(line) <= _WIDTH:
        yield line
        return
    yield "adapter = TaskAdapter("
    yield f"    {_text(name)},"
    for key, value in arguments.items():
        first, *rest = _written(value, "    ")
        yield f"    {key}={first}"
        yield from rest
    yield ")"


def _read_settings(document: Entry, deployment: Entry) -> dict[str, Any]:
    """Return the settings of the deployment file that the task reads; the others may be secret, and stay there."""
    text = "\n".join(_texts(document))
    paths = {match[1].rstrip(".") for match in _SETTING.finditer(text)}
    if "adapter.version" in text:
        paths.add("adapter.version")
    settings: dict[str, Any] = {}
    for path in sorted(paths):
        value = criteria.value_at(deployment, path)
        if value is None:
            continue
        *parents, last = path.split(".")
        members = settings
        for parent in parents:
            members = members.setdefault(parent, {})
        members[last] = value
    return settings


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for member in members:
        yield from _texts(member)


def _calls(parent: Entry, section: str, method: str) -> Iterator[str]:
    for _, entry in entries(parent, section):
        fields = {key: value for key, value in entry.items() if key not in ("name", "log")}
        yield ""
        yield from _call(method, str(entry["name"]), fields)


def _call(method: str, name: str, fields: Mapping[str, Any]) -> Iterator[str]:
    arguments = [f"{key}={_inline(value)}" for key, value in fields.items()]
    line = f"adapter.{method}({', '.join([_text(name), *arguments])})"
    if len(line) <= _WIDTH and "\n" not in line:
        yield line
        return
    assert not any(keyword.iskeyword(key) for key in fields)
    yield f"adapter.{method}("
    yield f"    {_text(name)},"
    for key, value in fields.items():
        first, *rest = _written(value, "    ")
        yield f"    {key}={first}"
        yield from rest
    yield ")"


def _written(value: Any, indent: str) -> list[str]:
    """Return the lines of a value with a comma at the end; the first has no indent."""
    inner = f"{indent}    "
    short = _inline(value)
    if len(short) + len(indent) <= _WIDTH - 20 and "\n" not in short:
        return [f"{short},"]
    if isinstance(value, Mapping):
        lines = ["{"]
        for key, member in value.items():
            first, *rest = _written(member, inner)
            lines += [f"{inner}{_text(str(key))}: {first}", *rest]
        return [*lines, f"{indent}}},"]
    if isinstance(value, list):
        lines = ["["]
        for item in value:
            first, *rest = _written(item, inner)
            lines += [f"{inner}{first}", *rest]
        return [*lines, f"{indent}],"]
    return [f"{_text(str(value))},"]


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(str(key))}: {_inline(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return repr(value)


def _text(value: str) -> str:
    """Return a text as a Python literal: several lines in triple quotes, others in double quotes where possible."""
    if "\n" in value and '"""' not in value and not value.endswith(('"', "\\")):
        is_raw = "\\" in value
        return f'{"r" if is_raw else ""}"""{value}"""'
    literal = repr(value)
    if literal.startswith("'") and '"' not in value and "\\" not in literal:
        return f'"{literal[1:-1]}"'
    return literal
