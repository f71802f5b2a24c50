"""Read HyperFleet task and deployment files, with the files they refer to, and report every problem of them.

`read` never raises for what is wrong inside of a file: problems are values, so that lint can list all of them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from maestropy.adapter.tasks.load import deployment, fields, routing, semantics, structure
from maestropy.adapter.tasks.load.problems import LoadProblem, error, warning
from maestropy.adapter.tasks.load.structure import Entry, at, entries
from maestropy.untrusted import files, go_yaml, yaml_documents
from maestropy.untrusted.errors import InputRejected

DEPLOYMENT_NAMES = ("adapter-config.yaml", "adapterconfig.yaml")
"""Where the deployment file of a task is looked for, in the task's folder."""
_SECTIONS = ("params", "preconditions", "resources", "post")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFile:
    """A task as its file has it, and what is wrong with it."""

    document: Entry
    """The task with the files it refers to in their places; empty if the file is no YAML."""
    problems: tuple[LoadProblem, ...]
    deployment: Entry = field(default_factory=dict)

    @property
    def errors(self) -> tuple[LoadProblem, ...]:
        """The problems that keep it from being loaded."""
        return tuple(problem for problem in self.problems if problem.level == "error")


def is_task(document: Any) -> bool:
    """Whether a YAML document is a task file; older ones, with `kind` and `spec`, are not read any more."""
    if not isinstance(document, Mapping) or "kind" in document:
        return False
    return "schema_version" in document or any(isinstance(document.get(name), list) for name in _SECTIONS)


def is_deployment(document: Any) -> bool:
    """Whether a YAML document is a deployment file."""
    return isinstance(document, Mapping) and "kind" not in document and {"adapter", "clients"} <= set(document)


def read(path: Path, *, deployment_path: Path | None = None) -> TaskFile:
    """Read a task; the deployment file is the given one, or the one beside the task."""
    beside = (path.with_name(name) for name in DEPLOYMENT_NAMES)
    config_path = deployment_path or next((name for name in beside if name.is_file()), None)
    found: list[LoadProblem] = []
    document = _parsed(path, found, loader=_TaskLoader)
    config = _parsed(config_path, found) if config_path else None
    if not isinstance(document, Mapping):
        return TaskFile(document={}, problems=tuple(found or [error("", "the file holds no task", "add its fields")]))
    complete = dict(document)
    found += _inlined(complete, path.parent)
    found += check(complete, deployment_file=config if isinstance(config, Mapping) else None, is_set=_is_set)
    return TaskFile(document=complete, problems=tuple(found), deployment=config if isinstance(config, Mapping) else {})


def check(
    document: Entry, *, deployment_file: Entry | None = None, is_set: Callable[[str], bool] = lambda _: True
) -> list[LoadProblem]:
    """Return all problems of a task that has no references to files any more."""
    if "schema_version" not in document:
        return [*_unversioned(document), *routing.problems(document, deployment=deployment_file)]
    return [
        *fields.TASK(document, ""),
        *structure.problems(document, is_set=is_set),
        *semantics.problems(document),
        *routing.problems(document, deployment=deployment_file),
    ]


def deployment_problems(path: Path) -> list[LoadProblem]:
    """Return all problems of a deployment file."""
    found: list[LoadProblem] = []
    document = _parsed(path, found)
    return [*found, *(deployment.problems(document) if isinstance(document, Mapping) else ())]


def _unversioned(document: Entry) -> Iterator[LoadProblem]:
    """Yield what is enforced for tasks without a version too: reserved names, and a reason to add the version."""
    yield warning(
        "schema_version",
        "a task without schema_version is read by the legacy rules, which HyperFleet will remove",
        f'add schema_version: "{routing.VERSION}"',
    )
    yield from (problem for problem in semantics.problems(document) if "reserved variable name" in problem.message)


def _is_set(variable: str) -> bool:
    return bool(os.environ.get(variable))


class _FileLoader(go_yaml.GoYamlLoader):
    """YAML of a file whose repeated keys are problems of their own."""

    keys_are_checked = False


class _TaskLoader(_FileLoader):
    """YAML of a task: each field is read as its type."""

    def construct_document(self, node: yaml.Node) -> Any:
        """Return the task."""
        return super().construct_document(fields.typed(_joined_sections(node), fields.TASK))


