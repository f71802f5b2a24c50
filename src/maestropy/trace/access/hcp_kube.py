"""Ask the management cluster, and choose it: by the shard's word, among the contexts of a kubeconfig."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ResourceType, Selector
from maestropy.trace.errors import NoAccess
from maestropy.trace.hcp.identity import ID_LABEL, ManagementCluster
from maestropy.trace.hcp.question import Answer, Document, Question, Topic, absent, found, unknown
from maestropy.trace.hcp.reading import Json, text

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


class Management:
    """The management cluster, as far as the walk reads it."""

    def __init__(self, client: KubeClient, *, label: str) -> None:
        self._client = client
        self._label = label
        self._listing = asyncio.Lock()
        self._records: Sequence[str] | None = None

    async def answer(self, question: Question) -> Answer:
        """Answer one question."""
        resource, label = RESOURCES[question.topic], self._label
        try:
            items = await self._read(question, resource)
        except errors.NotFound as error:
            # A list of a kind that is not installed is answered 404 too, but without naming an object.
            if question.name and f'"{question.name}" not found' in error.message:
                return absent(f"cluster {label} has no {resource.kind} {question.name}")
            return unknown(f"cluster {label} has no {resource.plural}: is it the management cluster?")
        except errors.Forbidden as error:
            return unknown(f"cluster {label} does not let us read {resource.plural}: {error.message}")
        except errors.KubeError as error:
            return unknown(f"cluster {label}: {error.message}")
        if not items:
            return absent(f"cluster {label} has no {resource.kind} of it")
        where = f"{label} {resource.plural}"
        return found(*(Document(value=each, where=f"{where}/{text(each, 'metadata', 'name')}") for each in items))

    async def _read(self, question: Question, resource: ResourceType) -> Sequence[Json]:
        if question.topic is Topic.APPLIED_WORK:
            names = [each for each in await self._applied_works() if each.endswith(f"-{question.name}")]
            return [await self._client.get(resource, name) for name in names]
        if question.name:
            return [await self._client.get(resource, question.name, namespace=question.namespace)]
        by_label = question.topic in {Topic.WORK, Topic.HOSTED_CLUSTER}
        selector = Selector(labels=f"{ID_LABEL}={question.cid}") if by_label and question.cid else Selector()
        return await self._client.list(resource, namespace=question.namespace, selector=selector)

    async def _applied_works(self) -> Sequence[str]:
        """Return the names of the agent's records, read once: they end with a bundle's id and carry no label."""
        async with self._listing:
            if self._records is None:
                resource = RESOURCES[Topic.APPLIED_WORK]
                bare = await self._client.list(resource, selector=Selector(metadata_only=True))
                self._records = [text(each, "metadata", "name") for each in bare]
        return self._records


def contexts(paths: Sequence[Path]) -> Mapping[str, str]:
    """Return the contexts of kubeconfigs with the names of their clusters; of several files, some may be missing."""
    found: dict[str, str] = {}
    for path in paths:
        if len(paths) == 1 or path.exists():
            found = {**_contexts(path), **found}
    return found


def _contexts(path: Path) -> Mapping[str, str]:
    try:
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise NoAccess(f"kubeconfig {path} cannot be read; check --mgmt-kubeconfig") from error
    listed = content.get("contexts") if isinstance(content, Mapping) else None
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return {text(each, "name"): text(each, "context", "cluster") for each in entries if text(each, "name")}


def choose_context(
    known: Mapping[str, str], management: ManagementCluster | None, *, takes_the_only_one: bool = True
) -> str:
    """Return the context that leads to the management cluster; raises NoAccess if that cannot be told. Pure."""
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


def doubt(context: str, known: Mapping[str, str], management: ManagementCluster | None) -> str:
    """Say that a context is not named after the cluster the shard names; empty if it is, or nobody knows. Pure."""
    names = {context, known.get(context, "")}
    if management is None or management.name in names:
        return ""
    if management.stamp and any(each.endswith(f"mgmt-{management.stamp}") for each in names):
        return ""
    return f"the shard names {management.name}, asked was context {context}: is it the right management cluster?"
