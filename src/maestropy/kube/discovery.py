"""Discover the resource type of a kind: path and scope of, for example, `apps/v1 Deployment`.

The whole catalogue is read at once, with two requests if the API server supports aggregated discovery, and cached. An
unknown kind causes a new read, at most every few seconds.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json, split_api_version
from maestropy.kube.request import ApiRequest, ResourceType

Catalogue = Mapping[tuple[str, str], ResourceType]
"""Resources by (apiVersion, kind)."""

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    ",application/json"
)


class Discovery:
    """The cached catalogue of one API server."""

    def __init__(
        self, client: KubeClient, *, monotonic: Callable[[], float], seconds_between_reads: float = 2.0
    ) -> None:
        self._client = client
        self._monotonic = monotonic
        self._seconds_between_reads = seconds_between_reads
        self._reading = asyncio.Lock()
        self._catalogue: Catalogue = {}
        self._read_at: float | None = None
        self._invalidations = 0

    async def resolve(self, api_version: str, kind: str) -> ResourceType:
        """Return the resource type of a kind; raises UnknownKind, or the error of the discovery request."""
        resource = self._catalogue.get((api_version, kind))
        if resource is None:
            requested_at = self._monotonic()
            async with self._reading:
                if self._may_read(requested_at):
                    await self._read()
            resource = self._catalogue.get((api_version, kind))
        if resource is None:
            raise errors.UnknownKind(f'the server doesn\'t have a resource type "{kind}"')
        return resource

    async def find(self, api_version: str, plural: str) -> ResourceType:
        """Return a resource type by its plural; raises as `resolve` does."""
        requested_at = self._monotonic()
        resource = self._named(api_version, plural)
        if resource is None:
            async with self._reading:
                if self._may_read(requested_at):
                    await self._read()
            resource = self._named(api_version, plural)
        if resource is None:
            raise errors.UnknownKind(f'the server doesn\'t have a resource "{plural}" in {api_version}')
        return resource

    def _named(self, api_version: str, plural: str) -> ResourceType | None:
        of_version = (resource for (served, _), resource in self._catalogue.items() if served == api_version)
        return next((resource for resource in of_version if resource.plural == plural), None)

    def invalidate(self) -> None:
        """Drop the cache, for example after a CRD has changed; the next call reads the catalogue again."""
        self._catalogue = {}
        self._read_at = None
        self._invalidations += 1

    async def _read(self) -> None:
        started_at, invalidations = self._monotonic(), self._invalidations
        self._catalogue = await read_catalogue(self._client, known=self._catalogue)
        # A change during the read may be missing in its result.
        self._read_at = started_at if invalidations == self._invalidations else None

    def _may_read(self, requested_at: float) -> bool:
        """Return whether the cache is too old for this request; a read that another caller has just made is shared."""
        return self._read_at is None or requested_at - self._read_at >= self._seconds_between_reads


async def read_catalogue(client: KubeClient, *, known: Catalogue) -> Catalogue:
    """Read all that the API server serves; groups that fail keep their `known` resources."""
    core, groups = await asyncio.gather(_get(client, "/api"), _get(client, "/apis"))
    if is_aggregated(core) and is_aggregated(groups):
        return {**parse_aggregated(core), **parse_aggregated(groups)}
    versions = [*_core_versions(core), *_group_versions(groups)]
    documents = await asyncio.gather(*(_get_version(client, item) for item in versions))
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for api_version, resource_list in zip(versions, documents, strict=True):
        if resource_list is None:
            catalogue |= {key: resource for key, resource in known.items() if key[0] == api_version}
        else:
            catalogue |= parse_resource_list(resource_list, api_version=api_version)
    return catalogue


async def _get(client: KubeClient, path: str) -> Json:
    return await client.send(ApiRequest(method="GET", path=path, headers=(("Accept", _AGGREGATED),)))


async def _get_version(client: KubeClient, api_version: str) -> Json | None:
    root = "/apis" if "/" in api_version else "/api"
    try:
        return await client.send(ApiRequest(method="GET", path=f"{root}/{api_version}"))
    except (errors.ServerError, errors.NotFound, errors.Timeout):
        # An aggregated API server is down, or its group was just removed: the other groups must not fail.
        return None


def is_aggregated(document: Mapping[str, Any]) -> bool:
    """Return whether a document is aggregated discovery."""
    return document.get("kind") == "APIGroupDiscoveryList"


def parse_aggregated(document: Mapping[str, Any]) -> Catalogue:
    """Read an APIGroupDiscoveryList."""
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for group in _items(document, "items"):
        name = (group.get("metadata") or {}).get("name") or ""
        for version in _items(group, "versions"):
            for item in _items(version, "resources"):
                kind = (item.get("responseKind") or {}).get("kind")
                resource = ResourceType(
                    group=name,
                    version=str(version.get("version", "")),
                    plural=str(item.get("resource", "")),
                    kind=str(kind or ""),
                    namespaced=item.get("scope") == "Namespaced",
                )
                # If several resources have the same kind, manifests mean the first.
                catalogue.setdefault((resource.api_version, resource.kind), resource)
    return catalogue


def parse_resource_list(document: Mapping[str, Any], *, api_version: str) -> Catalogue:
    """Read the APIResourceList of one group version."""
    group, version = split_api_version(api_version)
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for item in _items(document, "resources"):
        plural, kind = str(item.get("name", "")), str(item.get("kind", ""))
        if "/" in plural:  # a subresource
            continue
        resource = ResourceType(
            group=group, version=version, plural=plural, kind=kind, namespaced=item.get("namespaced") is True
        )
        catalogue.setdefault((api_version, kind), resource)
    return catalogue


def _core_versions(document: Mapping[str, Any]) -> Iterable[str]:
    if is_aggregated(document):
        return [
            str(version.get("version")) for group in _items(document, "items") for version in _items(group, "versions")
        ]
    resource = document.get("versions")
    return [item for item in resource if isinstance(item, str)] if isinstance(resource, list) else []


def _group_versions(document: Mapping[str, Any]) -> Iterable[str]:
    return [
        str(version.get("groupVersion", ""))
        for group in _items(document, "groups")
        for version in _items(group, "versions")
    ]


def _items(parent: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    resource = parent.get(name)
    return [item for item in resource if isinstance(item, Mapping)] if isinstance(resource, list) else []