def _joined_sections(node: yaml.Node) -> yaml.Node:
    """Return a task whose repeated lists are one, so that entries of the first are not reported as missing."""
    if not isinstance(node, yaml.MappingNode):
        return node
    members: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        _, before = members.get(str(key.value), (key, None))
        is_list = isinstance(value, yaml.SequenceNode) and isinstance(before, yaml.SequenceNode)
        entries_of_both = [*before.value, *value.value] if is_list and before else []
        joined = yaml.SequenceNode(value.tag, entries_of_both, value.start_mark, value.end_mark) if is_list else value
        members[str(key.value)] = (key, joined)
    return yaml.MappingNode(node.tag, list(members.values()), node.start_mark, node.end_mark)


def _parsed(path: Path, found: list[LoadProblem], *, loader: type[_FileLoader] = _FileLoader) -> Any:
    try:
        text = files.read_text(path, most=files.MANIFEST_BYTES)
        value = yaml_documents.load(text, loader=loader)
        # The other problems are reported too; of a value that is there twice, for the last one.
        found += fields.repeated_fields(yaml.compose(text, Loader=loader))
    except OSError as problem:
        found.append(error("", f"{path} cannot be read: {problem.strerror}", "check the name and its permissions"))
    except (UnicodeDecodeError, InputRejected, yaml.YAMLError) as problem:
        reason = " ".join(str(problem).split()).replace('"<unicode string>"', str(path))
        found.append(error("", f"{path.name} is not YAML that can be read: {reason}", "correct it there"))
    else:
        return value
    return None


def _inlined(document: dict[str, Any], folder: Path) -> list[LoadProblem]:
    """Put the files that a task refers to in their places."""
    found: list[LoadProblem] = []
    resources: list[Any] = list(document.get("resources") or ()) if isinstance(document.get("resources"), list) else []
    for index, resource in enumerate(resources):
        reference = at(resource, "manifest", "ref") if isinstance(resource, Mapping) else None
        if isinstance(reference, str) and reference:
            text = _referenced(reference, folder, f"resources[{index}].manifest.ref", found)
            resources[index] = {**resource, "manifest": text} if text is not None else resource
    if resources:
        document["resources"] = resources
    post = document.get("post")
    if isinstance(post, Mapping):
        document["post"] = {**post, "payloads": _payloads(post, folder, found)} if post.get("payloads") else post
    return found


def _payloads(post: Entry, folder: Path, found: list[LoadProblem]) -> Any:
    payloads = post["payloads"]
    if not isinstance(payloads, list):
        return payloads
    complete = list(payloads)
    for path, payload in entries(post, "payloads", within="post."):
        reference = payload.get("build_ref")
        if isinstance(reference, str) and reference and payload.get("build") is None:
            text = _referenced(reference, folder, f"{path}.build_ref", found)
            if text is not None:
                index = payloads.index(payload)
                rest = {name: value for name, value in payload.items() if name != "build_ref"}
                complete[index] = {**rest, "build": _built(text, reference, f"{path}.build_ref", found)}
    return complete


def _built(text: str, reference: str, path: str, found: list[LoadProblem]) -> Any:
    try:
        return yaml_documents.load(text, loader=go_yaml.GoYamlLoader)
    except (InputRejected, yaml.YAMLError) as problem:
        reason = " ".join(str(problem).split())
        found.append(error(path, f'failed to parse YAML file "{reference}": {reason}', "correct it there"))
        return {}


def _referenced(reference: str, folder: Path, path: str, found: list[LoadProblem]) -> str | None:
    resolved = Path(reference) if reference.startswith("/") else folder / reference
    if not resolved.exists():
        message = f'referenced file "{reference}" does not exist (resolved to "{resolved}")'
        found.append(error(path, message, "paths are relative to the task's folder"))
    elif resolved.is_dir():
        message = f'referenced path "{reference}" is a directory, not a file'
        found.append(error(path, message, "name a file in it"))
    else:
        try:
            return files.read_text(resolved, most=files.MANIFEST_BYTES)
        except (OSError, UnicodeDecodeError, InputRejected) as problem:
            found.append(error(path, f'error checking file "{reference}": {problem}', "make it readable text"))
    return None
