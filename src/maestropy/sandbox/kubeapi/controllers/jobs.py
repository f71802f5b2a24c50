"""Run Jobs to completion: create one pod per completion, then set Complete or Failed."""

from typing import Any

from maestropy.sandbox.kubeapi.controllers.children import make_child, owned
from maestropy.sandbox.kubeapi.controllers.pods import FAIL
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.storage.store import StoredObject

Json = dict[str, Any]
PODS = ("", "pods")


def job(objects: Objects, stored: StoredObject) -> None:
    """Create missing pods of a Job and write its status."""
    status = dict(stored.obj.get("status") or {})
    finished = any(condition["type"] in ("Complete", "Failed") for condition in status.get("conditions") or [])
    spec = stored.obj["spec"]
    if finished or stored.obj["metadata"].get("deletionTimestamp") or spec.get("suspend"):
        return
    completions = spec.get("completions") or spec.get("parallelism", 1)
    pods = owned(objects, stored, PODS)
    phases = [(pod.obj.get("status") or {}).get("phase") for pod in pods]
    done, failed = phases.count("Succeeded"), phases.count("Failed")
    active = len(pods) - done - failed
    if not failed:
        missing = min(spec.get("parallelism", 1) - active, completions - done - active)
        for _ in range(missing):
            _new_pod(objects, stored)
        active += max(0, missing)
    now = objects.timestamp()
    status = {"startTime": status.get("startTime", now), "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
    counts = {"active": active, "succeeded": done, "failed": failed}
    status |= {name: value for name, value in counts.items() if value}
    if failed:
        status["conditions"] = [
            _ended("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
        ]
    elif done >= completions:
        reached = "Reached expected number of succeeded pods"
        status |= {"completionTime": now}
        status["conditions"] = [
            _ended("SuccessCriteriaMet", "CompletionsReached", reached, now),
            _ended("Complete", "CompletionsReached", reached, now),
        ]
    objects.write_status(stored, status, manager="kube-controller-manager")


def _new_pod(objects: Objects, stored: StoredObject) -> None:
    template = stored.obj["spec"]["template"]
    template_metadata = template.get("metadata") or {}
    annotations = dict(template_metadata.get("annotations") or {})
    fail = (stored.obj["metadata"].get("annotations") or {}).get(FAIL)
    if fail:
        annotations[FAIL] = fail
    metadata = {
        "generateName": f"{stored.name}-",
        "labels": template_metadata.get("labels") or {},
        "annotations": annotations,
    }
    make_child(objects, stored, PODS, {"metadata": metadata, "spec": template["spec"]})


def _ended(name: str, reason: str, message: str, now: str) -> Json:
    return {
        "type": name,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
