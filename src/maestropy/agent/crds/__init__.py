"""Install the AppliedManifestWork CRD when the cluster does not have it."""

import asyncio
from importlib import resources

import yaml

from maestropy.journal.emit import Journal
from maestropy.journal.phrases import AgentPhrase
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


class CrdNotEstablished(Exception):
    """The cluster does not serve AppliedManifestWorks."""


async def install(client: KubeClient, *, journal: Journal) -> None:
    """Create the AppliedManifestWork CRD unless it exists, and wait until it is established."""
    text = (resources.files(__name__) / "appliedmanifestworks.yaml").read_text(encoding="utf-8")
    crd: Json = yaml.safe_load(text)
    name = crd["metadata"]["name"]
    try:
        live = await client.get(_CRDS, name)
    except errors.NotFound:
        journal.info(AgentPhrase.CRD_INSTALLING)
        try:
            live = await client.create(_CRDS, crd)
        except errors.AlreadyExists:
            live = await client.get(_CRDS, name)
    for _ in range(_LOOKS):
        if _is_established(live):
            return
        await asyncio.sleep(0.1)
        live = await client.get(_CRDS, name)
    raise CrdNotEstablished(f"the CRD {name} is not established; look at its conditions")


def _is_established(crd: Json) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)
