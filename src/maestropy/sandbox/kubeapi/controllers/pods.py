"""Run Pods without containers: schedule them and set them ready, or completed if they do not restart."""

from typing import Any

from maestropy.sandbox.kubeapi.initial_objects import NODE
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
FAIL = "sandbox.maestropy/fail"
"""Annotation: a Pod or Job with the value "true" fails."""


def pod(objects: Objects, stored: StoredObject) -> None:
    """Schedule a Pod and write its status."""
    status = stored.obj.get("status") or {}
    if stored.obj["metadata"].get("deletionTimestamp") or status.get("phase") in ("Succeeded", "Failed"):
        return
    if not stored.obj["spec"].get("nodeName"):
        objects.guaranteed_update(stored, lambda obj: {**obj, "spec": {**obj["spec"], "nodeName": NODE}})
    fails = (stored.obj["metadata"].get("annotations") or {}).get(FAIL) == "true"
    phase = "Failed" if fails else "Succeeded"
    if stored.obj["spec"].get("restartPolicy") == "Always":
        phase = "Running"
    ready = phase == "Running" and not fails
    new_status = _status(stored, phase, ready=ready, now=objects.timestamp())
    if status.get("phase") != phase or _readiness(status) != ready:
        objects.write_status(stored, new_status, manager="kubelet")


def _readiness(status: Json) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or []
    )


def _status(stored: StoredObject, phase: str, *, ready: bool, now: str) -> Json:
    mark = "True" if ready else "False"
    marks = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": mark, "Ready": mark}
    containers = [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": _container_state(phase, now),
            "lastState": {},
        }
        for container in stored.obj["spec"]["containers"]
    ]
    return {
        "phase": phase,
        "conditions": [
            {"type": name, "status": value, "lastProbeTime": None, "lastTransitionTime": now}
            for name, value in marks.items()
        ],
        "hostIP": "127.0.0.1",
        "podIP": "10.244.0.1",
        "podIPs": [{"ip": "10.244.0.1"}],
        "startTime": now,
        "containerStatuses": containers,
        "qosClass": "BestEffort",
    }


def _container_state(phase: str, now: str) -> Json:
    if phase == "Running":
        return {"running": {"startedAt": now}}
    reason, code = ("Completed", 0) if phase == "Succeeded" else ("Error", 1)
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}}
