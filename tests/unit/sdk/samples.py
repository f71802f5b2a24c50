"""Manifests and resource bundles for the SDK tests."""

from typing import Any

HOSTED: dict[str, Any] = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "HostedCluster",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
}
SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
}


def value(name: str, kind: str, content: Any) -> dict[str, Any]:
    return {"name": name, "fieldValue": {"type": kind, kind[:1].lower() + kind[1:]: content}}


def reported(manifest: dict[str, Any], *values: dict[str, Any], conditions: Any = ()) -> dict[str, Any]:
    meta = {"ordinal": 0, "kind": manifest["kind"], "name": manifest["metadata"]["name"]}
    return {"resourceMeta": meta, "statusFeedback": {"values": list(values)}, "conditions": list(conditions)}


def bundle(manifest: dict[str, Any], *values: dict[str, Any], version: int = 1) -> dict[str, Any]:
    return {
        "id": "u1",
        "version": version,
        "consumer_name": "c1",
        "metadata": {"name": "w", "namespace": "c1", "uid": "u1"},
        "manifests": [manifest],
        "status": {
            "ObservedVersion": 1,
            "SequenceID": "1",
            "conditions": [{"type": "Applied", "status": "True", "reason": "R", "message": ""}],
            "resourceStatus": [reported(manifest, *values)],
        },
    }
