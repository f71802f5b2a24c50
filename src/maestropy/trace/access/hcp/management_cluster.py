"""Query the management cluster, and select its kubeconfig context by the name in the provision shard."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.trace.errors import NoAccess
from maestropy.trace.hcp.identity import ID_LABEL, HcpManagementCluster
from maestropy.trace.hcp.lookup import Json, text
from maestropy.trace.hcp.query import (
    Document,
    HopQuery,
    HopQueryResult,
    Topic,
    absent_result,
    found_result,
    unknown_result,
)
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

_WORK = "work.open-cluster-management.io"
_HYPERSHIFT = "hypershift.openshift.io"


def _resource(group: str, version: str, plural: str, *, kind: str, namespaced: bool) -> ResourceType:
    return ResourceType(group=group, version=version, plural=plural, kind=kind, namespaced=namespaced)


RESOURCES: Mapping[Topic, ResourceType] = {
    Topic.WORK: _resource(_WORK, "v1", "manifestworks", kind="ManifestWork", namespaced=True),
    Topic.APPLIED_WORK: _resource(_WORK, "v1", "appliedmanifestworks", kind="AppliedManifestWork", namespaced=False),
    Topic.MANAGED_CLUSTER: _resource(
        "cluster.open-cluster-management.io", "v1", "managedclusters", kind="ManagedCluster", namespaced=False
    ),
    Topic.HOSTED_CLUSTER: _resource(_HYPERSHIFT, "v1beta1", "hostedclusters", kind="HostedCluster", namespaced=True),
    Topic.NODE_POOL: _resource(_HYPERSHIFT, "v1beta1", "nodepools", kind="NodePool", namespaced=True),
    Topic.NAMESPACE: _resource("", "v1", "namespaces", kind="Namespace", namespaced=False),
    Topic.POD: _resource("", "v1", "pods", kind="Pod", namespaced=True),
}


class ManagementClusterReader:
    """The management cluster, as far as the walk reads it."""

    def __init__(self, client: KubeClient, *, label: str) -> None:
        self._client = client
        self._label = label
        self._listing = asyncio.Lock()
        self._first = asyncio.Lock()
        self._has_responded = False
        self._dead: HopQueryResult | None = None
        self._records: Sequence[str] | None = None

    async def run_query(self, query: HopQuery) -> HopQueryResult:
        """Run one query. A cluster that cannot be reached is asked once; others wait for its first response."""
        if not self._has_responded:
            async with self._first:
                if not self._has_responded:
                    return await self._run(query)
        return await self._run(query)

    async def _run(self, query: HopQuery) -> HopQueryResult:
        resource, label = RESOURCES[query.topic], self._label
        if self._dead:
            return self._dead
        try:
            items = await self._read(query, resource)
        except errors.Unreachable as error:
            self._dead = unknown_result(f"cluster {label}: {error.message}")
            return self._dead
        except errors.KubeError as error:
            self._has_responded = True
            return self._without(query, error)
        self._has_responded = True
        if not items:
            return absent_result(f"cluster {label} has no {resource.kind} of it")
        source = f"{label} {resource.plural}"
        return found_result(
            *(Document(value=item, where=f"{source}/{text(item, 'metadata', 'name')}") for item in items)
        )

    def _without(self, query: HopQuery, error: errors.KubeError) -> HopQueryResult:
        """Return the result of a query that the API server responded to with an error."""
        resource, label = RESOURCES[query.topic], self._label
        if isinstance(error, errors.NotFound):
            # A list of a kind that is not installed is a 404 too, but its message names no object.
            if query.name and f'"{query.name}" not found' in error.message:
                return absent_result(f"cluster {label} has no {resource.kind} {query.name}")
            return unknown_result(f"cluster {label} has no {resource.plural}: is it the management cluster?")
        if isinstance(error, errors.Forbidden):
            return unknown_result(f"cluster {label} does not let us read {resource.plural}: {error.message}")
        return unknown_result(f"cluster {label}: {error.message}")

    async def _read(self, query: HopQuery, resource: ResourceType) -> Sequence[Json]:
        if query.topic is Topic.APPLIED_WORK:
            names = [
                applied_work for applied_work in await self._applied_works() if applied_work.endswith(f"-{query.name}")
            ]
            return [await self._client.get(resource, name) for name in names]
        if query.name:
            return [await self._client.get(resource, query.name, namespace=query.namespace)]
        by_label = query.topic in {Topic.WORK, Topic.HOSTED_CLUSTER}
        selector = ObjectSelector(labels=f"{ID_LABEL}={query.cid}") if by_label and query.cid else ObjectSelector()
        return await self._client.list(resource, namespace=query.namespace, selector=selector)

    async def _applied_works(self) -> Sequence[str]:
        """Return the names of the agent's records, read once: they end with a bundle's id and carry no label."""
        async with self._listing:
            if self._records is None:
                resource = RESOURCES[Topic.APPLIED_WORK]
                bare = await self._client.list(resource, selector=ObjectSelector(metadata_only=True))
                self._records = [text(document, "metadata", "name") for document in bare]
        return self._records


def contexts(paths: Sequence[Path]) -> Mapping[str, str]:
    """Return the contexts of kubeconfigs with the names of their clusters; of several files, some may be missing."""
    contexts: dict[str, str] = {}
    for path in paths:
        if len(paths) == 1 or path.exists():
            contexts = {**_contexts(path), **contexts}
    return contexts


def _contexts(path: Path) -> Mapping[str, str]:
    try:
        content = yaml_documents.load(files.read(path, most=files.CONFIG_BYTES))
    except InputRejected as error:
        raise NoAccess(f"kubeconfig {path} is rejected: {error}; check --mgmt-kubeconfig") from error
    except (OSError, yaml.YAMLError) as error:
        raise NoAccess(f"kubeconfig {path} cannot be read; check --mgmt-kubeconfig") from error
    listed = content.get("contexts") if isinstance(content, Mapping) else None
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    return {text(entry, "name"): text(entry, "context", "cluster") for entry in entries if text(entry, "name")}


def choose_context(
    known: Mapping[str, str], management: HcpManagementCluster | None, *, takes_the_only_one: bool = True
) -> str:
    """Return the context of the management cluster; raise NoAccess if it cannot be determined. Pure."""
    only = next(iter(known)) if takes_the_only_one and len(known) == 1 else ""
    if management is None:
        if only:
            return only
        raise NoAccess("which management cluster it is on is not known, because no shard was read; give --mgmt-context")
    exact = [name for name, cluster in known.items() if management.name in {name, cluster}]
    if len(exact) == 1:
        return exact[0]
    ending = f"mgmt-{management.stamp}"
    stamped = [
        name
        for name, cluster in known.items()
        if management.stamp and (name.endswith(ending) or cluster.endswith(ending))
    ]
    if len(stamped) == 1:
        return stamped[0]
    if only:
        return only
    raise NoAccess(
        f"no context is named after {management.name}; give --mgmt-context (there are {', '.join(known) or 'none'})"
    )


def context_mismatch(context: str, known: Mapping[str, str], management: HcpManagementCluster | None) -> str:
    """Return a warning if the context is not named after the cluster in the shard; else empty. Pure."""
    names = {context, known.get(context, "")}
    if management is None or management.name in names:
        return ""
    if management.stamp and any(name.endswith(f"mgmt-{management.stamp}") for name in names):
        return ""
    return f"the shard names {management.name}, but the context is {context}: is it the right management cluster?"
