"""Lint an adapter, a work or a HyperFleet task before it runs on a fleet.

An adapter's function is pure, so it is called with sample resources and the desired state is checked. YAML documents
are parsed. No server is contacted. Every finding names the location, the problem and the remedy; an error would fail or
report a wrong status on a fleet, a warning should be reviewed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from maestropy.adapter.decide import failure, ownership
from maestropy.adapter.definition import Adapter
from maestropy.adapter.desired_state import DesiredState, NotReady, StatusReport
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource, from_event, parse
from maestropy.adapter.tasks.load import task_file
from maestropy.adapter.tasks.load.problems import LoadProblem
from maestropy.adapter.tasks.model import TaskResource
from maestropy.adapter.tasks.task_adapter import TaskAdapter
from maestropy.adapter.tooling import task_works
from maestropy.sdk._manifests import sources
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

SAMPLE_ID = "0198d0df-aa00-7d11-8c00-000000000001"

_WRONG_NAMES = {
    "statusFeedbacks": "statusFeedback",
    "manifestConfig": "manifestConfigs",
    "feedbackRule": "feedbackRules",
    "jsonPath": "jsonPaths",
    "resourceIdentifiers": "resourceIdentifier",
    "deleteOptions": "deleteOption",
    "updateStrategies": "updateStrategy",
}
"""Misspelt field names and the right ones."""

_TASK_RULES: tuple[tuple[str, str], ...] = (
    (r"\bmethod:\s*[\"']?POST\b.*", "a status is sent with PUT; POST is answered 405"),
    (r"type\s*==\s*[\"']Ready[\"']|\bconditionStatus\([^)]*[\"']Ready[\"']", "Ready is never true; use Reconciled"),
    (r"observed_generation:\s*[\"']\d+[\"']", "observed_generation is a number, not a string"),
    (
        r"when:.*!\s*adapter\.resourcesSkipped",
        "a status that is not reported makes HyperFleet send an event every few seconds",
    ),
)
"""Mistakes in a HyperFleet task that no other tool reports."""

_NO_STATUS = (
    "no post-action sends a status, so HyperFleet sends the event again and again; "
    "add one in post.post_actions: api_call with method PUT and a url that ends in /statuses"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One problem, its location and its remedy."""

    level: Literal["error", "warning"]
    rule: str
    location: str
    message: str

    def __str__(self) -> str:
        return f"{self.location}: {self.level}: {self.message} [{self.rule}]"


def adapter_findings(adapter: Adapter, *, samples: Sequence[Mapping[str, Any]] = ()) -> list[LintFinding]:
    """Call every handler of an adapter with sample resources; `samples` are resources as the API shows them."""
    if isinstance(adapter, TaskAdapter):
        problems = adapter.problems
        if any(problem.level == "error" for problem in problems):
            return _loader_findings(adapter.name, problems)
        calls = [action.api_call for action in adapter.task.post_actions if action.api_call is not None]
        return [
            *_loader_findings(adapter.name, problems),
            *_without_status(adapter.name, [(call.method, call.url) for call in calls]),
            *_task_works(adapter.name, adapter.task.resources, adapter=adapter.name),
        ]
    findings = [] if adapter.kinds else [_error("no-function", adapter.name, "no function: add @adapter.reconciles(…)")]
    for kind in adapter.kinds:
        samples_of_kind = [sample for sample in samples if sample.get("kind", kind) == kind] or [{}]
        for number, sample in enumerate(samples_of_kind, start=1):
            location = f"{adapter.name}/{kind}" + (f" sample {number}" if len(samples_of_kind) > 1 else "")
            findings += _handler_findings(adapter, kind, sample, location=location)
    return findings


