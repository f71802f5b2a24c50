"""Tell what a document is by its content; file names mean nothing.

Pure. Lists are taken apart, also mixed ones and those whose items leave out their kind. What is not part of the walk
is returned as such, so that a report can say what it did not use.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maestropy.trace.hcp import identity, reading
from maestropy.trace.hcp.question import Topic
from maestropy.trace.hcp.reading import Json

SAVED = "HcpWalk"
"""The kind of the document that `--save` writes beside the others: when and how they were taken."""
TAKEN = "HcpDocuments"
"""The kind of the documents that `--save` writes: what was told about one topic."""

_OWN_KINDS = {
    "ResourceBundle": Topic.BUNDLE,
    "Consumer": Topic.CONSUMER,
    "ClusterStatus": Topic.CS_STATUS,
    "InflightCheck": Topic.CS_CHECKS,
    "ProvisionShard": Topic.SHARD,
}
_KUBERNETES = {
    ("work.open-cluster-management.io", "ManifestWork"): Topic.WORK,
    ("work.open-cluster-management.io", "AppliedManifestWork"): Topic.APPLIED_WORK,
    ("cluster.open-cluster-management.io", "ManagedCluster"): Topic.MANAGED_CLUSTER,
    ("hypershift.openshift.io", "HostedCluster"): Topic.HOSTED_CLUSTER,
    ("hypershift.openshift.io", "NodePool"): Topic.NODE_POOL,
    ("", "Namespace"): Topic.NAMESPACE,
    ("", "Pod"): Topic.POD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognised:
    """One document, or one item of a list."""

    topic: Topic | None
    """None: not part of the walk."""
    value: Json
    in_list: bool = False
    """Whether it was taken together with others, at one moment."""
    is_refusal: bool = False
    """Whether it says that there is none."""


def recognise(document: object) -> Iterator[Recognised]:
    """Yield what a document holds."""
    if isinstance(document, list):
        for each in document:
            yield from recognise(each)
    elif isinstance(document, Mapping):
        if reading.text(document, "kind") == TAKEN:
            yield from _taken(document)
            return
        items = document.get("items")
        if isinstance(items, list) and reading.text(document, "kind").endswith("List"):
            yield from _items(document, items)
        else:
            yield _single(document)


def _taken(document: Json) -> Iterator[Recognised]:
    topic = next((each for each in Topic if each.value == reading.text(document, "topic")), None)
    for each in reading.objects(document, "documents"):
        yield Recognised(topic=topic, value=reading.mapping(each, "value"), in_list=True)


def _items(document: Json, items: list[Any]) -> Iterator[Recognised]:
    kind = reading.text(document, "kind").removesuffix("List")
    inherited = {"kind": kind} if kind else {}
    if kind and reading.text(document, "apiVersion"):
        inherited["apiVersion"] = reading.text(document, "apiVersion")
    if not items:
        # An empty list is an answer too: there is none.
        yield replace(_single(_with_reference(inherited)), is_refusal=True, in_list=True, value=document)
    for each in items:
        if isinstance(each, Mapping):
            for found in recognise({**inherited, **each}):
                yield replace(found, in_list=True)


def _with_reference(inherited: dict[str, str]) -> Json:
    # Clusters Service's lists are told from Kubernetes' by their href; an empty one has no item to tell by.
    return inherited if "apiVersion" in inherited else {**inherited, "href": "/api/"}


def _single(value: Json) -> Recognised:
    kind, api_version = reading.text(value, "kind"), reading.text(value, "apiVersion")
    if api_version:
        group = api_version.rpartition("/")[0]
        return Recognised(topic=_KUBERNETES.get((group, kind)), value=value)
    if kind in _OWN_KINDS:
        return Recognised(topic=_OWN_KINDS[kind], value=value)
    if kind in {"Cluster", "NodePool"} and reading.text(value, "href").startswith("/api/"):
        return Recognised(topic=Topic.CS_CLUSTER if kind == "Cluster" else Topic.CS_NODE_POOLS, value=value)
    return _azure(value)


def _azure(value: Json) -> Recognised:
    if reading.text(value, "error", "code") and identity.arm_of(reading.text(value, "error", "target")):
        return Recognised(topic=Topic.ARM_CLUSTER, value=value, is_refusal=True)
    if reading.text(value, "resourceType") and reading.text(value, "resourceID"):
        return Recognised(topic=Topic.COSMOS, value=value)
    arm_id = reading.text(value, "id").lower()
    if "/hcpoperationstatuses/" in arm_id:
        return Recognised(topic=Topic.OPERATION, value=value)
    is_cluster = reading.text(value, "type").lower() == f"{identity.PROVIDER}/hcpOpenShiftClusters".lower()
    if is_cluster and identity.arm_of(arm_id):
        return Recognised(topic=Topic.ARM_CLUSTER, value=value)
    return Recognised(topic=None, value=value)
