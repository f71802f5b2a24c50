"""Turn a resource of a task into a work, and a work back into the object that its agent reported. Pure.

Each resource is one work with one manifest. The kit's effects know works only, so a task runs on every transport of the
kit: Maestro, a Kubernetes API, or one that is added later.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import yaml

from maestropy.adapter.decide import ownership
from maestropy.adapter.resource import Resource
from maestropy.adapter.tasks import states
from maestropy.adapter.tasks.load import literals
from maestropy.adapter.tasks.model import GENERATION_RULE, TaskResource
from maestropy.sdk.work import Work
from maestropy.untrusted import go_yaml, yaml_documents
from maestropy.untrusted.errors import InputRejected
from maestropy.wire.works import status

_EXPONENT = 1e21
"""Go writes larger numbers with an exponent."""


class Renderer(Protocol):
    """Renders templates, such as the variables of a pass."""

    def rendered(self, template: str) -> str:
        """Return the text of a template."""


class ManifestError(Exception):
    """A rendered manifest cannot be applied."""


def work_name(adapter: str, resource: TaskResource, resource_id: str) -> str:
    """Return the name of the work of a resource."""
    return f"{adapter}-{resource.name.replace('_', '-').lower()}-{resource_id}"


def work_of(task_resource: TaskResource, *, adapter: str, resource: Resource, variables: Renderer) -> Work:
    """Render a manifest and return its work, owned and with the generation of the manifest; raises ManifestError."""
    manifest = _manifest(task_resource, variables)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise ManifestError("the manifest has no metadata.name")
    annotation = (metadata.get("annotations") or {}).get(ownership.GENERATION)
    if annotation is None:
        raise ManifestError(f"missing {ownership.GENERATION} annotation")
    generation = states.generation_in(str(annotation))
    if generation is None:
        raise ManifestError(f"the annotation {ownership.GENERATION} is {annotation!r}, and must be a number above 0")
    work = Work(work_name(adapter, task_resource, resource.id)).add(manifest, feedback=dict(task_resource.feedback))
    if task_resource.propagation_policy == "Orphan":
        work = work.delete_option("Orphan")
    return ownership.with_ownership(work, adapter=adapter, resource=replace(resource, generation=generation))


def object_of(work: Work) -> dict[str, Any] | None:
    """Return the object of a work as its agent reported it; None while it reported none."""
    manifest = work.manifests[0] if work.manifests else None
    available = manifest.condition(status.AVAILABLE) if manifest else None
    if manifest is None or available is None or available.status != status.TRUE:
        return None
    reported = dict(manifest.feedback)
    generation = reported.pop(GENERATION_RULE, None)
    metadata: dict[str, Any] = {"name": manifest.name}
    if manifest.namespace:
        metadata["namespace"] = manifest.namespace
    if generation is not None:
        metadata["annotations"] = {ownership.GENERATION: str(generation)}
    for rule in [name for name in reported if name.startswith("metadata.")]:
        metadata[rule.removeprefix("metadata.")] = reported.pop(rule)
    desired = manifest.desired
    return {"apiVersion": desired.get("apiVersion"), "kind": desired.get("kind"), "metadata": metadata, **reported}


def generation_of(read_back: Mapping[str, Any] | None) -> int | None:
    """Return the generation of an object that was read back."""
    annotations = ((read_back or {}).get("metadata") or {}).get("annotations") or {}
    return states.generation_in(annotations.get(ownership.GENERATION))


def _manifest(task_resource: TaskResource, variables: Renderer) -> Mapping[str, Any]:
    if isinstance(task_resource.manifest, str):
        try:
            text = variables.rendered(task_resource.manifest)
            manifest = _as_written(yaml_documents.load(text, loader=go_yaml.GoYamlLoader))
        except (yaml.YAMLError, InputRejected) as error:
            raise ManifestError(f"the rendered manifest is not YAML: {' '.join(str(error).split())}") from error
    else:
        manifest = _rendered(task_resource.manifest, variables)
    kind = literals.kind_of(manifest)
    if kind != task_resource.kind:
        raise ManifestError(f"the rendered manifest is {kind}, and the task says {task_resource.kind}")
    assert isinstance(manifest, Mapping)
    return manifest


def _rendered(value: Any, variables: Renderer) -> Any:
    """Render the texts of a manifest; values stay texts, as YAML in quotes would."""
    if isinstance(value, str):
        return variables.rendered(value)
    if isinstance(value, list):
        return [_rendered(item, variables) for item in value]
    if isinstance(value, Mapping):
        return {variables.rendered(str(name)): _rendered(member, variables) for name, member in value.items()}
    return _number(value)


def _as_written(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    if isinstance(value, Mapping):
        # JSON has no other keys than texts.
        return {str(name) if type(name) is int else name: _as_written(member) for name, member in value.items()}
    return _number(value)


def _number(value: Any) -> Any:
    """Return a number as Go writes it in JSON: `1e3` is the float 1000 there, and is written without a point."""
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXPONENT
    return int(value) if is_whole else value
