"""Convert a work to a ConfigMap and back, for a Kubernetes API without Maestro; compute its status from live objects.

The ConfigMap holds references to the objects and the feedback rules, never their content: a manifest may be a Secret.
Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire.works.work import ManifestWork

MARK = "adapter.maestropy.io/work"
"""The label of all these ConfigMaps."""
DELETING = "adapter.maestropy.io/deleting"
VERSION = "adapter.maestropy.io/version"
_KEY = "work.json"
_ABSENT = object()

Json = dict[str, Any]


def name_of(work: str) -> str:
    """Return the name of a work's ConfigMap."""
    return f"maestro-work-{work}"


def record(work: Work, *, namespace: str, version: int, pruned: Sequence[Mapping[str, Any]] = ()) -> Json:
    """Return the ConfigMap of a work; `pruned` are objects of an earlier version that must still be deleted."""
    content = {
        "name": work.name,
        "consumer": work.consumer,
        "manifests": [reference(manifest) for manifest in work.manifest_work.manifests],
        "leaving": list(pruned),
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


def content(config_map: Mapping[str, Any]) -> Json:
    """Return the content of a ConfigMap."""
    try:
        return dict(orjson.loads(config_map["data"][_KEY]))
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid(
            f"ConfigMap {config_map['metadata']['name']} does not describe a work", advice="delete it"
        ) from error


def reference(manifest: Mapping[str, Any]) -> Json:
    """Return the reference to an object, without its content."""
    metadata = manifest.get("metadata") or {}
    namespace = {"namespace": metadata["namespace"]} if metadata.get("namespace") else {}
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": {"name": metadata.get("name"), **namespace},
    }


def work_of(config_map: Mapping[str, Any], live: Sequence[Mapping[str, Any] | None]) -> Work:
    """Return a work with the status that follows from its live objects; None stands for a missing object."""
    stored, metadata = content(config_map), config_map["metadata"]
    annotations = metadata.get("annotations") or {}
    version = int(annotations.get(VERSION) or 0)
    gone = sum(live_object is None for live_object in live)
    state = ("False", "ResourcesMissing", f"{gone} of {len(live)} objects are not there") if gone else _FINE
    body = {
        "metadata": {
            "name": stored["name"],
            "namespace": stored["consumer"],
            "labels": {key: value for key, value in (metadata.get("labels") or {}).items() if key != MARK},
            "annotations": annotations,
            "generation": version,
            "resourceVersion": str(version),
            **({"deletionTimestamp": annotations[DELETING]} if annotations.get(DELETING) else {}),
        },
        "spec": {"workload": {"manifests": stored["manifests"]}, "manifestConfigs": stored["manifestConfigs"]},
        "status": {
            "conditions": [_condition("Applied", *state), _condition("Available", *state)],
            "resourceStatus": {
                "manifests": [
                    _manifest_status(index, identity, live_object, configs=stored["manifestConfigs"])
                    for index, (identity, live_object) in enumerate(zip(stored["manifests"], live, strict=True))
                ]
            },
        },
    }
    return Work.wrap(ManifestWork(body), observed_version=version)


def value_at(value: Any, path: str) -> Any:
    r"""Return the value at a path such as `.status.replicas`; `@` is the whole object, `\.` is a dot in a name.

    >>> value_at({"status": {"ready": 3}}, ".status.ready")
    3
    """
    if path in ("@", "."):
        return value
    if not path.startswith(".") or any(sign in path for sign in "[]*?{}()'\""):
        raise Invalid(
            f"the path {path!r} has more than names and dots",
            advice="over a Kubernetes API use paths like .status.ready",
        )
    for part in re.split(r"(?<!\\)\.", path.strip(".")):
        name = part.replace("\\.", ".")
        if not isinstance(value, Mapping) or name not in value:
            return _ABSENT
        value = value[name]
    return value


_FINE = ("True", "ResourcesApplied", "All objects are there")


def _manifest_status(
    index: int, identity: Mapping[str, Any], live: Mapping[str, Any] | None, *, configs: Sequence[Mapping[str, Any]]
) -> Json:
    group, _, version = str(identity["apiVersion"]).rpartition("/")
    name, namespace = identity["metadata"]["name"], identity["metadata"].get("namespace", "")
    state = _FINE if live is not None else ("False", "NotFound", "the object is not there")
    meta = {"ordinal": index, "group": group, "version": version, "kind": identity["kind"]}
    return {
        "resourceMeta": {**meta, "name": name, "namespace": namespace},
        "statusFeedback": {"values": [] if live is None else _values(live, _rules(configs, group, name, namespace))},
        "conditions": [_condition("Applied", *state), _condition("Available", *state)],
    }


def _rules(configs: Sequence[Mapping[str, Any]], group: str, name: str, namespace: str) -> list[tuple[str, str]]:
    rules = []
    for config in configs:
        identifier = config.get("resourceIdentifier") or {}
        if (identifier.get("group") or "", identifier.get("name"), identifier.get("namespace") or "") == (
            group,
            name,
            namespace,
        ):
            rules += [
                (str(path["name"]), str(path["path"]))
                for rule in config.get("feedbackRules") or ()
                for path in rule.get("jsonPaths") or ()
            ]
    return rules


def _values(live: Mapping[str, Any], rules: Sequence[tuple[str, str]]) -> list[Json]:
    values = [(name, value_at(live, path)) for name, path in rules]
    return [
        {"name": name, "fieldValue": {"type": "JsonRaw", "jsonRaw": orjson.dumps(value).decode()}}
        for name, value in values
        if value is not _ABSENT
    ]


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}
