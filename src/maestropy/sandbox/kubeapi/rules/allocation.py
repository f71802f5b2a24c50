"""Set the values that the API server chooses itself: initial status, cluster IPs, the selector of a Job. Pure."""

from typing import Any

from maestropy.sandbox.kubeapi.rules.pod_defaults import filled
from maestropy.sandbox.kubeapi.schemas import decode
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]

_INITIAL_STATUS: dict[tuple[str, str], Json] = {
    ("", "namespaces"): {"phase": "Active"},
    ("", "pods"): {"phase": "Pending", "qosClass": "BestEffort"},
    ("", "persistentvolumeclaims"): {"phase": "Pending"},
    ("apps", "replicasets"): {"replicas": 0},
    ("apps", "statefulsets"): {"replicas": 0, "availableReplicas": 0},
    ("apps", "daemonsets"): {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    },
    ("policy", "poddisruptionbudgets"): {
        "currentHealthy": 0,
        "desiredHealthy": 0,
        "disruptionsAllowed": 0,
        "expectedPods": 0,
    },
}
_SERVICE_KEPT = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def allocate(kind: ServedKind, obj: Json, *, uid: str, address: str) -> Json:
    """Return a new object with the values that the API server chooses for its kind."""
    if "status" in kind.schema.always_written:
        status = decode.typed({}, kind.schema.fields["status"])
        obj = {**obj, "status": {**status, **_INITIAL_STATUS.get(kind.resource, {})}}
    match kind.resource:
        case ("", "events"):
            return filled(obj, reportingComponent="", reportingInstance="")
        case ("", "namespaces"):
            return {**obj, "spec": {"finalizers": ["kubernetes"]}}
        case ("", "services"):
            return _service(obj, address)
        case ("batch", "jobs"):
            return _job(obj, uid)
    return obj


def carry_over(kind: ServedKind, old: Json, new: Json) -> Json:
    """Return a changed object with the allocated values that the client left out."""
    match kind.resource:
        case ("", "services"):
            kept = {name: old["spec"][name] for name in _SERVICE_KEPT if name in old.get("spec", {})}
            if new["spec"].get("type") == "ExternalName":
                return new
            return {**new, "spec": {**kept, **{name: value for name, value in new["spec"].items() if value}}}
        case ("", "events"):
            return filled(new, reportingComponent="", reportingInstance="")
        case ("batch", "jobs"):
            return _job(new, old["metadata"]["uid"])
    return new


def _service(obj: Json, address: str) -> Json:
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return obj
    chosen = spec.get("clusterIP") or address
    spec = {
        **spec,
        "clusterIP": chosen,
        "clusterIPs": spec.get("clusterIPs") or [chosen],
        "ipFamilies": spec.get("ipFamilies") or ["IPv4"],
        "ipFamilyPolicy": spec.get("ipFamilyPolicy") or "SingleStack",
    }
    return {**obj, "spec": spec}


def _job(obj: Json, uid: str) -> Json:
    spec = obj.get("spec") or {}
    if spec.get("manualSelector") or "template" not in spec:
        return obj
    name = obj["metadata"].get("name", "")
    marks = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    marks |= {"controller-uid": uid, "job-name": name}
    template = spec["template"]
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **marks}
    if not obj["metadata"].get("labels"):
        obj = {**obj, "metadata": {**obj["metadata"], "labels": labels}}
    spec = {
        **spec,
        "selector": spec.get("selector") or {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
        "template": {**template, "metadata": {**metadata, "labels": labels}},
    }
    return {**obj, "spec": spec}
