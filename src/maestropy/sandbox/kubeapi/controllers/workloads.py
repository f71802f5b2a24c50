"""Reconcile Deployments, ReplicaSets, StatefulSets and DaemonSets: children, replica counts and conditions."""

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from maestropy.sandbox.kubeapi.controllers.children import conditions, make_child, owned
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.storage.deletion import DeletionRequest
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
MANAGER = "kube-controller-manager"
PODS, REPLICA_SETS = ("", "pods"), ("apps", "replicasets")
_HASH = "pod-template-hash"


def _is_ready(pod: StoredObject) -> bool:
    status = pod.obj.get("status") or {}
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or []
    )


def _is_leaving(stored: StoredObject) -> bool:
    return bool(stored.obj["metadata"].get("deletionTimestamp"))


def _remove(objects: Objects, stored: StoredObject) -> None:
    kind = objects.registry.of_resource(*stored.resource)
    assert kind is not None
    objects.delete(kind, stored.namespace, stored.name, DeletionRequest(propagation="Background", uid=stored.uid))


def deployment(objects: Objects, stored: StoredObject) -> None:
    """Keep one ReplicaSet per pod template; scale the current one up and the others to zero."""
    if _is_leaving(stored):
        return
    spec, now = stored.obj["spec"], objects.timestamp()
    current = _template_hash(spec["template"])
    sets = owned(objects, stored, REPLICA_SETS)
    if spec.get("paused"):
        _report_deployment(objects, stored, sets, current=current, now=now)
        return
    if current not in {child.obj["metadata"]["labels"].get(_HASH) for child in sets}:
        _new_replica_set(objects, stored, current)
        sets = owned(objects, stored, REPLICA_SETS)
    for child in sets:
        is_current = child.obj["metadata"]["labels"].get(_HASH) == current
        _resize(objects, child, spec["replicas"] if is_current else 0)
    _report_deployment(objects, stored, owned(objects, stored, REPLICA_SETS), current=current, now=now)


def _template_hash(template: Json) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return digest[:10]


def _new_replica_set(objects: Objects, stored: StoredObject, current: str) -> None:
    spec = stored.obj["spec"]
    template = spec["template"]
    labels = {**(template.get("metadata") or {}).get("labels", {}), _HASH: current}
    selector = spec["selector"]
    child = {
        "metadata": {"name": f"{stored.name}-{current}", "labels": labels},
        "spec": {
            "replicas": spec["replicas"],
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), _HASH: current}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }
    make_child(objects, stored, REPLICA_SETS, child)


def _resize(objects: Objects, stored: StoredObject, replicas: int) -> None:
    def change(obj: Json) -> Json:
        if obj["spec"].get("replicas") == replicas:
            return obj
        generation = obj["metadata"]["generation"] + 1
        return {
            **obj,
            "metadata": {**obj["metadata"], "generation": generation},
            "spec": {**obj["spec"], "replicas": replicas},
        }

    objects.guaranteed_update(stored, change)


def _report_deployment(
    objects: Objects, stored: StoredObject, sets: Iterable[StoredObject], *, current: str, now: str
) -> None:
    replica_sets = list(sets)
    updated = [child for child in replica_sets if child.obj["metadata"]["labels"].get(_HASH) == current]
    counts = {
        "replicas": _sum(replica_sets, "replicas"),
        "updatedReplicas": _sum(updated, "replicas"),
        "readyReplicas": _sum(replica_sets, "readyReplicas"),
        "availableReplicas": _sum(replica_sets, "availableReplicas"),
    }
    replicas = stored.obj["spec"]["replicas"]
    missing = replicas - counts["availableReplicas"]
    complete = missing <= 0 and counts["updatedReplicas"] == replicas == counts["replicas"]
    name = f"{stored.name}-{current}"
    old = (stored.obj.get("status") or {}).get("conditions")
    status: Json = {name: value for name, value in counts.items() if value}
    if missing > 0:
        status["unavailableReplicas"] = missing
    status["observedGeneration"] = stored.obj["metadata"]["generation"]
    status["conditions"] = conditions(
        old,
        now,
        {
            "type": "Available",
            "status": "True" if missing <= 0 else "False",
            "reason": "MinimumReplicasAvailable" if missing <= 0 else "MinimumReplicasUnavailable",
            "message": f"Deployment {'has' if missing <= 0 else 'does not have'} minimum availability.",
        },
        _progress(stored, complete=complete, name=name),
    )
    objects.write_status(stored, status, manager=MANAGER)


