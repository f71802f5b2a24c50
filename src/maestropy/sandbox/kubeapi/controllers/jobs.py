"""Makes Jobs complete: one pod per completion, then the condition that ends them."""

from typing import Any

from maestropy.sandbox.kubeapi.controllers.children import make_child, owned
from maestropy.sandbox.kubeapi.controllers.pods import FAIL
from maestropy.sandbox.kubeapi.objects import Objects
from maestropy.sandbox.kubeapi.store import Stored

Json = dict[str, Any]
PODS = ("", "pods")


def job(objects: Objects, stored: Stored) -> None:
    """Bring a job one step nearer to its end."""
    status = dict(stored.obj.get("status") or {})
    finished = any(each["type"] in ("Complete", "Failed") for each in status.get("conditions") or [])
    spec = stored.obj["spec"]
    if finished or stored.obj["metadata"].get("deletionTimestamp") or spec.get("suspend"):
        return
    wanted = spec.get("completions") or spec.get("parallelism", 1)
    pods = owned(objects, stored, PODS)
    phases = [(pod.obj.get("status") or {}).get("phase") for pod in pods]
    done, failed = phases.count("Succeeded"), phases.count("Failed")
    active = len(pods) - done - failed
    if not failed:
        missing = min(spec.get("parallelism", 1) - active, wanted - done - active)
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
    elif done >= wanted:
        reached = "Reached expected number of succeeded pods"
        status |= {"completionTime": now}
        status["conditions"] = [
            _ended("SuccessCriteriaMet", "CompletionsReached", reached, now),
            _ended("Complete", "CompletionsReached", reached, now),
        ]
    objects.write_status(stored, status, manager="kube-controller-manager")


def _new_pod(objects: Objects, stored: Stored) -> None:
    template = stored.obj["spec"]["template"]
    given = template.get("metadata") or {}
    annotations = dict(given.get("annotations") or {})
    wish = (stored.obj["metadata"].get("annotations") or {}).get(FAIL)
    if wish:
        annotations[FAIL] = wish
    metadata = {"generateName": f"{stored.name}-", "labels": given.get("labels") or {}, "annotations": annotations}
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
