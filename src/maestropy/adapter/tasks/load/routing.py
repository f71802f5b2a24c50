"""Check where the resources of a task go: the schema version, their transports, and literal apiVersion and kind. Pure.

These checks run in HyperFleet even where semantic validation is switched off.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maestropy.adapter.tasks.load import literals, semantics
from maestropy.adapter.tasks.load.problems import LoadProblem, error, warning
from maestropy.adapter.tasks.load.structure import Entry, at, entries, is_blank

VERSION = "2.0"
LOCAL = "kubernetes"
"""The transport of a resource that names none: the Kubernetes API the adapter may use itself."""
REMOTE = "remote"


def problems(task: Entry, *, deployment: Entry | None) -> Iterator[LoadProblem]:
    """Yield the problems of versions and routes; without a deployment file, transports cannot be checked."""
    yield from _version(task)
    version = task.get("schema_version")
    for path, resource in entries(task, "resources"):
        yield from _shape(resource, path, is_versioned=version == VERSION, has_version="schema_version" in task)
        yield from _manifest(resource, path)
        if isinstance(resource.get("transport"), str) and not is_blank(resource["transport"]):
            yield from _route(task, resource, path=path, deployment=deployment)


def transports(deployment: Entry | None) -> dict[str, Entry]:
    """Return the transports of a deployment file by their names in lower case."""
    declared = (deployment or {}).get("transports")
    declared = declared if isinstance(declared, Mapping) else {}
    return {str(name).strip().lower(): entry for name, entry in declared.items() if isinstance(entry, Mapping)}


def _version(task: Entry) -> Iterator[LoadProblem]:
    remedy = f'write schema_version: "{VERSION}", in quotes'
    if "schema_version" not in task:
        return
    version = task["schema_version"]
    if not isinstance(version, str):
        yield error("schema_version", f'schema_version must be a string containing "{VERSION}"', remedy)
    elif not version:
        yield error("schema_version", f'schema_version must be "{VERSION}"', remedy)
    elif version != VERSION:
        yield error("schema_version", f'schema_version "{version}" is unsupported; use "{VERSION}"', remedy)


def _shape(resource: Entry, path: str, *, is_versioned: bool, has_version: bool) -> Iterator[LoadProblem]:
    transport = resource.get("transport")
    old = "this is a v1 configuration shape; v2 resources name a transport and use plain live resources"
    if "transport" in resource and (transport is None or is_blank(transport)):
        yield error(f"{path}.transport", "must name a transport", "name one, or leave the field out for the local one")
    elif isinstance(transport, str) and not has_version:
        message = f'schema_version is required for named transport references; use "{VERSION}"'
        yield error(f"{path}.transport", message, f'add schema_version: "{VERSION}" to the task')
    if not is_versioned:
        return
    if isinstance(transport, Mapping):
        remedy = "leave transport out for the local cluster, or name a transport of the deployment file"
        yield error(f"{path}.transport", old, remedy)
    if "nested_discoveries" in resource:
        remedy = "make each object a resource of its own, and read its own status"
        yield error(f"{path}.nested_discoveries", old, remedy)


def _manifest(resource: Entry, path: str) -> Iterator[LoadProblem]:
    manifest = resource.get("manifest")
    if manifest is None:
        yield error(f"{path}.manifest", "manifest is required", "give an object, a text, or {ref: FILE}")
    elif isinstance(manifest, Mapping) and "ref" in manifest:
        if is_blank(manifest["ref"]):
            yield error(f"{path}.manifest.ref", "manifest ref cannot be empty", "name a file")
    else:
        kind = literals.kind_of(manifest)
        if isinstance(kind, literals.NotLiteral):
            remedy = "write it out: objects are found by it before templates are rendered"
            yield error(f"{path}.manifest", kind.reason, remedy)


def _route(task: Entry, resource: Entry, *, path: str, deployment: Entry | None) -> Iterator[LoadProblem]:
    name = str(resource["transport"])
    declared = transports(deployment)
    definition = declared.get(name.strip().lower())
    if definition is None:
        if name.strip().lower() == LOCAL:
            return
        if deployment is None:
            message = f'transport "{name}" is not checked: there is no deployment file'
            yield warning(f"{path}.transport", message, "put adapter-config.yaml beside the task")
            return
        available = " ".join(sorted({*declared, LOCAL}))
        message = f'references unknown transport "{name}"; available: [{available}]'
        yield error(f"{path}.transport", message, "declare it under transports of the deployment file")
    elif definition.get("type") == REMOTE:
        yield from _remote(task, resource, path=path, definition=definition)


def _remote(task: Entry, resource: Entry, *, path: str, definition: Entry) -> Iterator[LoadProblem]:
    kind = literals.kind_of(resource.get("manifest"))
    plurals = definition.get("resource_plurals")
    known = {str(key).lower() for key in plurals} if isinstance(plurals, Mapping) else set()
    name = resource["transport"]
    if isinstance(kind, literals.ObjectKind) and str(kind).lower() not in known:
        message = f'manifest GVK {kind} has no resource_plurals mapping in transport "{name}"'
        yield error(path, message, f'add "{kind}": PLURAL to the transport')
    if at(resource, "lifecycle", "delete") is not None and is_blank(at(resource, "discovery", "by_name")):
        message = "selector-based lifecycle deletion is unsupported for remote transport; use discovery.by_name"
        yield error(f"{path}.lifecycle.delete", message, "a selector does not say which object to delete")
    if resource.get("recreate_on_change"):
        message = "recreate_on_change is unsupported for remote transport"
        yield error(f"{path}.recreate_on_change", message, "remove it")
    target: Any = definition.get("target_cluster")
    for variable in semantics.undefined(target, semantics.variables_before_resources(task)):
        message = f'transport "{name}" target_cluster uses undefined variable "{variable}"'
        yield error(path, message, "add it to params")
