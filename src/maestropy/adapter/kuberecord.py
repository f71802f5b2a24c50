"""How a work is remembered and read on a Kubernetes API without Maestro: a record of it, and values from its objects.

A record is a ConfigMap that holds which objects belong to a work and what is to be read from them, never their content:
a manifest may be a Secret. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire.work import ManifestWork

MARK = "adapter.maestropy.io/work"
"""The label of all records."""
DELETING = "adapter.maestropy.io/deleting"
VERSION = "adapter.maestropy.io/version"
_KEY = "work.json"
_ABSENT = object()

Json = dict[str, Any]


def name_of(work: str) -> str:
    """Return the name of a work's record."""
    return f"maestro-work-{work}"


def record(work: Work, *, namespace: str, version: int, leaving: Sequence[Mapping[str, Any]] = ()) -> Json:
    """Return the record of a work; `leaving` are objects of an earlier version that are yet to be removed."""
    content = {
        "name": work.name,
        "consumer": work.consumer,
        "manifests": [reference(each) for each in work.manifest_work.manifests],
        "leaving": list(leaving),
        "manifestConfigs": work.manifest_work.spec.get("manifestConfigs") or [],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name_of(work.name),
            "namespace": namespace,
            "labels": {**work.labels, MARK: "true"},
            "annotations": {**work.annotations, VERSION: str(version)},
        },
        "data": {_KEY: orjson.dumps(content).decode()},
    }


def content(found: Mapping[str, Any]) -> Json:
    """Return what a record holds."""
    try:
        return dict(orjson.loads(found["data"][_KEY]))
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(f"ConfigMap {found['metadata']['name']} is no record of a work", advice="remove it") from error


def reference(manifest: Mapping[str, Any]) -> Json:
    """Return who an object is, without its content."""
    metadata = manifest.get("metadata") or {}
    where = {"namespace": metadata["namespace"]} if metadata.get("namespace") else {}
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": {"name": metadata.get("name"), **where},
    }


def work_of(found: Mapping[str, Any], live: Sequence[Mapping[str, Any] | None]) -> Work:
    """Return a record as a work, with the status that its live objects give it; None stands for one that is missing."""
    told, metadata = content(found), found["metadata"]
    annotations = metadata.get("annotations") or {}
    version = int(annotations.get(VERSION) or 0)
    gone = sum(each is None for each in live)
    state = ("False", "ResourcesMissing", f"{gone} of {len(live)} objects are not there") if gone else _FINE
    body = {
        "metadata": {
            "name": told["name"],
            "namespace": told["consumer"],
            "labels": {key: value for key, value in (metadata.get("labels") or {}).items() if key != MARK},
            "annotations": annotations,
            "generation": version,
            "resourceVersion": str(version),
            **({"deletionTimestamp": annotations[DELETING]} if annotations.get(DELETING) else {}),
        },
        "spec": {"workload": {"manifests": told["manifests"]}, "manifestConfigs": told["manifestConfigs"]},
        "status": {
            "conditions": [_condition("Applied", *state), _condition("Available", *state)],
            "resourceStatus": {
                "manifests": [
                    _manifest_status(index, who, seen, configs=told["manifestConfigs"])
                    for index, (who, seen) in enumerate(zip(told["manifests"], live, strict=True))
                ]
            },
        },
    }
    return Work.wrap(ManifestWork(body), observed_version=version)


def value_at(found: Any, path: str) -> Any:
    """Return the value at a path of names, such as `.status.replicas`; `@` is the whole object.

    >>> value_at({"status": {"ready": 3}}, ".status.ready")
    3
    """
    if path in ("@", "."):
        return found
    if not path.startswith(".") or any(sign in path for sign in "[]*?{}()'\""):
        raise Invalid(
            f"the path {path!r} is more than names and dots",
            advice="over a Kubernetes API use paths like .status.ready",
        )
    for name in path.strip(".").split("."):
        if not isinstance(found, Mapping) or name not in found:
            return _ABSENT
        found = found[name]
    return found


_FINE = ("True", "ResourcesApplied", "All objects are there")


def _manifest_status(
    index: int, who: Mapping[str, Any], live: Mapping[str, Any] | None, *, configs: Sequence[Mapping[str, Any]]
) -> Json:
    group, _, version = str(who["apiVersion"]).rpartition("/")
    name, namespace = who["metadata"]["name"], who["metadata"].get("namespace", "")
    state = _FINE if live is not None else ("False", "NotFound", "the object is not there")
    meta = {"ordinal": index, "group": group, "version": version, "kind": who["kind"]}
    return {
        "resourceMeta": {**meta, "name": name, "namespace": namespace},
        "statusFeedback": {"values": [] if live is None else _values(live, _rules(configs, group, name, namespace))},
        "conditions": [_condition("Applied", *state), _condition("Available", *state)],
    }


def _rules(configs: Sequence[Mapping[str, Any]], group: str, name: str, namespace: str) -> list[tuple[str, str]]:
    found = []
    for config in configs:
        who = config.get("resourceIdentifier") or {}
        if (who.get("group") or "", who.get("name"), who.get("namespace") or "") == (group, name, namespace):
            found += [
                (str(path["name"]), str(path["path"]))
                for rule in config.get("feedbackRules") or ()
                for path in rule.get("jsonPaths") or ()
            ]
    return found


def _values(live: Mapping[str, Any], rules: Sequence[tuple[str, str]]) -> list[Json]:
    found = [(name, value_at(live, path)) for name, path in rules]
    return [
        {"name": name, "fieldValue": {"type": "JsonRaw", "jsonRaw": orjson.dumps(value).decode()}}
        for name, value in found
        if value is not _ABSENT
    ]


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}
