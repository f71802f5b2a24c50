"""Default the fields of built-in kinds that a client leaves out.

Pure: returns a new object. Allocated values (cluster IPs, UIDs) are set by `allocation`.
"""

import base64
from collections.abc import Callable
from typing import Any

from maestropy.sandbox.kubeapi.rules import other_defaults, pod_defaults
from maestropy.sandbox.kubeapi.rules.pod_defaults import filled
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"


def complete(kind: ServedKind, obj: Json) -> Json:
    """Return `obj` with the defaults of its kind."""
    rule = _RULES.get(kind.resource)
    return rule(obj) if rule else obj


def _with_spec(obj: Json, spec: Json) -> Json:
    return {**obj, "spec": spec}


def _template(spec: Json, **values: Any) -> Json:
    if "template" not in spec:
        return spec
    return {**spec, "template": pod_defaults.template(spec["template"], **values)}


def _namespace(obj: Json) -> Json:
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _pod(obj: Json) -> Json:
    return _with_spec(obj, pod_defaults.pod_spec(obj.get("spec") or {}))


def _deployment(obj: Json) -> Json:
    spec = filled(obj.get("spec") or {}, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = filled(spec.get("strategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = filled(strategy.get("rollingUpdate") or {}, maxUnavailable="25%", maxSurge="25%")
        strategy = {**strategy, "rollingUpdate": rolling}
    return _with_spec(obj, _template({**spec, "strategy": strategy}))


def _replica_set(obj: Json) -> Json:
    return _with_spec(obj, _template(filled(obj.get("spec") or {}, replicas=1)))


def _stateful_set(obj: Json) -> Json:
    spec = filled(
        obj.get("spec") or {},
        replicas=1,
        revisionHistoryLimit=10,
        podManagementPolicy="OrderedReady",
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Retain"},
    )
    strategy = filled(spec.get("updateStrategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy = {**strategy, "rollingUpdate": filled(strategy.get("rollingUpdate") or {}, partition=0)}
    return _with_spec(obj, _template({**spec, "updateStrategy": strategy}))


def _daemon_set(obj: Json) -> Json:
    spec = filled(obj.get("spec") or {}, revisionHistoryLimit=10)
    strategy = filled(spec.get("updateStrategy") or {}, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = filled(strategy.get("rollingUpdate") or {}, maxUnavailable=1, maxSurge=0)
        strategy = {**strategy, "rollingUpdate": rolling}
    return _with_spec(obj, _template({**spec, "updateStrategy": strategy}))


def _job_spec(spec: Json) -> Json:
    if "completions" not in spec and "parallelism" not in spec:
        spec = {**spec, "completions": 1}
    filled_in = filled(
        spec,
        parallelism=1,
        backoffLimit=6,
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
        podReplacementPolicy="TerminatingOrFailed",
    )
    return _template(filled_in)


def _job(obj: Json) -> Json:
    return _with_spec(obj, _job_spec(obj.get("spec") or {}))


def _cron_job(obj: Json) -> Json:
    spec = filled(
        obj.get("spec") or {},
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
    )
    wrapped = filled(spec.get("jobTemplate") or {}, metadata={}, spec={})
    return _with_spec(obj, {**spec, "jobTemplate": {**wrapped, "spec": _template(wrapped["spec"])}})


def _service(obj: Json) -> Json:
    spec = filled(obj.get("spec") or {}, sessionAffinity="None", type="ClusterIP")
    if spec["type"] != "ExternalName":
        spec = filled(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec = filled(spec, externalTrafficPolicy="Cluster")
    ports = [filled(port, protocol="TCP", targetPort=port.get("port")) for port in spec.get("ports") or []]
    return _with_spec(obj, {**spec, "ports": ports} if ports else spec)


def _secret(obj: Json) -> Json:
    obj = filled(obj, type="Opaque")
    plain = obj.get("stringData")
    if not plain:
        return obj
    encoded = {key: base64.b64encode(str(value).encode()).decode() for key, value in plain.items()}
    secret = {name: value for name, value in obj.items() if name != "stringData"}
    return {**secret, "data": {**(obj.get("data") or {}), **encoded}}


def _claim(obj: Json) -> Json:
    return _with_spec(obj, filled(obj.get("spec") or {}, volumeMode="Filesystem"))


def _binding(obj: Json) -> Json:
    role = filled(obj.get("roleRef") or {}, apiGroup=_RBAC)
    subjects = [
        filled(subject, apiGroup=_RBAC) if subject.get("kind") in ("User", "Group") else subject
        for subject in obj.get("subjects") or []
    ]
    return {**obj, "roleRef": role} | ({"subjects": subjects} if subjects else {})


def _role(obj: Json) -> Json:
    # Kubernetes writes `rules: null` when there are none.
    return {**obj, "rules": obj.get("rules")}


def _network_policy(obj: Json) -> Json:
    spec = dict(obj.get("spec") or {})
    types = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    return _with_spec(obj, filled(spec, policyTypes=types, podSelector={}))


def _definition(obj: Json) -> Json:
    spec = filled(obj.get("spec") or {}, conversion={"strategy": "None"})
    names = dict(spec.get("names") or {})
    kind = str(names.get("kind", ""))
    names = filled(names, singular=kind.lower(), listKind=f"{kind}List") if kind else names
    return _with_spec(obj, {**spec, "names": names})


_RULES: dict[tuple[str, str], Callable[[Json], Json]] = {
    ("", "namespaces"): _namespace,
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("", "podtemplates"): _template,
    ("", "secrets"): _secret,
    ("", "persistentvolumeclaims"): _claim,
    ("", "replicationcontrollers"): _replica_set,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "daemonsets"): _daemon_set,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
    (_RBAC, "roles"): _role,
    (_RBAC, "clusterroles"): _role,
    (_RBAC, "rolebindings"): _binding,
    (_RBAC, "clusterrolebindings"): _binding,
    ("networking.k8s.io", "networkpolicies"): _network_policy,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _definition,
    **other_defaults.RULES,
}
