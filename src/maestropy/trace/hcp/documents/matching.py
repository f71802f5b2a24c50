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


def _arm_cluster(value: Json, query: HopQuery) -> bool:
    requested = arm_of(query.arm)
    reported = arm_of(lookup.text(value, "id") or lookup.text(value, "error", "target"))
    return bool(requested and reported and requested.key == reported.key)


def _operation(value: Json, query: HopQuery) -> bool:
    return lookup.text(value, "name").lower() == query.name.lower()


def _cosmos(value: Json, query: HopQuery) -> bool:
    requested, reported = arm_of(query.arm), arm_of(lookup.text(value, "resourceID"))
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


def _named(value: Json, query: HopQuery) -> bool:
    return lookup.text(value, "name") == query.name


def _work(value: Json, query: HopQuery) -> bool:
    return lookup.label(value, ID_LABEL) == query.cid or lookup.name(value).startswith(query.cid)


def _applied_work(value: Json, query: HopQuery) -> bool:
    return lookup.text(value, "spec", "manifestWorkName") == query.name


def _hosted_cluster(value: Json, query: HopQuery) -> bool:
    if query.name:
        return (lookup.namespace(value), lookup.name(value)) == (query.namespace, query.name)
    return lookup.label(value, ID_LABEL) == query.cid or lookup.namespace(value) == query.namespace != ""


def _object_named(value: Json, query: HopQuery) -> bool:
    return lookup.name(value) == query.name


def _within(value: Json, query: HopQuery) -> bool:
    return lookup.namespace(value) == query.namespace


_RULES: Mapping[Topic, Callable[[Json, HopQuery], bool]] = {
    Topic.ARM_CLUSTER: _arm_cluster,
    Topic.OPERATION: _operation,
    Topic.COSMOS: _cosmos,
    Topic.CS_CLUSTER: _cs_cluster,
    Topic.CS_STATUS: _cs_child,
    Topic.CS_CHECKS: _cs_child,
    Topic.CS_NODE_POOLS: _cs_child,
    Topic.CONSUMER: _named,
    Topic.BUNDLE: _bundle,
    Topic.WORK: _work,
    Topic.APPLIED_WORK: _applied_work,
    Topic.MANAGED_CLUSTER: _object_named,
    Topic.HOSTED_CLUSTER: _hosted_cluster,
    Topic.NODE_POOL: _within,
    Topic.NAMESPACE: _object_named,
    Topic.POD: _within,
}
