"""Find the resource of a kind: under which path the API server serves `apps/v1 Deployment`, and whether in namespaces.

The whole catalogue is read at once, in two requests where the API server offers that, and kept. A kind that is not
in it makes it be read anew, but not more often than every few seconds, however many unknown kinds are asked for.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json, split_api_version
from maestropy.kube.request import Request, ResourceType

Catalogue = Mapping[tuple[str, str], ResourceType]
"""Resources by (apiVersion, kind)."""

_AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    ",application/json"
)


class Discovery:
    """What one API server serves, as far as we know."""

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
        """Return the resource of a kind; raises UnknownKind, or the error that kept us from finding out."""
        found = self._catalogue.get((api_version, kind))
        if found is None:
            asked_at = self._monotonic()
            async with self._reading:
                if self._may_read(asked_at):
                    await self._read()
            found = self._catalogue.get((api_version, kind))
        if found is None:
            raise errors.UnknownKind(f'the server doesn\'t have a resource type "{kind}"')
        return found

    async def find(self, api_version: str, plural: str) -> ResourceType:
        """Return a resource by its name in paths; raises as `resolve` does."""
        asked_at = self._monotonic()
        found = self._named(api_version, plural)
        if found is None:
            async with self._reading:
                if self._may_read(asked_at):
                    await self._read()
            found = self._named(api_version, plural)
        if found is None:
            raise errors.UnknownKind(f'the server doesn\'t have a resource "{plural}" in {api_version}')
        return found

    def _named(self, api_version: str, plural: str) -> ResourceType | None:
        every = (found for (served, _), found in self._catalogue.items() if served == api_version)
        return next((found for found in every if found.plural == plural), None)

    def invalidate(self) -> None:
        """Forget everything: the next question is answered by the API server. For whoever changed what it serves."""
        self._catalogue = {}
        self._read_at = None
        self._invalidations += 1

    async def _read(self) -> None:
        started_at, invalidations = self._monotonic(), self._invalidations
        self._catalogue = await read_catalogue(self._client, known=self._catalogue)
        # What changed while we were reading may be missing in what we read.
        self._read_at = started_at if invalidations == self._invalidations else None

    def _may_read(self, asked_at: float) -> bool:
        """Whether what we know is too old for a question; whoever waited for another's reading shares it."""
        return self._read_at is None or asked_at - self._read_at >= self._seconds_between_reads


async def read_catalogue(client: KubeClient, *, known: Catalogue) -> Catalogue:
    """Ask the API server for all it serves; groups that do not answer keep what is `known` of them."""
    core, groups = await asyncio.gather(_ask(client, "/api"), _ask(client, "/apis"))
    if is_aggregated(core) and is_aggregated(groups):
        return {**parse_aggregated(core), **parse_aggregated(groups)}
    versions = [*_core_versions(core), *_group_versions(groups)]
    answers = await asyncio.gather(*(_ask_version(client, each) for each in versions))
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for api_version, answer in zip(versions, answers, strict=True):
        if answer is None:
            catalogue |= {key: resource for key, resource in known.items() if key[0] == api_version}
        else:
            catalogue |= parse_resource_list(answer, api_version=api_version)
    return catalogue


async def _ask(client: KubeClient, path: str) -> Json:
    return await client.send(Request(method="GET", path=path, headers=(("Accept", _AGGREGATED),)))


async def _ask_version(client: KubeClient, api_version: str) -> Json | None:
    root = "/apis" if "/" in api_version else "/api"
    try:
        return await client.send(Request(method="GET", path=f"{root}/{api_version}"))
    except (errors.ServerError, errors.NotFound, errors.Timeout):
        # A server behind the API server is down, or its group has just gone: the others are not to suffer from it.
        return None


def is_aggregated(document: Mapping[str, Any]) -> bool:
    """Whether an API server answered with the whole catalogue at once."""
    return document.get("kind") == "APIGroupDiscoveryList"


def parse_aggregated(document: Mapping[str, Any]) -> Catalogue:
    """Read an APIGroupDiscoveryList."""
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for group in _items(document, "items"):
        name = (group.get("metadata") or {}).get("name") or ""
        for version in _items(group, "versions"):
            for each in _items(version, "resources"):
                kind = (each.get("responseKind") or {}).get("kind")
                resource = ResourceType(
                    group=name,
                    version=str(version.get("version", "")),
                    plural=str(each.get("resource", "")),
                    kind=str(kind or ""),
                    namespaced=each.get("scope") == "Namespaced",
                )
                # Where several resources have one kind, the first is the one manifests mean.
                catalogue.setdefault((resource.api_version, resource.kind), resource)
    return catalogue


def parse_resource_list(document: Mapping[str, Any], *, api_version: str) -> Catalogue:
    """Read the APIResourceList of one group version."""
    group, version = split_api_version(api_version)
    catalogue: dict[tuple[str, str], ResourceType] = {}
    for each in _items(document, "resources"):
        plural, kind = str(each.get("name", "")), str(each.get("kind", ""))
        if "/" in plural:  # a subresource
            continue
        resource = ResourceType(
            group=group, version=version, plural=plural, kind=kind, namespaced=each.get("namespaced") is True
        )
        catalogue.setdefault((api_version, kind), resource)
    return catalogue


def _core_versions(document: Mapping[str, Any]) -> Iterable[str]:
    if is_aggregated(document):
        return [
            str(version.get("version")) for group in _items(document, "items") for version in _items(group, "versions")
        ]
    found = document.get("versions")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _group_versions(document: Mapping[str, Any]) -> Iterable[str]:
    return [
        str(version.get("groupVersion", ""))
        for group in _items(document, "groups")
        for version in _items(group, "versions")
    ]


def _items(parent: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    found = parent.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
