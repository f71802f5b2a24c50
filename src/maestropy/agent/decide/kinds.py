"""What does the strategy `Update` enforce on the kinds it knows?

For most kinds an update replaces the object by the manifest. For the kinds below only some members are set and the rest
of the living object stays, because others write to it too: controllers, the garbage collector, certificate injectors.
Users of Maestro rely on both, so the table is Maestro's.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from maestropy.agent.decide.identity import Kind
from maestropy.wire import jsontypes
from maestropy.wire.jsontypes import Object

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
    """A manifest says two things about one key."""


def members_to_set(kind: Kind, manifest: Object, *, live: Object) -> Members | None:
    """Return what an update sets besides metadata; None if it replaces the whole object."""
    enforce = _ENFORCED.get((kind.group, kind.kind))
    return None if enforce is None else enforce(manifest, live)


def must_recreate(kind: Kind, manifest: Object, *, live: Object) -> bool:
    """Say whether the wish can only be met by deleting the object and creating it anew."""
    match (kind.group, kind.kind):
        case ("", "Secret"):
            return _secret_type(manifest) != _secret_type(live)
        case ("storage.k8s.io", "CSIDriver"):
            wanted = _annotation(manifest, SPEC_HASH) or spec_hash(manifest)
            return wanted != _annotation(live, SPEC_HASH)
        case _:
            return False


def may_recreate(kind: Kind) -> bool:
    """Say whether an update refused as immutable is followed by deleting and creating."""
    return (kind.group, kind.kind) in (("", "Secret"), ("storage.k8s.io", "StorageClass"))


def completed(kind: Kind, manifest: Object) -> Object:
    """Return the manifest as it is written: with the hash that some kinds carry, and a secret's text as data."""
    if (kind.group, kind.kind) in (("", "Service"), ("storage.k8s.io", "CSIDriver")):
        metadata = jsontypes.object_at(manifest, "metadata")
        annotations = {**jsontypes.object_at(metadata, "annotations"), SPEC_HASH: spec_hash(manifest)}
        return {**manifest, "metadata": {**metadata, "annotations": annotations}}
    if (kind.group, kind.kind) == ("", "Secret") and manifest.get("stringData"):
        return jsontypes.merged(manifest, {"data": _secret_data(manifest), "stringData": None})
    return manifest


def spec_hash(manifest: Object) -> str:
    """Return the hash of a spec, written in the order of Kubernetes' own types."""
    spec = jsontypes.object_at(manifest, "spec")
    if manifest.get("kind") == "Service":
        ordered = {name: spec[name] for name in _SERVICE_SPEC if spec.get(name)}
        if "ports" in ordered:
            ordered["ports"] = [_port(port) for port in jsontypes.objects_at(spec, "ports")]
        spec = ordered
    return hashlib.sha256(msgspec.json.encode(spec)).hexdigest()


def _port(port: Object) -> Members:
    filled = {**port, "targetPort": port.get("targetPort", 0)}
    return {name: filled[name] for name in _PORT if filled.get(name) or name in ("port", "targetPort")}


def _take(*names: str) -> Callable[[Object, Object], Members]:
    """Enforce these members as the manifest has them."""
    return lambda manifest, _: {name: manifest.get(name) for name in names}


def _config_map(manifest: Object, live: Object) -> Members:
    wanted = jsontypes.object_at(manifest, "data")
    found = jsontypes.object_at(live, "data")
    is_injected = jsontypes.text_map_at(manifest, "metadata", "labels").get(_INJECT_CA) == "true"
    kept = {}
    if is_injected and "ca-bundle.crt" in found and "ca-bundle.crt" not in wanted:
        kept["ca-bundle.crt"] = found["ca-bundle.crt"]
    ignored = {}
    if _annotation(manifest, _INJECT_SERVICE_CA) == "true" and "service-ca.crt" not in wanted:
        ignored = {name: found[name] for name in ("service-ca.crt",) if name in found}
    is_same = {**wanted, **kept, **ignored} == found
    # What was injected is no reason for an update, and goes when another key is.
    data = {**wanted, **kept, **(ignored if is_same else {})}
    return {"data": data or None, "binaryData": manifest.get("binaryData")}


def _secret(manifest: Object, live: Object) -> Members:
    wanted = _secret_data(manifest)
    if _secret_type(live) == _TOKEN:
        wanted = {**jsontypes.object_at(live, "data"), **wanted}
    return {"data": wanted or None, "type": _secret_type(manifest)}


def _secret_type(found: Object) -> str:
    return jsontypes.text_at(found, "type") or "Opaque"


def _secret_data(manifest: Object) -> Members:
    data = dict(jsontypes.object_at(manifest, "data"))
    for name, text in jsontypes.text_map_at(manifest, "stringData").items():
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
    wanted, found = jsontypes.object_at(manifest, "spec"), jsontypes.object_at(live, "spec")
    is_same = (
        spec_hash(manifest) == _annotation(live, SPEC_HASH)
        and (wanted.get("selector") or {}) == (found.get("selector") or {})
        and wanted.get("type", "ClusterIP") == found.get("type", "ClusterIP")
    )
    return {} if is_same else {"spec": wanted}


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
        for subject in jsontypes.objects_at(manifest, "subjects")
    ]
    role = {**jsontypes.object_at(manifest, "roleRef"), "apiGroup": _RBAC}
    return {"subjects": subjects or None, "roleRef": role}


def _webhooks(manifest: Object, live: Object) -> Members:
    bundles = {
        hook.get("name"): jsontypes.object_at(hook, "clientConfig").get("caBundle")
        for hook in jsontypes.objects_at(live, "webhooks")
    }
    return {"webhooks": [_with_bundle(hook, bundles) for hook in jsontypes.objects_at(manifest, "webhooks")]}


def _with_bundle(hook: Object, bundles: Mapping[Any, Any]) -> Object:
    config = jsontypes.object_at(hook, "clientConfig")
    bundle = bundles.get(hook.get("name"))
    if config.get("caBundle") or not bundle:
        return hook
    return {**hook, "clientConfig": {**config, "caBundle": bundle}}


def _storage_class(manifest: Object, _: Object) -> Members:
    return {name: value for name, value in manifest.items() if name not in ("apiVersion", "kind", "metadata", "status")}


def _annotation(found: Object, name: str) -> str:
    return jsontypes.text_map_at(found, "metadata", "annotations").get(name, "")


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
