"""Makes Pods run: scheduled, started and ready at once; pods of jobs end, well unless told otherwise."""

from typing import Any

from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.seeds import NODE
from maestropy.sandbox.kubeapi.store import Stored

Json = dict[str, Any]
FAIL = "sandbox.maestropy/fail"
"""Annotation: a pod or job that carries it as "true" fails."""


def pod(objects: Objects, stored: Stored) -> None:
    """Bring a pod to the state it is to have."""
    status = stored.obj.get("status") or {}
    if stored.obj["metadata"].get("deletionTimestamp") or status.get("phase") in ("Succeeded", "Failed"):
        return
    if not stored.obj["spec"].get("nodeName"):
        objects.amend(stored, lambda obj: {**obj, "spec": {**obj["spec"], "nodeName": NODE}})
    fails = (stored.obj["metadata"].get("annotations") or {}).get(FAIL) == "true"
    phase = "Failed" if fails else "Succeeded"
    if stored.obj["spec"].get("restartPolicy") == "Always":
        phase = "Running"
    ready = phase == "Running" and not fails
    wanted = _status(stored, phase, ready=ready, now=objects.timestamp())
    if status.get("phase") != phase or _readiness(status) != ready:
        objects.write_status(stored, wanted, manager="kubelet")


def _readiness(status: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or [])


def _status(stored: Stored, phase: str, *, ready: bool, now: str) -> Json:
    mark = "True" if ready else "False"
    marks = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": mark, "Ready": mark}
    containers = [
        {
            "name": each["name"],
            "image": each.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": _container_state(phase, now),
            "lastState": {},
        }
        for each in stored.obj["spec"]["containers"]
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
