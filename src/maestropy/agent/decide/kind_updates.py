"""Decide which fields the `Update` strategy enforces per kind.

For most kinds an update replaces the object by the manifest. For the kinds below only some members are set and the rest
of the live object stays, because controllers, the garbage collector and certificate injectors write to it too. The
table is Maestro's, because its users rely on both.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from maestropy.agent.decide.manifest_identity import GroupVersionKind
from maestropy.wire import json_types
from maestropy.wire.json_types import Object

SPEC_HASH = "operator.openshift.io/spec-hash"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_INJECT_CA = "config.openshift.io/inject-trusted-cabundle"
_INJECT_SERVICE_CA = "service.beta.openshift.io/inject-cabundle"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  # the type of a secret, not one
_SPEC = ("spec",)

Members = dict[str, Any]
"""Members of an object to set; None removes one."""

_PORT = ("name", "protocol", "appProtocol", "port", "targetPort", "nodePort")
_SERVICE_SPEC = (
    *("ports", "selector", "clusterIP", "clusterIPs", "type", "externalIPs", "sessionAffinity", "loadBalancerIP"),
    *("loadBalancerSourceRanges", "externalName", "externalTrafficPolicy", "healthCheckNodePort"),
    *("publishNotReadyAddresses", "sessionAffinityConfig", "ipFamilies", "ipFamilyPolicy"),
    *("allocateLoadBalancerNodePorts", "loadBalancerClass", "internalTrafficPolicy", "trafficDistribution"),
)


class ConflictingDataError(Exception):
    """A Secret has different values for one key in data and stringData."""


def members_to_set(kind: GroupVersionKind, manifest: Object, *, live: Object) -> Members | None:
    """Return the members that an update sets besides metadata; None if it replaces the whole object."""
    enforce = _ENFORCED.get((kind.group, kind.kind))
    return None if enforce is None else enforce(manifest, live)


def must_recreate(kind: GroupVersionKind, manifest: Object, *, live: Object) -> bool:
    """Return whether the manifest can only be applied by deleting and creating the object."""
    match (kind.group, kind.kind):
        case ("", "Secret"):
            return _secret_type(manifest) != _secret_type(live)
        case ("storage.k8s.io", "CSIDriver"):
            desired_hash = _annotation(manifest, SPEC_HASH) or spec_hash(manifest)
            return desired_hash != _annotation(live, SPEC_HASH)
        case _:
            return False


def may_recreate(kind: GroupVersionKind) -> bool:
    """Return whether an update rejected as immutable is followed by delete and create."""
    return (kind.group, kind.kind) in (("", "Secret"), ("storage.k8s.io", "StorageClass"))


def completed(kind: GroupVersionKind, manifest: Object) -> Object:
    """Return the manifest as written: with the spec hash of some kinds, and stringData folded into data."""
    if (kind.group, kind.kind) in (("", "Service"), ("storage.k8s.io", "CSIDriver")):
        metadata = json_types.object_at(manifest, "metadata")
        annotations = {**json_types.object_at(metadata, "annotations"), SPEC_HASH: spec_hash(manifest)}
        return {**manifest, "metadata": {**metadata, "annotations": annotations}}
    if (kind.group, kind.kind) == ("", "Secret") and manifest.get("stringData"):
        return json_types.merged(manifest, {"data": _secret_data(manifest), "stringData": None})
    return manifest


def spec_hash(manifest: Object) -> str:
    """Return the hash of a spec, with the field order of the Go types."""
    spec = json_types.object_at(manifest, "spec")
    if manifest.get("kind") == "Service":
        ordered = {name: spec[name] for name in _SERVICE_SPEC if spec.get(name)}
        if "ports" in ordered:
            ordered["ports"] = [_port(port) for port in json_types.objects_at(spec, "ports")]
        spec = ordered
    return hashlib.sha256(msgspec.json.encode(spec)).hexdigest()


def _port(port: Object) -> Members:
    filled = {**port, "targetPort": port.get("targetPort", 0)}
    return {name: filled[name] for name in _PORT if filled.get(name) or name in ("port", "targetPort")}


def _take(*names: str) -> Callable[[Object, Object], Members]:
    """Enforce these members as in the manifest."""
    return lambda manifest, _: {name: manifest.get(name) for name in names}


def _config_map(manifest: Object, live: Object) -> Members:
    desired = json_types.object_at(manifest, "data")
    current = json_types.object_at(live, "data")
    is_injected = json_types.text_map_at(manifest, "metadata", "labels").get(_INJECT_CA) == "true"
    kept = {}
    if is_injected and "ca-bundle.crt" in current and "ca-bundle.crt" not in desired:
        kept["ca-bundle.crt"] = current["ca-bundle.crt"]
    ignored = {}
    if _annotation(manifest, _INJECT_SERVICE_CA) == "true" and "service-ca.crt" not in desired:
        ignored = {name: current[name] for name in ("service-ca.crt",) if name in current}
    is_same = {**desired, **kept, **ignored} == current
    # An injected key alone causes no update, but is lost when another key does.
    data = {**desired, **kept, **(ignored if is_same else {})}
    return {"data": data or None, "binaryData": manifest.get("binaryData")}


def _secret(manifest: Object, live: Object) -> Members:
    desired = _secret_data(manifest)
    if _secret_type(live) == _TOKEN:
        desired = {**json_types.object_at(live, "data"), **desired}
    return {"data": desired or None, "type": _secret_type(manifest)}


def _secret_type(secret: Object) -> str:
    return json_types.text_at(secret, "type") or "Opaque"


def _secret_data(manifest: Object) -> Members:
    data = dict(json_types.object_at(manifest, "data"))
    for name, text in json_types.text_map_at(manifest, "stringData").items():
        encoded = base64.b64encode(text.encode()).decode()
        if name in data and not _is_same_data(data[name], encoded):
            raise ConflictingDataError(f'Secret.stringData["{name}"] conflicts with Secret.data["{name}"]')
        data[name] = encoded
    return data


def _is_same_data(left: object, right: str) -> bool:
    try:
        return base64.b64decode(str(left)) == base64.b64decode(right)
    except binascii.Error:
        return False


def _service(manifest: Object, live: Object) -> Members:
    desired, current = json_types.object_at(manifest, "spec"), json_types.object_at(live, "spec")
    is_same = (
        spec_hash(manifest) == _annotation(live, SPEC_HASH)
        and (desired.get("selector") or {}) == (current.get("selector") or {})
        and desired.get("type", "ClusterIP") == current.get("type", "ClusterIP")
    )
    return {} if is_same else {"spec": desired}


def _cluster_role(manifest: Object, _: Object) -> Members:
    if manifest.get("aggregationRule"):
        # The cluster computes the rules of an aggregated role.
        return {"aggregationRule": manifest["aggregationRule"]}
    return {"rules": manifest.get("rules"), "aggregationRule": None}


def _binding(manifest: Object, _: Object) -> Members:
    subjects = [
        subject
        if subject.get("apiGroup") or subject.get("kind") == "ServiceAccount"
        else {**subject, "apiGroup": _RBAC}
        for subject in json_types.objects_at(manifest, "subjects")
    ]
    role = {**json_types.object_at(manifest, "roleRef"), "apiGroup": _RBAC}
    return {"subjects": subjects or None, "roleRef": role}


def _webhooks(manifest: Object, live: Object) -> Members:
    bundles = {
        hook.get("name"): json_types.object_at(hook, "clientConfig").get("caBundle")
        for hook in json_types.objects_at(live, "webhooks")
    }
    return {"webhooks": [_with_bundle(hook, bundles) for hook in json_types.objects_at(manifest, "webhooks")]}


def _with_bundle(hook: Object, bundles: Mapping[Any, Any]) -> Object:
    config = json_types.object_at(hook, "clientConfig")
    bundle = bundles.get(hook.get("name"))
    if config.get("caBundle") or not bundle:
        return hook
    return {**hook, "clientConfig": {**config, "caBundle": bundle}}


def _storage_class(manifest: Object, _: Object) -> Members:
    return {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata", "status")}


def _annotation(body: Object, name: str) -> str:
    return json_types.text_map_at(body, "metadata", "annotations").get(name, "")


_ENFORCED: dict[tuple[str, str], Callable[[Object, Object], Members]] = {
    ("", "Namespace"): _take(),
    ("", "Pod"): _take(),
    ("", "ServiceAccount"): _take(),
    ("", "ConfigMap"): _config_map,
    ("", "Secret"): _secret,
    ("", "Service"): _service,
    (_RBAC, "Role"): _take("rules"),
    (_RBAC, "ClusterRole"): _cluster_role,
    (_RBAC, "RoleBinding"): _binding,
    (_RBAC, "ClusterRoleBinding"): _binding,
    ("networking.k8s.io", "NetworkPolicy"): _take(*_SPEC),
    ("policy", "PodDisruptionBudget"): _take(*_SPEC),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _take(*_SPEC),
    ("storage.k8s.io", "StorageClass"): _storage_class,
    ("storage.k8s.io", "CSIDriver"): _take(*_SPEC),
    (_ADMISSION, "ValidatingWebhookConfiguration"): _webhooks,
    (_ADMISSION, "MutatingWebhookConfiguration"): _webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _take(*_SPEC),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _take(*_SPEC),
    ("monitoring.coreos.com", "ServiceMonitor"): _take(*_SPEC),
    ("monitoring.coreos.com", "PrometheusRule"): _take(*_SPEC),
    ("monitoring.coreos.com", "Alertmanager"): _take(*_SPEC),
    ("monitoring.coreos.com", "Prometheus"): _take(*_SPEC),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"): _storage_class,
}
