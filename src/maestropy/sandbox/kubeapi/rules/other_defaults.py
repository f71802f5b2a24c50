"""Default the fields of kinds that works seldom contain. Pure; `defaults` has the other kinds."""

from collections.abc import Callable
from typing import Any

from maestropy.sandbox.kubeapi.rules.pod_defaults import filled

Json = dict[str, Any]


def _storage_class(obj: Json) -> Json:
    return filled(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _limit_range(obj: Json) -> Json:
    limits = []
    for limit in (obj.get("spec") or {}).get("limits") or []:
        completed = {**limit, "default": {**(limit.get("max") or {}), **(limit.get("default") or {})}}
        completed["defaultRequest"] = {
            **completed["default"],
            **(limit.get("min") or {}),
            **(limit.get("defaultRequest") or {}),
        }
        limits.append(completed if limit.get("type") == "Container" else limit)
    return {**obj, "spec": {"limits": limits}}


def _endpoints(obj: Json) -> Json:
    subsets = [
        {**subset, "ports": [filled(port, protocol="TCP") for port in subset["ports"]]} if "ports" in subset else subset
        for subset in obj.get("subsets") or []
    ]
    return {**obj, "subsets": subsets} if subsets else obj


def _endpoint_slice(obj: Json) -> Json:
    ports = [filled(port, name="", protocol="TCP") for port in obj.get("ports") or []]
    return {**obj, "ports": ports} if ports else obj


def _priority_class(obj: Json) -> Json:
    return filled(obj, preemptionPolicy="PreemptLowerPriority")


def _validating(obj: Json) -> Json:
    return _webhooks(obj)


def _mutating(obj: Json) -> Json:
    return _webhooks(obj, reinvocationPolicy="Never")


def _webhooks(obj: Json, **more: Any) -> Json:
    hooks = [
        filled(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
            **more,
        )
        for hook in obj.get("webhooks") or []
    ]
    return {**obj, "webhooks": hooks} if hooks else obj


RULES: dict[tuple[str, str], Callable[[Json], Json]] = {
    ("", "limitranges"): _limit_range,
    ("", "endpoints"): _endpoints,
    ("discovery.k8s.io", "endpointslices"): _endpoint_slice,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("storage.k8s.io", "storageclasses"): _storage_class,
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _validating,
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _mutating,
}
