"""Build Tables with a few columns per kind, as `kubectl get` prints them. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
Cell = Callable[[Json], Any]


def _at(path: str, default: Any = "<none>") -> Cell:
    def read(obj: Json) -> Any:
        value: Any = obj
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        return default if value is None else value

    return read


def _share(have: str, want: str, default: int) -> Cell:
    return lambda obj: f"{_at(have, 0)(obj)}/{_at(want, default)(obj)}"


def _count(path: str) -> Cell:
    return lambda obj: len(_at(path, {})(obj))


def _ready_containers(obj: Json) -> str:
    statuses = _at("status.containerStatuses", [])(obj)
    return f"{sum(1 for container in statuses if container.get('ready'))}/{len(_at('spec.containers', [])(obj))}"


def _pod_status(obj: Json) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    states = [container.get("state") or {} for container in _at("status.containerStatuses", [])(obj)]
    reasons = [state["terminated"].get("reason") for state in states if "terminated" in state]
    return str(next(filter(None, reasons), _at("status.phase")(obj)))


def _restarts(obj: Json) -> int:
    return sum(container.get("restartCount", 0) for container in _at("status.containerStatuses", [])(obj))


def _service_ports(obj: Json) -> str:
    ports = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in _at("spec.ports", [])(obj)
    ]
    return ",".join(ports) or "<none>"


def _job_status(obj: Json) -> str:
    conditions = _at("status.conditions", [])(obj)
    return next(
        (condition["type"] for condition in conditions if condition["type"] in ("Complete", "Failed")), "Running"
    )


_COLUMNS: dict[tuple[str, str], list[tuple[str, Cell]]] = {
    ("", "namespaces"): [("Status", _at("status.phase"))],
    ("", "configmaps"): [("Data", _count("data"))],
    ("", "secrets"): [("Type", _at("type")), ("Data", _count("data"))],
    ("", "pods"): [("Ready", _ready_containers), ("Status", _pod_status), ("Restarts", _restarts)],
    ("", "services"): [
        ("Type", _at("spec.type")),
        ("Cluster-IP", _at("spec.clusterIP")),
        ("External-IP", _at("spec.externalName")),
        ("Port(s)", _service_ports),
    ],
    ("", "persistentvolumeclaims"): [("Status", _at("status.phase")), ("Volume", _at("spec.volumeName", ""))],
    ("", "events"): [("Type", _at("type", "")), ("Reason", _at("reason", "")), ("Message", _at("message", ""))],
    ("apps", "deployments"): [
        ("Ready", _share("status.readyReplicas", "spec.replicas", 1)),
        ("Up-to-date", _at("status.updatedReplicas", 0)),
        ("Available", _at("status.availableReplicas", 0)),
    ],
    ("apps", "replicasets"): [
        ("Desired", _at("spec.replicas", 0)),
        ("Current", _at("status.replicas", 0)),
        ("Ready", _at("status.readyReplicas", 0)),
    ],
    ("apps", "statefulsets"): [("Ready", _share("status.readyReplicas", "spec.replicas", 1))],
    ("apps", "daemonsets"): [
        ("Desired", _at("status.desiredNumberScheduled", 0)),
        ("Ready", _at("status.numberReady", 0)),
    ],
    ("batch", "jobs"): [
        ("Status", _job_status),
        ("Completions", _share("status.succeeded", "spec.completions", 1)),
    ],
    ("batch", "cronjobs"): [("Schedule", _at("spec.schedule")), ("Suspend", _at("spec.suspend", default=False))],
    ("apiextensions.k8s.io", "customresourcedefinitions"): [("Created At", _at("metadata.creationTimestamp"))],
}


def table(
    kind: ServedKind, objects: Sequence[Json], *, version: int, now: datetime, metadata: Json | None = None
) -> Json:
    """Return objects as a Table."""
    columns = [("Name", _at("metadata.name")), *_COLUMNS.get(kind.resource, [])]
    if columns[-1][0] != "Created At":
        columns.append(("Age", lambda obj: _age(obj, now)))
    definitions = [
        {"name": name, "type": "string", "format": "name" if name == "Name" else "", "description": "", "priority": 0}
        for name, _ in columns
    ]
    rows = [
        {
            "cells": [cell(obj) for _, cell in columns],
            "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]},
        }
        for obj in objects
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata or {"resourceVersion": str(version)},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _age(obj: Json, now: datetime) -> str:
    born = obj["metadata"].get("creationTimestamp")
    if not born:
        return "<unknown>"
    since = now - datetime.strptime(born, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = max(0, int(since.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
