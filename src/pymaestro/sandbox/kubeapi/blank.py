"""What does an object look like that holds nothing? The state ownership of a new object is counted from.

Fields that are structs, not pointers to structs, are always there in Kubernetes' own types; nobody comes to own them by
writing something inside. The published schemas do not tell which ones these are, so the ones clients meet are listed.
"""

import functools
from typing import Any

from pymaestro.sandbox.kubeapi.kinds import Kind
from pymaestro.sandbox.kubeapi.schema import Schema

Json = dict[str, Any]
_ALWAYS_THERE = {
    "core.v1.PodTemplateSpec": {"metadata", "spec"},
    "batch.v1.JobTemplateSpec": {"metadata", "spec"},
    "apps.v1.DeploymentSpec": {"strategy"},
    "apps.v1.ReplicaSetSpec": {"template"},
    "apps.v1.StatefulSetSpec": {"updateStrategy"},
    "apps.v1.DaemonSetSpec": {"updateStrategy"},
    "networking.v1.NetworkPolicySpec": {"podSelector"},
    "core.v1.ServiceStatus": {"loadBalancer"},
    "core.v1.PersistentVolumeClaimSpec": {"resources"},
    "apiextensions.v1.CustomResourceDefinitionSpec": {"names"},
}
_TOP = {"metadata", "spec", "status"}


def blank(kind: Kind) -> Json:
    """Return an object of this kind in which nothing is set."""
    empty = {} if kind.custom else _blank_kind(kind.schema)
    return {**empty, "metadata": {}}


@functools.cache
def _blank_kind(schema: Schema) -> Json:
    return _blank(schema, _TOP)


def _blank(schema: Schema, always: set[str]) -> Json:
    made: Json = {}
    for name, child in schema.fields.items():
        if name in schema.required or name in always:
            if child.type == "object":
                made[name] = _blank(child, _ALWAYS_THERE.get(child.name, set()))
            elif child.type in ("list", "map"):
                made[name] = None
    return made
