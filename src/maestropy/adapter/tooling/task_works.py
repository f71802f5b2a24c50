"""Check the works of a task before it runs, as a run would check them. Pure.

What a template writes is not known before an event: it counts as `1`, which every field accepts. So all that is found
stands in the literal parts of a manifest. A text with conditions or loops is not checked.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from maestropy.adapter.resource import Resource
from maestropy.adapter.tasks import objects
from maestropy.adapter.tasks.load import literals
from maestropy.adapter.tasks.load.structure import at, entries
from maestropy.adapter.tasks.model import TaskResource
from maestropy.sdk.errors import Invalid

_SAMPLE: Final = Resource(id="1", kind="Cluster", generation=1)
_VALUE: Final = "1"
# Linear in the length of the text: white space is tried from its beginning only, and no action holds another.
_ACTION: Final = re.compile(r"(?:(?<!\s)\s+(?=\{\{-))?\{\{(?:(?!\{\{|\}\}).)*?(?:-\}\}\s*|\}\})", re.DOTALL)
_CONTROL: Final = re.compile(r"\{\{-?\s*(?:if|else|end|range|with|define|block|template|/\*)")


def of_document(document: Mapping[str, Any]) -> Iterator[TaskResource]:
    """Yield the resources of a task document whose kinds can be read; what is wrong with others the loader reports."""
    for _, entry in entries(document, "resources"):
        name, manifest = entry.get("name"), entry.get("manifest")
        kind = literals.kind_of(manifest)
        if isinstance(name, str) and isinstance(kind, literals.ObjectKind):
            yield TaskResource(name=name, manifest=manifest, kind=kind)


def post_calls(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield method and URL of every request that a post-action of a task document makes."""
    post = document.get("post")
    for _, entry in entries(post if isinstance(post, Mapping) else {}, "post_actions"):
        yield str(at(entry, "api_call", "method") or ""), str(at(entry, "api_call", "url") or "")


def reports_status(calls: Iterable[tuple[str, str]]) -> bool:
    """Return whether one of the requests may send a status; a URL that ends in a variable may be any."""
    # POST is a mistake of its own, with a finding of its own.
    return any(
        method in ("PUT", "POST") and ("/statuses" in url or url.rstrip().endswith("}}")) for method, url in calls
    )


def problems(resources: Iterable[TaskResource], *, adapter: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each resource that a run would reject, and the reason in the words of the run."""
    for resource in resources:
        if isinstance(resource.manifest, str) and _CONTROL.search(resource.manifest):
            continue
        try:
            objects.work_of(resource, adapter=adapter, resource=_SAMPLE, variables=_Placeholders()).validate()
        except objects.ManifestError as error:
            yield resource.name, str(error)
        except Invalid as error:
            yield resource.name, error.reason


class _Placeholders:
    """Renders templates with a value for everything."""

    def rendered(self, template: str) -> str:
        """Return the text with `1` in place of what templates write."""
        return _VALUE if _CONTROL.search(template) else _ACTION.sub(_VALUE, template)
