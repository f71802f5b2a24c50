"""Build HTTP requests for a query of the walk. The first request that is answered counts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from maestropy.trace.access.options import API_VERSION
from maestropy.trace.hcp.identity import ID_LABEL, PROVIDER, arm_of
from maestropy.trace.hcp.query import HopQuery, Topic

CS_ROOTS = ("/api/aro_hcp/v1alpha1", "/api/clusters_mgmt/v1")
"""The current root of Clusters Service, and the old one, which still serves reads."""
PAGE_SIZE = 400
MOST_PAGES = 50
"""A longer list is truncated, with a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRead:
    """One GET."""

    path: str
    query: Mapping[str, str]
    is_list: bool = False
    """Whether the response is paged."""


def reads(query: HopQuery, *, api_version: str = API_VERSION) -> Sequence[HttpRead]:
    """Return the HTTP requests of a query, the best first; empty if it cannot be run over HTTP."""
    match query.topic:
        case Topic.ARM_CLUSTER:
            return [HttpRead(path=quote(query.arm, safe="/"), query={"api-version": api_version})]
        case Topic.OPERATION:
            return _operation(query, api_version=api_version)
        case Topic.CS_CLUSTER:
            return _cluster(query)
        case Topic.CS_STATUS | Topic.CS_CHECKS | Topic.CS_NODE_POOLS | Topic.SHARD as topic:
            part = _PARTS[topic]
            is_list = topic in {Topic.CS_CHECKS, Topic.CS_NODE_POOLS}
            cluster = f"clusters/{quote(query.cid, safe='')}"
            return [HttpRead(path=f"{root}/{cluster}/{part}", query={}, is_list=is_list) for root in CS_ROOTS]
        case Topic.BUNDLE:
            return [_bundle(query)]
        case Topic.CONSUMER:
            search = f"name = '{_quoted(query.name)}'"
            return [HttpRead(path="/api/maestro/v1/consumers", query={"search": search}, is_list=True)]
        case _:
            return []


_PARTS = {
    Topic.CS_STATUS: "status",
    Topic.CS_CHECKS: "inflight_checks",
    Topic.CS_NODE_POOLS: "node_pools",
    Topic.SHARD: "provision_shard",
}


def _bundle(query: HopQuery) -> HttpRead:
    path = "/api/maestro/v1/resource-bundles"
    if query.name:
        return HttpRead(path=f"{path}/{quote(query.name, safe='')}", query={})
    search = f"payload->'metadata'->'labels'->>'{ID_LABEL}'='{_quoted(query.cid)}'"
    return HttpRead(path=path, query={"search": search}, is_list=True)


def _operation(query: HopQuery, *, api_version: str) -> Sequence[HttpRead]:
    arm = arm_of(query.arm)
    if arm is None:
        return []
    system = f"/subscriptions/{quote(arm.subscription)}/providers/{PROVIDER}/locations/{quote(query.namespace)}"
    path = f"{system}/hcpOperationStatuses/{quote(query.name, safe='')}"
    return [HttpRead(path=path, query={"api-version": api_version})]


def _cluster(query: HopQuery) -> Sequence[HttpRead]:
    """Get it by ID, or search by lower-case names; an older service cannot search by resource name."""
    arm = arm_of(query.arm)
    if query.cid or arm is None:
        cid = quote(query.cid, safe="")
        return [HttpRead(path=f"{root}/clusters/{cid}", query={}) for root in CS_ROOTS if cid]
    subscription, group, name = map(_quoted, arm.key)
    wide = f"azure.subscription_id='{subscription}' and azure.resource_group_name='{group}'"
    searches = (f"{wide} and azure.resource_name='{name}'", wide)
    return [
        HttpRead(path=f"{root}/clusters", query={"search": search}, is_list=True)
        for search in searches
        for root in CS_ROOTS
    ]


def _quoted(text: str) -> str:
    return text.replace("'", "''")