def document_findings(path: Path) -> list[LintFinding]:
    """Check a work or a task in YAML."""
    location = str(path)
    try:
        text = files.read_text(path, most=files.MANIFEST_BYTES)
        task = _task_document(text)
        documents = sources.read(path) if task is None else [task]
    except (OSError, UnicodeDecodeError, Invalid, InputRejected) as error:
        return [_error("unreadable", location, str(error))]
    findings = [
        _error("task", f"{location}:{text.count(chr(10), 0, match.start()) + 1}", message)
        for pattern, message in _TASK_RULES
        for match in re.finditer(pattern, text)
    ]
    for document in documents:
        findings += [
            _error("wrong-name", location, f"{at}: a work has no field {name!r}; it is called {right!r}")
            for at, name, right in _misnamed(document, "")
        ]
        if document.get("kind") == "ManifestWork":
            findings += _work_document(document, location=location)
        elif task_file.is_task(document):
            read = task_file.read(path)
            findings += _loader_findings(location, read.problems)
            findings += _without_status(location, task_works.post_calls(document))
            findings += _task_works(location, task_works.of_document(read.document), adapter=path.stem)
        elif task_file.is_deployment(document):
            findings += _loader_findings(location, task_file.deployment_problems(path))
    return findings


def _task_document(text: str) -> dict[str, Any] | None:
    """Return the task or deployment file that a text is: its own loader reports what is wrong with it.

    The rules of manifests do not hold for it: HyperFleet reads its values with another library.
    """
    try:
        document = yaml_documents.load(text, loader=yaml_documents.KubernetesLoader)
    except (yaml.YAMLError, InputRejected):
        return None
    is_task = task_file.is_task(document) or task_file.is_deployment(document)
    return document if is_task else None


def _without_status(location: str, calls: Iterable[tuple[str, str]]) -> list[LintFinding]:
    return [] if task_works.reports_status(calls) else [_error("task", location, _NO_STATUS)]


def _task_works(location: str, resources: Iterable[TaskResource], *, adapter: str) -> list[LintFinding]:
    return [
        _error("invalid", f"{location}: resource {name}", reason)
        for name, reason in task_works.problems(resources, adapter=adapter)
    ]


def _loader_findings(location: str, problems: Sequence[LoadProblem]) -> list[LintFinding]:
    """Return what HyperFleet's loader would report about a task or a deployment file."""
    return [
        _error("loader", location, str(problem))
        if problem.level == "error"
        else _warning("loader", location, str(problem))
        for problem in problems
    ]


def _handler_findings(adapter: Adapter, kind: str, sample: Mapping[str, Any], *, location: str) -> list[LintFinding]:
    event = Event(
        resource_id=str(sample.get("id") or SAMPLE_ID),
        kind=kind,
        generation=1,
        owner_id="" if kind == "Cluster" else "0198d0df-aa00-7d11-8c00-000000000002",
        data={"id": SAMPLE_ID, "kind": kind, "generation": 1},
    )
    try:
        resource = parse(sample, event) if sample else from_event(event)
    except Invalid as error:
        return [_error("sample", location, error.reason)]
    handler = adapter.handler(kind)
    try:
        first, second = (failure.call(handler, event, resource) for _ in range(2))
    except Exception as error:  # noqa: BLE001 - an author's code may raise anything
        cause = failure.describe(error)
        if not sample:
            advice = "give --sample FILE with a real resource, so that the desired state can be checked"
            return [_warning("sample", location, f"fails for a resource without a spec ({cause}); {advice}")]
        return [_error("fails", location, f"fails for the sample: {cause}")]
    if isinstance(first, (NotReady, StatusReport)):
        return []
    try:
        desired, again = (_with_ownership(result, adapter, resource) for result in (first, second))
    except Exception as error:  # noqa: BLE001 - an author's code may return anything
        return [_error("unusable", location, f"the result cannot be used: {error}")]
    findings = [finding for work in desired for finding in _work(work, location=location, resource=resource)]
    names = [work.name for work in desired]
    if len(set(names)) != len(names):
        findings.append(_error("names", location, f"two works have one name: {', '.join(names)}"))
    if [work.annotations[ownership.DIGEST] for work in desired] != [
        work.annotations[ownership.DIGEST] for work in again
    ]:
        message = (
            "returns another desired state at each call; leave out times and random values, or it updates for ever"
        )
        findings.append(_error("not-deterministic", location, message))
    if not isinstance(first, DesiredState) or first.read is None:
        message = "reads no feedback: available means only that the objects exist; give read=…"
        findings.append(_warning("no-read", location, message))
    return findings


