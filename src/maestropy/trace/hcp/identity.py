"""Identifiers of a hosted control plane, in the form that each hop uses.

Pure. `parse` reads an identifier from the user; other functions derive names and find the management cluster of a
provision shard. Nothing is guessed: an unknown form is an error that lists the accepted forms.
"""

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from maestropy.trace.errors import InvalidArguments
from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.lookup import Json

PROVIDER = "Microsoft.RedHatOpenShift"
ID_LABEL = "api.openshift.com/id"

_ARM = re.compile(
    rf"/subscriptions/([\w.()-]+)/resourceGroups/([\w.()-]+)/providers/{re.escape(PROVIDER)}/hcpOpenShiftClusters/([\w.()-]+)(?=$|[/?#\s])",
    re.IGNORECASE,
)
_CID = re.compile(r"[0-9a-v]{32}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_HREF = re.compile(r"/api/(?:aro_hcp/v1alpha1|clusters_mgmt/v1)/clusters/([0-9a-v]{32})(?:/|$)")
_NAMESPACE = re.compile(r"ocm-([a-z0-9]+)-([0-9a-v]{32})(?:-([a-z0-9-]+))?")
_STAMP_IN_VAULT = re.compile(r"-(\d+)\.")
_STAMP_IN_NAME = re.compile(r"-mgmt-(\d+)$")

ACCEPTED_FORMS = (
    "an ARM resource ID "
    "(/subscriptions/S/resourceGroups/R/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/N), "
    "a Clusters Service id (32 characters 0-9a-v) or href, a bundle id (UUID), a namespace ocm-ENV-ID, "
    "or a HostedCluster as NAMESPACE/NAME"
)


class UnknownIdentifier(InvalidArguments):
    """The identifier is of no known form; the message lists the forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmId:
    """An HCP as Azure names it; compared case-insensitively."""

    subscription: str
    group: str
    name: str

    def __str__(self) -> str:
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.group}"
            f"/providers/{PROVIDER}/hcpOpenShiftClusters/{self.name}"
        )

    @property
    def key(self) -> tuple[str, str, str]:
        return self.subscription.lower(), self.group.lower(), self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIds:
    """The identifiers of the HCP that are known so far; empty if not yet."""

    arm: ArmId | None = None
    cid: str = ""
    """Its id in Clusters Service, and the label on everything below."""
    prefix: str = ""
    """Its domain prefix, which is the name of its HostedCluster."""
    environment: str = ""
    """As in the namespaces: arohcpdev, arohcpprod ..."""
    consumer: str = ""
    bundle_ids: frozenset[str] = frozenset()
    bundle_id: str = ""
    """The bundle the walk was entered by."""
    operation: str = ""
    """The ID of the current operation."""
    location: str = ""
    """The Azure region, which is part of the operation's path."""
    entry_namespace: str = ""
    """The namespace of the HostedCluster the walk was entered by."""

    @property
    def namespace(self) -> str:
        """The namespace of the HostedCluster and its NodePools."""
        derived = f"ocm-{self.environment}-{self.cid}" if self.environment and self.cid else ""
        return self.entry_namespace or derived

    @property
    def control_plane(self) -> str:
        """The namespace of the control plane pods."""
        return f"{self.namespace}-{self.prefix.replace('.', '-')}" if self.namespace and self.prefix else ""

    def with_gaps_filled(self, **values: object) -> "KnownIds":
        """Return this with the values that were missing; what is known already is not overruled by a later hop."""
        missing = {name: value for name, value in values.items() if value and not getattr(self, name)}
        return replace(self, **missing) if missing else self  # type: ignore[arg-type]  # names and types are the caller's


def parse(identifier: str) -> KnownIds:
    """Parse an identifier in any accepted form."""
    stripped = identifier.strip()
    if arm := arm_of(stripped):
        return KnownIds(arm=arm)
    if match := _HREF.search(stripped):
        return KnownIds(cid=match[1])
    if _CID.fullmatch(stripped.lower()):
        return KnownIds(cid=stripped.lower())
    if _UUID.fullmatch(stripped):
        return KnownIds(bundle_id=stripped.lower())
    namespace, slash, name = stripped.partition("/")
    if match := _NAMESPACE.fullmatch(namespace):
        known = KnownIds(cid=match[2], environment=match[1], prefix=(name if slash else match[3]) or "")
        return known if not slash or name else replace(known, prefix="")
    if slash and namespace and name and "/" not in name:
        return KnownIds(entry_namespace=namespace, prefix=name)
    raise UnknownIdentifier(f"{identifier!r} is not an identifier of a hosted control plane; give {ACCEPTED_FORMS}")


def arm_of(value: str) -> ArmId | None:
    """Return the HCP that an ARM ID, of itself or of a child, names."""
    match = _ARM.search(value)
    return ArmId(subscription=match[1], group=match[2], name=match[3]) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HcpManagementCluster:
    """The cluster on which a provision shard places its control planes."""

    name: str
    """Of the AKS cluster, or the part of it that the stamp number gives."""
    resource_id: str
    stamp: str
    found_by: str
    """`resource id`, or `stamp number`, which is a guess."""
    stamps: tuple[tuple[str, str], ...]
    """The stamp in each field."""

    @property
    def disagreement(self) -> str:
        """Name the fields with different stamps; empty if they agree."""
        if len({stamp for _, stamp in self.stamps}) < 2:
            return ""
        return "; ".join(f"{field} says {stamp}" for field, stamp in self.stamps)


def management_cluster(shard: Json) -> HcpManagementCluster | None:
    """Return the management cluster of a shard: by its resource id, else by the stamp number in the vault's name."""
    resource_id = lookup.text(shard, "azure_shard", "aks_management_cluster_resource_id")
    name = resource_id.rstrip("/").rpartition("/")[2]
    consumer = lookup.text(shard, "maestro_config", "consumer_name")
    hosts = [
        (field, urlsplit(lookup.text(shard, "azure_shard", field)).netloc)
        for field in ("cx_managed_identities_key_vault_url", "cx_secrets_key_vault_url")
    ]
    by_name = [("AKS name", _STAMP_IN_NAME.search(name)), ("consumer name", _STAMP_IN_NAME.search(consumer))]
    by_vault = [(field, _STAMP_IN_VAULT.search(host)) for field, host in hosts]
    stamps = tuple((field, match[1]) for field, match in (*by_name, *by_vault) if match)
    if name:
        own = dict(stamps).get("AKS name", "")
        return HcpManagementCluster(
            name=name, resource_id=resource_id, stamp=own, found_by="resource id", stamps=stamps
        )
    if not stamps:
        return None
    stamp = next((match[1] for _, match in by_vault if match), stamps[0][1])
    return HcpManagementCluster(
        name=f"mgmt-{stamp}", resource_id="", stamp=stamp, found_by="stamp number", stamps=stamps
    )
