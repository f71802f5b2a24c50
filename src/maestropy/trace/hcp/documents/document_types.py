"""Recognise the type of a document by its content; file names are ignored.

Pure. Lists are split into items, also mixed lists and lists whose items have no kind. Documents that are not part of
the walk are returned without a topic, so that a report can name them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maestropy.trace.hcp import identity, lookup
from maestropy.trace.hcp.lookup import Json
from maestropy.trace.hcp.query import Topic

SAVED = "HcpWalk"
"""The kind of the document with the time and source of a saved walk."""
TAKEN = "HcpDocuments"
"""The kind of a saved document with the results of one topic."""

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
class RecognisedDocument:
    """One document, or one item of a list."""

    topic: Topic | None
    """None: not part of the walk."""
    value: Json
    in_list: bool = False
    """Whether it was read together with others, at the same time."""
    is_absence: bool = False
    """Whether it states that there is no such object."""
    where: str = ""
    """The file it was read from."""


def recognise(document: object) -> Iterator[RecognisedDocument]:
    """Yield the documents that a document contains."""
    if isinstance(document, list):
        for item in document:
            yield from recognise(item)
    elif isinstance(document, Mapping):
        if lookup.text(document, "kind") == TAKEN:
            yield from _taken(document)
            return
        items = document.get("items")
        if isinstance(items, list) and lookup.text(document, "kind").endswith("List"):
            yield from _items(document, items)
        else:
            yield _single(document)


def _taken(document: Json) -> Iterator[RecognisedDocument]:
    topic = next((known_topic for known_topic in Topic if known_topic.value == lookup.text(document, "topic")), None)
    for entry in lookup.objects(document, "documents"):
        yield RecognisedDocument(topic=topic, value=lookup.mapping(entry, "value"), in_list=True)


def _items(document: Json, items: list[Any]) -> Iterator[RecognisedDocument]:
    kind = lookup.text(document, "kind").removesuffix("List")
    inherited = {"kind": kind} if kind else {}
    if kind and lookup.text(document, "apiVersion"):
        inherited["apiVersion"] = lookup.text(document, "apiVersion")
    if not items:
        # An empty list is a result too: there is no such object.
        yield replace(_single(_with_reference(inherited)), is_absence=True, in_list=True, value=document)
    for item in items:
        if isinstance(item, Mapping):
            for recognised in recognise({**inherited, **item}):
                yield replace(recognised, in_list=True)


def _with_reference(inherited: dict[str, str]) -> Json:
    # Lists of Clusters Service are recognised by the href of an item, which an empty list does not have.
    return inherited if "apiVersion" in inherited else {**inherited, "href": "/api/"}


def _single(value: Json) -> RecognisedDocument:
    kind, api_version = lookup.text(value, "kind"), lookup.text(value, "apiVersion")
    if api_version:
        group = api_version.rpartition("/")[0]
        return RecognisedDocument(topic=_KUBERNETES.get((group, kind)), value=value)
    if kind in _OWN_KINDS:
        return RecognisedDocument(topic=_OWN_KINDS[kind], value=value)
    if kind in {"Cluster", "NodePool"} and lookup.text(value, "href").startswith("/api/"):
        return RecognisedDocument(topic=Topic.CS_CLUSTER if kind == "Cluster" else Topic.CS_NODE_POOLS, value=value)
    return _azure(value)


def _azure(value: Json) -> RecognisedDocument:
    if lookup.text(value, "error", "code") and identity.arm_of(lookup.text(value, "error", "target")):
        return RecognisedDocument(topic=Topic.ARM_CLUSTER, value=value, is_absence=True)
    if lookup.text(value, "resourceType") and lookup.text(value, "resourceID"):
        return RecognisedDocument(topic=Topic.COSMOS, value=value)
    arm_id = lookup.text(value, "id").lower()
    if "/hcpoperationstatuses/" in arm_id:
        return RecognisedDocument(topic=Topic.OPERATION, value=value)
    is_cluster = lookup.text(value, "type").lower() == f"{identity.PROVIDER}/hcpOpenShiftClusters".lower()
    if is_cluster and identity.arm_of(arm_id):
        return RecognisedDocument(topic=Topic.ARM_CLUSTER, value=value)
    return RecognisedDocument(topic=None, value=value)