def _with_ownership(result: Any, adapter: Adapter, resource: Resource) -> list[Work]:
    desired_state = result if isinstance(result, DesiredState) else DesiredState(result)
    return [ownership.with_ownership(work, adapter=adapter.name, resource=resource) for work in desired_state.all_works]


def _work(work: Work, *, location: str, resource: Resource) -> Iterator[LintFinding]:
    at = f"{location}: work {work.name}"
    try:
        work.validate()
    except Invalid as error:
        yield _error("invalid", at, error.reason)
    if resource.id not in work.name:
        yield _warning("names", at, f"the name does not contain the resource's id: two {resource.kind}s would share it")
    if not work.manifest_work.manifests:
        yield _error("empty", at, "no manifest: add one")
    configs = work.manifest_work.spec.get("manifestConfigs") or []
    yield from _configs(configs, work.manifest_work.manifests, at=at)
    if not any(config.get("feedbackRules") for config in configs):
        yield _warning(
            "no-feedback", at, 'no feedback rule: no value is reported back; add(…, feedback={"status": ".status"})'
        )


def _configs(
    configs: Sequence[Mapping[str, Any]], manifests: Sequence[Mapping[str, Any]], *, at: str
) -> Iterator[LintFinding]:
    expected = [sources.identifier(manifest) for manifest in manifests]
    for config in configs:
        identifier = config.get("resourceIdentifier") or {}
        matching = [candidate for candidate in expected if _key(candidate) == _key(identifier)]
        if not matching:
            yield _error(
                "no-manifest", at, f"manifestConfigs names {_shown(identifier)}, and no manifest is that object"
            )
        elif identifier.get("resource") != matching[0]["resource"]:
            message = (
                f"resourceIdentifier.resource is {identifier.get('resource')!r}, and the plural is most likely "
                f"{matching[0]['resource']!r}; with the wrong one no feedback value is ever reported"
            )
            yield _error("singular", at, message)


def _work_document(document: Mapping[str, Any], *, location: str) -> Iterator[LintFinding]:
    spec = document.get("spec") or {}
    manifests = (spec.get("workload") or {}).get("manifests") or []
    metadata = document.get("metadata") or {}
    for kind, object_metadata in (
        ("the work", metadata),
        *((str(manifest.get("kind")), manifest.get("metadata") or {}) for manifest in manifests),
    ):
        generation = (object_metadata.get("annotations") or {}).get(ownership.GENERATION)
        if generation is None:
            yield _error("generation", location, f"{kind} has no annotation {ownership.GENERATION}")
        elif not isinstance(generation, str):
            yield _error("generation", location, f"{ownership.GENERATION} of {kind} is not a string; put it in quotes")
    configs = spec.get("manifestConfigs") or []
    yield from _configs(configs, manifests, at=location)
    if not any(config.get("feedbackRules") for config in configs):
        yield _warning("no-feedback", location, "no feedback rule: no value is reported back")


def _misnamed(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name in _WRONG_NAMES:
                yield path or "top", str(name), _WRONG_NAMES[str(name)]
            if name != "manifests":
                yield from _misnamed(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _misnamed(inner, f"{path}[{index}]")


def _key(identifier: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(identifier.get(name) or "") for name in ("group", "name", "namespace"))


def _shown(identifier: Mapping[str, Any]) -> str:
    return (
        "/".join(str(identifier[name]) for name in ("group", "resource", "namespace", "name") if identifier.get(name))
        or "nothing"
    )


def _error(rule: str, location: str, message: str) -> LintFinding:
    return LintFinding(level="error", rule=rule, location=location, message=message)


def _warning(rule: str, location: str, message: str) -> LintFinding:
    return LintFinding(level="warning", rule=rule, location=location, message=message)
