"""Decide whether the status of an object describes its current spec, as `kubectl wait` does. Pure.

The API server raises `metadata.generation` at every change of a spec; a controller writes the generation that it has
handled as `status.observedGeneration`, or into its conditions. Right after a change the object still carries the status
of the old spec, and the agent reports that truthfully. An adapter that believed it would report a change as available
before anything has happened. The kit therefore asks for both numbers wherever an adapter reads a status.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maestropy.sdk._manifests.status import Manifest
from maestropy.sdk.work import Work

GENERATION_RULE = "objectGeneration"
OBSERVED_RULE = "observedGeneration"
_GENERATION_PATH = ".metadata.generation"
_OBSERVED_PATH = ".status.observedGeneration"
_STATUS_PATH = ".status"


def with_generation_rules(work: Work) -> Work:
    """Return the work with feedback rules for both generations, where its rules read the status of an object."""
    configs = work.manifest_work.spec.get("manifestConfigs")
    if not isinstance(configs, list) or not all(isinstance(config, Mapping) for config in configs):
        return work  # without rules; if it is malformed, the validation of works names the field
    return Work.wrap(work.manifest_work.with_spec(manifestConfigs=[_with_rules(config) for config in configs]))


def outdated(works: Sequence[Work]) -> str:
    """Say which object's status describes an older spec than the current one; empty if none does."""
    for work in works:
        wholes = {name for name, path in _paths(work) if path == _STATUS_PATH}
        for manifest in work.manifests:
            current = _number(manifest.feedback.get(GENERATION_RULE))
            observed = min(_observed(manifest, wholes), default=None)
            if current is not None and observed is not None and observed < current:
                return (
                    f"{manifest.kind} {manifest.name} has generation {current}, and its status is of generation "
                    f"{observed}: its controller has not handled the change yet"
                )
    return ""


def _with_rules(config: Mapping[str, Any]) -> dict[str, Any]:
    rules = [dict(rule) for rule in config.get("feedbackRules") or ()]
    declared = {str(entry.get("name")): _path(entry) for rule in rules for entry in rule.get("jsonPaths") or ()}
    if not any(path == _STATUS_PATH or path.startswith((".status.", ".status[")) for path in declared.values()):
        return dict(config)
    wanted = {GENERATION_RULE: _GENERATION_PATH}
    if _STATUS_PATH not in declared.values():
        wanted[OBSERVED_RULE] = _OBSERVED_PATH
    added = [{"name": name, "path": path} for name, path in wanted.items() if name not in declared]
    target = next(rule for rule in rules if rule.get("jsonPaths"))
    target["jsonPaths"] = [*target["jsonPaths"], *added]
    return {**config, "feedbackRules": rules}


def _observed(manifest: Manifest, wholes: set[str]) -> Iterator[int]:
    values = manifest.feedback
    yield from _numbers(values.get(OBSERVED_RULE))
    for status in (values[name] for name in wholes if isinstance(values.get(name), Mapping)):
        yield from _numbers(status.get("observedGeneration"))
        conditions = status.get("conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            if isinstance(condition, Mapping) and condition.get("type") == "Available":
                yield from _numbers(condition.get("observedGeneration"))


def _paths(work: Work) -> Iterator[tuple[str, str]]:
    for config in work.manifest_work.spec.get("manifestConfigs") or ():
        for rule in config.get("feedbackRules") or ():
            yield from ((str(entry.get("name")), _path(entry)) for entry in rule.get("jsonPaths") or ())


def _path(entry: Mapping[str, Any]) -> str:
    return str(entry.get("path") or "").strip().removeprefix("{").removesuffix("}").removeprefix("$")


def _numbers(value: object) -> Iterator[int]:
    number = _number(value)
    if number is not None:
        yield number


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
