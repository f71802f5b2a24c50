"""The one kind an agent needs on its cluster, installed when it is missing."""

import asyncio
from importlib import resources

import yaml

from maestropy.journal.emit import Journal
from maestropy.kube import errors
from maestropy.kube.client import KubeClient
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType

_CRDS = ResourceType(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
_LOOKS = 100


class NotEstablished(Exception):
    """The cluster does not serve AppliedManifestWorks."""


async def install(client: KubeClient, *, journal: Journal) -> None:
    """Create the AppliedManifestWork CRD unless it is there, and wait until it is served."""
    text = (resources.files(__name__) / "appliedmanifestworks.yaml").read_text(encoding="utf-8")
    wanted: Json = yaml.safe_load(text)
    name = wanted["metadata"]["name"]
    try:
        found = await client.get(_CRDS, name)
    except errors.NotFound:
        journal.info("installing the AppliedManifestWork CRD")
        try:
            found = await client.create(_CRDS, wanted)
        except errors.AlreadyExists:
            found = await client.get(_CRDS, name)
    for _ in range(_LOOKS):
        if _is_established(found):
            return
        await asyncio.sleep(0.1)
        found = await client.get(_CRDS, name)
    raise NotEstablished(f"the CRD {name} is not established; look at its conditions")


def _is_established(found: Json) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
