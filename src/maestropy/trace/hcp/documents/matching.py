"""Match documents of a directory to queries. Pure.

A live system answers only the query; a directory holds documents of many queries. These rules select among them as the
live systems would.
"""

from collections.abc import Callable, Mapping

from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import decode
from maestropy.trace.hcp.documents.document_types import RecognisedDocument
from maestropy.trace.hcp.identity import ID_LABEL, arm_of
from maestropy.trace.hcp.lookup import Json
from maestropy.trace.hcp.query import HopQuery, Topic


def matches(document: RecognisedDocument, query: HopQuery) -> bool:
    """Whether a document of the query's topic matches the query."""
    if document.is_absence and "items" in document.value:
        return True
    rule = _RULES.get(query.topic)
    return rule is None or rule(document.value, query)


def identity(document: RecognisedDocument) -> str:
    """Return the identifier of a document within its topic; empty if it has none."""
    value = document.value
    if lookup.name(value) and document.topic is not Topic.BUNDLE:
        return "/".join(filter(None, (lookup.namespace(value), lookup.name(value))))
    return lookup.text(value, "resourceID") or lookup.text(value, "id") or lookup.text(value, "name")


def difference(one: Json, other: Json) -> str:
    """Name the fields in which two tellings differ, outermost first."""
    names = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    shown = [f"{key} {_brief(one.get(key))} / {_brief(other.get(key))}" for key in names[:4]]
    return ", ".join(shown) + (" ..." if len(names) > 4 else "")


def _brief(value: object) -> str:
    if isinstance(value, Mapping | list):
        return "..."
    return "none" if value is None else str(value)[:40]


def _is_of_arm(arm_id: str, query: HopQuery) -> bool:
    requested, reported = arm_of(query.arm), arm_of(arm_id)
    return bool(requested and reported and requested.key == reported.key)


def _cs_cluster(value: Json, query: HopQuery) -> bool:
    if query.cid:
        return lookup.text(value, "id") == query.cid
    requested = arm_of(query.arm)
    azure = lookup.mapping(value, "azure")
    reported = [lookup.text(azure, key) for key in ("subscription_id", "resource_group_name", "resource_name")]
    return requested is not None and requested.key == tuple(part.lower() for part in reported)


def _cs_child(value: Json, query: HopQuery) -> bool:
    href = lookup.text(value, "href")
    return "/clusters/" not in href or f"/clusters/{query.cid}" in href


def _bundle(value: Json, query: HopQuery) -> bool:
    if query.name:
        return lookup.text(value, "id").lower() == query.name
    return decode.bundle(value).cid == query.cid


def _hosted_cluster(value: Json, query: HopQuery) -> bool:
    if query.name:
        return (lookup.namespace(value), lookup.name(value)) == (query.namespace, query.name)
    return lookup.label(value, ID_LABEL) == query.cid or lookup.namespace(value) == query.namespace != ""


_RULES: Mapping[Topic, Callable[[Json, HopQuery], bool]] = {
    Topic.ARM_CLUSTER: lambda value, query: _is_of_arm(
        lookup.text(value, "id") or lookup.text(value, "error", "target"), query
    ),
    Topic.OPERATION: lambda value, query: lookup.text(value, "name").lower() == query.name.lower(),
    Topic.COSMOS: lambda value, query: _is_of_arm(lookup.text(value, "resourceID"), query),
    Topic.CS_CLUSTER: _cs_cluster,
    **dict.fromkeys((Topic.CS_STATUS, Topic.CS_CHECKS, Topic.CS_NODE_POOLS), _cs_child),
    Topic.CONSUMER: lambda value, query: lookup.text(value, "name") == query.name,
    Topic.BUNDLE: _bundle,
    Topic.WORK: lambda value, query: (
        lookup.label(value, ID_LABEL) == query.cid or lookup.name(value).startswith(query.cid)
    ),
    Topic.APPLIED_WORK: lambda value, query: lookup.text(value, "spec", "manifestWorkName") == query.name,
    Topic.HOSTED_CLUSTER: _hosted_cluster,
    Topic.MANAGED_CLUSTER: lambda value, query: lookup.name(value) == query.name,
    Topic.NAMESPACE: lambda value, query: lookup.name(value) == query.name,
    Topic.NODE_POOL: lambda value, query: lookup.namespace(value) == query.namespace,
    Topic.POD: lambda value, query: lookup.namespace(value) == query.namespace,
}
