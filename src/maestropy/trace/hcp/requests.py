"""Say a question of the walk as HTTP requests: each of them would do, the first that is answered counts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from maestropy.trace.hcp.identity import ID_LABEL, PROVIDER, arm_of
from maestropy.trace.hcp.question import Question, Topic

API_VERSION = "2024-06-10-preview"
"""Of the resource provider: the oldest, which every frontend serves."""
CS_ROOTS = ("/api/aro_hcp/v1alpha1", "/api/clusters_mgmt/v1")
"""Clusters Service's own root, and the old one, which still answers reads."""
PAGE_SIZE = 400
MOST_PAGES = 50
"""A list that is longer is cut, and told to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRead:
    """One GET."""

    path: str
    query: Mapping[str, str]
    is_list: bool = False
    """Whether it is answered in pages."""


def reads(question: Question, *, api_version: str = API_VERSION) -> Sequence[HttpRead]:
    """Return the requests that answer a question, the best first; none if it cannot be asked over HTTP."""
    match question.topic:
        case Topic.ARM_CLUSTER:
            return [HttpRead(path=quote(question.arm, safe="/"), query={"api-version": api_version})]
        case Topic.OPERATION:
            return _operation(question, api_version=api_version)
        case Topic.CS_CLUSTER:
            return _cluster(question)
        case Topic.CS_STATUS | Topic.CS_CHECKS | Topic.CS_NODE_POOLS | Topic.SHARD as topic:
            part = _PARTS[topic]
            is_list = topic in {Topic.CS_CHECKS, Topic.CS_NODE_POOLS}
            cluster = f"clusters/{quote(question.cid, safe='')}"
            return [HttpRead(path=f"{root}/{cluster}/{part}", query={}, is_list=is_list) for root in CS_ROOTS]
        case Topic.BUNDLE:
            return [_bundle(question)]
        case Topic.CONSUMER:
            search = f"name = '{_quoted(question.name)}'"
            return [HttpRead(path="/api/maestro/v1/consumers", query={"search": search}, is_list=True)]
        case _:
            return []


_PARTS = {
    Topic.CS_STATUS: "status",
    Topic.CS_CHECKS: "inflight_checks",
    Topic.CS_NODE_POOLS: "node_pools",
    Topic.SHARD: "provision_shard",
}


def _bundle(question: Question) -> HttpRead:
    path = "/api/maestro/v1/resource-bundles"
    if question.name:
        return HttpRead(path=f"{path}/{quote(question.name, safe='')}", query={})
    search = f"payload->'metadata'->'labels'->>'{ID_LABEL}'='{_quoted(question.cid)}'"
    return HttpRead(path=path, query={"search": search}, is_list=True)


def _operation(question: Question, *, api_version: str) -> Sequence[HttpRead]:
    arm = arm_of(question.arm)
    if arm is None:
        return []
    place = f"/subscriptions/{quote(arm.subscription)}/providers/{PROVIDER}/locations/{quote(question.namespace)}"
    path = f"{place}/hcpOperationStatuses/{quote(question.name, safe='')}"
    return [HttpRead(path=path, query={"api-version": api_version})]


def _cluster(question: Question) -> Sequence[HttpRead]:
    """Get it by id, or search in lower case, as it is written; an old service cannot search by the name."""
    arm = arm_of(question.arm)
    if question.cid or arm is None:
        cid = quote(question.cid, safe="")
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
