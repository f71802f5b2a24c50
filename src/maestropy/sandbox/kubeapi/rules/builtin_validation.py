"""Validate single built-in kinds: required fields and immutable fields. Pure."""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maestropy.sandbox.kubeapi.errors import Cause
from maestropy.sandbox.kubeapi.rules import names, selectors
from maestropy.sandbox.kubeapi.rules.validation import forbidden, invalid_value, required, unsupported
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Json = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"
_IMMUTABLE = "field is immutable"


def causes(kind: ServedKind, obj: Json) -> Iterator[Cause]:
    """Yield the validation errors of an object."""
    rule = _RULES.get(kind.resource)
    if rule:
        yield from rule(obj)


def change_causes(kind: ServedKind, old: Json, new: Json) -> Iterator[Cause]:
    """Yield the errors of an update that changes immutable fields."""
    for path in _FIXED.get(kind.resource, ()):
        before, after = _at(old, path), _at(new, path)
        if before is not None and before != after:
            yield invalid_value(path, after, _IMMUTABLE)
    rule = _CHANGES.get(kind.resource)
    if rule:
        yield from rule(old, new)


def _at(obj: Mapping[str, Any], path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


_FIXED = {
    ("apps", "deployments"): ("spec.selector",),
    ("apps", "replicasets"): ("spec.selector",),
    ("apps", "daemonsets"): ("spec.selector",),
    ("batch", "jobs"): ("spec.completionMode", "spec.selector", "spec.template"),
    ("", "services"): ("spec.clusterIP",),
    ("", "secrets"): ("type",),
    ("storage.k8s.io", "storageclasses"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("spec.group", "spec.names.plural", "spec.scope"),
}

_STATEFUL_SET_FREE = {
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
    "revisionHistoryLimit",
}


def _pod_causes(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    names_so_far = set()
    for index, container in enumerate(containers):
        at = f"{path}.containers[{index}]"
        if not container.get("name"):
            yield required(f"{at}.name")
        elif fault := names.namespace_name(container["name"]):
            yield invalid_value(f"{at}.name", container["name"], fault)
        elif container["name"] in names_so_far:
            message = f'Duplicate value: "{container["name"]}"'
            yield Cause(field=f"{at}.name", message=message, reason="FieldValueDuplicate")
        names_so_far.add(container.get("name"))
        if not container.get("image"):
            yield required(f"{at}.image")
    policy = spec.get("restartPolicy")
    if policy not in ("Always", "OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ["Always", "OnFailure", "Never"])


def _pod(obj: Json) -> Iterator[Cause]:
    yield from _pod_causes(obj.get("spec") or {}, "spec")


def _workload(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    selector = spec.get("selector")
    labels = _at(spec, "template.metadata.labels") or {}
    if not selector:
        yield required("spec.selector")
    if not selector or not selectors.match_labels(selector, labels):
        yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    if isinstance(spec.get("replicas"), int) and spec["replicas"] < 0:
        yield invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from _pod_causes(_at(spec, "template.spec") or {}, "spec.template.spec")
    policy = _at(spec, "template.spec.restartPolicy")
    if policy != "Always":
        yield unsupported("spec.template.spec.restartPolicy", policy, ["Always"])


def _job(obj: Json) -> Iterator[Cause]:
    spec = _at(obj, "spec.template.spec") or {}
    yield from _pod_causes(spec, "spec.template.spec")
    if spec.get("restartPolicy") == "Always":
        message = 'Required value: valid values: "OnFailure", "Never"'
        yield Cause(field="spec.template.spec.restartPolicy", message=message, reason="FieldValueRequired")


def _service(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("ports") and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(spec.get("ports") or []):
        if not isinstance(port.get("port"), int) or not 0 < port["port"] < 65536:
            why = "must be between 1 and 65535, inclusive"
            yield invalid_value(f"spec.ports[{index}].port", port.get("port"), why)


def _data_keys(obj: Json) -> Iterator[Cause]:
    for field in ("data", "binaryData"):
        for key in obj.get(field) or {}:
            if not names.is_config_key(key):
                why = (
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
                    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                )
                yield invalid_value(f"{field}[{key}]", key, why)


def _secret(obj: Json) -> Iterator[Cause]:
    yield from _data_keys(obj)
    for key, value in (obj.get("data") or {}).items():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            yield invalid_value(f"data[{key}]", "", "illegal base64 data")


def _event(obj: Json) -> Iterator[Cause]:
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if about != (obj["metadata"].get("namespace") or ""):
        yield invalid_value("involvedObject.namespace", about, "does not match event.namespace")


def _binding(obj: Json) -> Iterator[Cause]:
    role = obj.get("roleRef") or {}
    allowed = ["Role", "ClusterRole"] if obj.get("kind") == "RoleBinding" else ["ClusterRole"]
    if role.get("kind") not in allowed:
        yield unsupported("roleRef.kind", role.get("kind", ""), allowed)
    if not role.get("name"):
        yield required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or []):
        if not subject.get("name"):
            yield required(f"subjects[{index}].name")
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield required(f"subjects[{index}].namespace")


def _role(obj: Json) -> Iterator[Cause]:
    for index, rule in enumerate(obj.get("rules") or []):
        if not rule.get("verbs"):
            yield required(f"rules[{index}].verbs", "verbs must contain at least one value")
        if not rule.get("nonResourceURLs") and not rule.get("resources"):
            yield required(f"rules[{index}].resources", "resource rules must supply at least one resource")


def _definition(obj: Json) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    plural, group = _at(spec, "names.plural"), spec.get("group")
    for field in ("group", "scope"):
        if not spec.get(field):
            yield required(f"spec.{field}")
    for field in ("plural", "kind"):
        if not _at(spec, f"names.{field}"):
            yield required(f"spec.names.{field}")
    if plural and group and obj["metadata"].get("name") != f"{plural}.{group}":
        yield invalid_value("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    versions = spec.get("versions") or []
    if sum(1 for version in versions if version.get("storage")) != 1:
        yield invalid_value("spec.versions", "versions", "must have exactly one version marked as storage version")
    for index, version in enumerate(versions):
        if not _at(version, "schema.openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


def _change_config(old: Json, new: Json) -> Iterator[Cause]:
    if old.get("immutable") and any(old.get(field) != new.get(field) for field in ("data", "binaryData", "immutable")):
        yield forbidden("data", "field is immutable when `immutable` is set")


def _change_binding(old: Json, new: Json) -> Iterator[Cause]:
    if old.get("roleRef") != new.get("roleRef"):
        yield invalid_value("roleRef", new.get("roleRef"), "cannot change roleRef")


def _change_stateful_set(old: Json, new: Json) -> Iterator[Cause]:
    before = {name: value for name, value in (old.get("spec") or {}).items() if name not in _STATEFUL_SET_FREE}
    after = {name: value for name, value in (new.get("spec") or {}).items() if name not in _STATEFUL_SET_FREE}
    if before != after:
        why = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        yield forbidden("spec", why)


def _change_pod(old: Json, new: Json) -> Iterator[Cause]:
    if _fixed_pod_spec(old) != _fixed_pod_spec(new):
        why = (
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
            "negative)"
        )
        yield forbidden("spec", why)


def _fixed_pod_spec(obj: Json) -> Json:
    free = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName")
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name not in free}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{**container, "image": ""} for container in spec[field]]
    return spec


_RULES: dict[tuple[str, str], Callable[[Json], Iterator[Cause]]] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("", "events"): _event,
    ("", "configmaps"): _data_keys,
    ("", "secrets"): _secret,
    ("apps", "deployments"): _workload,
    ("apps", "replicasets"): _workload,
    ("apps", "statefulsets"): _workload,
    ("apps", "daemonsets"): _workload,
    ("batch", "jobs"): _job,
    (_RBAC, "roles"): _role,
    (_RBAC, "clusterroles"): _role,
    (_RBAC, "rolebindings"): _binding,
    (_RBAC, "clusterrolebindings"): _binding,
    ("apiextensions.k8s.io", "customresourcedefinitions"): _definition,
}
_CHANGES: dict[tuple[str, str], Callable[[Json, Json], Iterator[Cause]]] = {
    ("", "pods"): _change_pod,
    ("", "configmaps"): _change_config,
    ("", "secrets"): _change_config,
    ("apps", "statefulsets"): _change_stateful_set,
    (_RBAC, "rolebindings"): _change_binding,
    (_RBAC, "clusterrolebindings"): _change_binding,
}