def _progress(stored: StoredObject, *, complete: bool, name: str) -> Json:
    if stored.obj["spec"].get("paused"):
        reason, message = "DeploymentPaused", "Deployment is paused"
        return {"type": "Progressing", "status": "Unknown", "reason": reason, "message": message}
    progress = "has successfully progressed" if complete else "is progressing"
    return {
        "type": "Progressing",
        "status": "True",
        "reason": "NewReplicaSetAvailable" if complete else "ReplicaSetUpdated",
        "message": f'ReplicaSet "{name}" {progress}.',
    }


def _sum(sets: Iterable[StoredObject], field: str) -> int:
    return sum((child.obj.get("status") or {}).get(field, 0) for child in sets)


def replica_set(objects: Objects, stored: StoredObject) -> None:
    """Keep `spec.replicas` pods."""
    if _is_leaving(stored):
        return
    pods = _sized(objects, stored, replicas=stored.obj["spec"]["replicas"])
    ready = sum(1 for pod in pods if _is_ready(pod))
    status: Json = {"replicas": len(pods), "observedGeneration": stored.obj["metadata"]["generation"]}
    if pods:
        status["fullyLabeledReplicas"] = len(pods)
    if ready:
        status |= {"readyReplicas": ready, "availableReplicas": ready}
    objects.write_status(stored, status, manager=MANAGER)


def _sized(objects: Objects, stored: StoredObject, *, replicas: int) -> list[StoredObject]:
    pods = [pod for pod in owned(objects, stored, PODS) if not _is_leaving(pod)]
    for _ in range(replicas - len(pods)):
        _new_pod(objects, stored, {"generateName": f"{stored.name}-"})
    for pod in pods[replicas:]:
        _remove(objects, pod)
    return [pod for pod in owned(objects, stored, PODS) if not _is_leaving(pod)]


def _new_pod(objects: Objects, stored: StoredObject, naming: Json) -> None:
    template = stored.obj["spec"]["template"]
    template_metadata = template.get("metadata") or {}
    metadata = {name: template_metadata[name] for name in ("labels", "annotations") if name in template_metadata}
    make_child(objects, stored, PODS, {"metadata": {**metadata, **naming}, "spec": template["spec"]})


def stateful_set(objects: Objects, stored: StoredObject) -> None:
    """Keep pods with ordinal names, and replace those of an older revision."""
    if _is_leaving(stored):
        return
    spec = stored.obj["spec"]
    revision = f"{stored.name}-{_template_hash(spec['template'])}"
    names = [f"{stored.name}-{ordinal}" for ordinal in range(spec["replicas"])]
    label = "controller-revision-hash"
    for pod in owned(objects, stored, PODS):
        if pod.name not in names or (pod.obj["metadata"].get("labels") or {}).get(label) != revision:
            _remove(objects, pod)
    present = {pod.name for pod in owned(objects, stored, PODS)}
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    for name in names:
        if name not in present and objects.store.get(PODS, stored.namespace, name) is None:
            marks = {**labels, label: revision, "statefulset.kubernetes.io/pod-name": name}
            _new_pod(objects, stored, {"name": name, "labels": marks})
    pods = owned(objects, stored, PODS)
    ready = sum(1 for pod in pods if _is_ready(pod))
    status: Json = {
        "replicas": len(pods),
        "availableReplicas": ready,
        "currentReplicas": len(pods),
        "updatedReplicas": len(pods),
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
        "observedGeneration": stored.obj["metadata"]["generation"],
    }
    objects.write_status(stored, status | ({"readyReplicas": ready} if ready else {}), manager=MANAGER)


def daemon_set(objects: Objects, stored: StoredObject) -> None:
    """Keep one pod on every node."""
    if _is_leaving(stored):
        return
    nodes = len(objects.store.select(("", "nodes")))
    pods = _sized(objects, stored, replicas=nodes)
    ready = sum(1 for pod in pods if _is_ready(pod))
    status: Json = {
        "currentNumberScheduled": len(pods),
        "desiredNumberScheduled": nodes,
        "numberMisscheduled": 0,
        "numberReady": ready,
        "updatedNumberScheduled": len(pods),
        "observedGeneration": stored.obj["metadata"]["generation"],
    }
    more = {"numberAvailable": ready} if ready else {"numberUnavailable": nodes} if nodes else {}
    objects.write_status(stored, status | more, manager=MANAGER)
