"""What is wrong with an adapter, before a fleet finds out?

An adapter's function is pure, so it can be asked: it is called with sample resources, and what it wants is looked at.
Documents in YAML, works or HyperFleet tasks, are read. Nothing is contacted. Every finding says where, what and how to
mend it; an error would fail or lie on a fleet, a warning is worth a look.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from maestropy.adapter import stamping
from maestropy.adapter.definition import Adapter
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource, known_from, parse
from maestropy.adapter.wish import Hold, Reading, Wish
from maestropy.sdk import manifests
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work

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
"""Names that look right beside those that are."""

_TASK_RULES: tuple[tuple[str, str], ...] = (
    (r"\bmethod:\s*[\"']?POST\b.*", "statuses are PUT; POST is answered 405"),
    (r"type\s*==\s*[\"']Ready[\"']|\bconditionStatus\([^)]*[\"']Ready[\"']", "Ready is never true; ask for Reconciled"),
    (r"observed_generation:\s*[\"']\d+[\"']", "observed_generation is a number, not a text"),
    (r"when:.*!\s*adapter\.resourcesSkipped", "a report that is held back makes HyperFleet ask every few seconds"),
)
"""What a HyperFleet task in YAML gets wrong without anybody saying so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to mend."""

    level: Literal["error", "warning"]
    rule: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.level}: {self.message} [{self.rule}]"


def adapter_findings(adapter: Adapter, *, samples: Sequence[Mapping[str, Any]] = ()) -> list[Finding]:
    """Ask every function of an adapter for sample resources; `samples` are resources as the API shows them."""
    found = [] if adapter.kinds else [_error("no-function", adapter.name, "no function: add @adapter.reconciles(…)")]
    for kind in adapter.kinds:
        mine = [each for each in samples if each.get("kind", kind) == kind] or [{}]
        for number, sample in enumerate(mine, start=1):
            where = f"{adapter.name}/{kind}" + (f" sample {number}" if len(mine) > 1 else "")
            found += _asked(adapter, kind, sample, where=where)
    return found


def document_findings(path: Path) -> list[Finding]:
    """Look at a work or a task in YAML."""
    where = str(path)
    try:
        text = path.read_text(encoding="utf-8")
        documents = manifests.read(path)
    except (OSError, UnicodeDecodeError, Invalid) as error:
        return [_error("unreadable", where, str(error))]
    found = [
        _error("task", f"{where}:{text.count(chr(10), 0, match.start()) + 1}", message)
        for pattern, message in _TASK_RULES
        for match in re.finditer(pattern, text)
    ]
    for document in documents:
        found += [
            _error("wrong-name", where, f"{at}: there is no {name!r} in a work; it is called {right!r}")
            for at, name, right in _misnamed(document, "")
        ]
        if document.get("kind") == "ManifestWork":
            found += _work_document(document, where=where)
    return found


def _asked(adapter: Adapter, kind: str, sample: Mapping[str, Any], *, where: str) -> list[Finding]:
    event = Event(
        resource_id=str(sample.get("id") or SAMPLE_ID),
        kind=kind,
        generation=1,
        owner_id="" if kind == "Cluster" else "0198d0df-aa00-7d11-8c00-000000000002",
        data={"id": SAMPLE_ID, "kind": kind, "generation": 1},
    )
    resource = parse(sample, event) if sample else known_from(event)
    handler = adapter.handler(kind)
    try:
        first, second = handler(event, resource), handler(event, resource)
    except Exception as error:  # noqa: BLE001 - an author's code may raise anything
        words = f"{type(error).__name__}: {error}"
        if not sample:
            advice = "give --sample FILE with a real resource, so that what it wants can be looked at"
            return [_warning("sample", where, f"fails for a resource without a spec ({words}); {advice}")]
        return [_error("fails", where, f"fails for the sample: {words}")]
    if isinstance(first, (Hold, Reading)):
        return []
    try:
        wanted, again = (_stamped(each, adapter, resource) for each in (first, second))
    except Exception as error:  # noqa: BLE001 - an author's code may return anything
        return [_error("unusable", where, f"what it returns cannot be used: {error}")]
    found = [each for work in wanted for each in _work(work, where=where, resource=resource)]
    names = [each.name for each in wanted]
    if len(set(names)) != len(names):
        found.append(_error("names", where, f"two works have one name: {', '.join(names)}"))
    if [each.annotations[stamping.DIGEST] for each in wanted] != [each.annotations[stamping.DIGEST] for each in again]:
        message = (
            "wants something else each time it is asked; leave out times and random values, or it updates for ever"
        )
        found.append(_error("unsteady", where, message))
    if not isinstance(first, Wish) or first.read is None:
        message = "reads nothing back: available means only that the objects exist; give read=…"
        found.append(_warning("no-read", where, message))
    return found


def _stamped(answer: Any, adapter: Adapter, resource: Resource) -> list[Work]:
    wish = answer if isinstance(answer, Wish) else Wish(answer)
    return [stamping.stamped(each, adapter=adapter.name, resource=resource) for each in wish.all_works]


def _work(work: Work, *, where: str, resource: Resource) -> Iterator[Finding]:
    at = f"{where}: work {work.name}"
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
    if not any(each.get("feedbackRules") for each in configs):
        yield _warning(
            "no-feedback", at, 'no feedback rule: nothing comes back; add(…, feedback={"status": ".status"})'
        )


def _configs(
    configs: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], *, at: str
) -> Iterator[Finding]:
    expected = [manifests.identifier(each) for each in wanted]
    for config in configs:
        who = config.get("resourceIdentifier") or {}
        same = [each for each in expected if _key(each) == _key(who)]
        if not same:
            yield _error("no-manifest", at, f"manifestConfigs names {_shown(who)}, and no manifest is that object")
        elif who.get("resource") != same[0]["resource"]:
            message = (
                f"resourceIdentifier.resource is {who.get('resource')!r}, and the plural is most likely "
                f"{same[0]['resource']!r}; with the wrong one no feedback ever comes"
            )
            yield _error("singular", at, message)


def _work_document(document: Mapping[str, Any], *, where: str) -> Iterator[Finding]:
    spec = document.get("spec") or {}
    inside = (spec.get("workload") or {}).get("manifests") or []
    metadata = document.get("metadata") or {}
    for kind, each in (("the work", metadata), *((str(one.get("kind")), one.get("metadata") or {}) for one in inside)):
        generation = (each.get("annotations") or {}).get(stamping.GENERATION)
        if generation is None:
            yield _error("generation", where, f"{kind} has no annotation {stamping.GENERATION}")
        elif not isinstance(generation, str):
            yield _error("generation", where, f"{stamping.GENERATION} of {kind} is no text; put it in quotes")
    configs = spec.get("manifestConfigs") or []
    yield from _configs(configs, inside, at=where)
    if not any(each.get("feedbackRules") for each in configs):
        yield _warning("no-feedback", where, "no feedback rule: nothing comes back")


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


def _key(who: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(who.get(name) or "") for name in ("group", "name", "namespace"))


def _shown(who: Mapping[str, Any]) -> str:
    return "/".join(str(who[name]) for name in ("group", "resource", "namespace", "name") if who.get(name)) or "nothing"


def _error(rule: str, where: str, message: str) -> Finding:
    return Finding(level="error", rule=rule, where=where, message=message)


def _warning(rule: str, where: str, message: str) -> Finding:
    return Finding(level="warning", rule=rule, where=where, message=message)
