"""Which documents answer which question. Pure.

A place that is asked answers only what was asked; a directory holds answers to everything, and these are the rules
that the places would have used.
"""

from collections.abc import Callable, Mapping

from maestropy.trace.hcp import decode, reading
from maestropy.trace.hcp.identity import ID_LABEL, arm_of
from maestropy.trace.hcp.question import Question, Topic
from maestropy.trace.hcp.reading import Json
from maestropy.trace.hcp.recognise import Recognised


def matches(found: Recognised, question: Question) -> bool:
    """Whether a document of the question's topic answers it."""
    if found.is_refusal and "items" in found.value:
        return True
    rule = _RULES.get(question.topic)
    return rule is None or rule(found.value, question)


def identity(found: Recognised) -> str:
    """Return what tells a thing from others of its topic, empty if nothing does."""
    value = found.value
    if reading.name(value) and found.topic is not Topic.BUNDLE:
        return "/".join(filter(None, (reading.namespace(value), reading.name(value))))
    return reading.text(value, "resourceID") or reading.text(value, "id") or reading.text(value, "name")


def difference(one: Json, other: Json) -> str:
    """Name the fields in which two tellings differ, outermost first."""
    names = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    shown = [f"{key} {_brief(one.get(key))} / {_brief(other.get(key))}" for key in names[:4]]
    return ", ".join(shown) + (" ..." if len(names) > 4 else "")


def _brief(value: object) -> str:
    if isinstance(value, Mapping | list):
        return "..."
    return "none" if value is None else str(value)[:40]


def _arm_cluster(value: Json, question: Question) -> bool:
    asked = arm_of(question.arm)
    told = arm_of(reading.text(value, "id") or reading.text(value, "error", "target"))
    return bool(asked and told and asked.key == told.key)


def _operation(value: Json, question: Question) -> bool:
    return reading.text(value, "name").lower() == question.name.lower()


def _cosmos(value: Json, question: Question) -> bool:
    asked, told = arm_of(question.arm), arm_of(reading.text(value, "resourceID"))
    return bool(asked and told and asked.key == told.key)


def _cs_cluster(value: Json, question: Question) -> bool:
    if question.cid:
        return reading.text(value, "id") == question.cid
    asked = arm_of(question.arm)
    azure = reading.mapping(value, "azure")
    told = [reading.text(azure, key) for key in ("subscription_id", "resource_group_name", "resource_name")]
    return asked is not None and asked.key == tuple(each.lower() for each in told)


def _cs_child(value: Json, question: Question) -> bool:
    href = reading.text(value, "href")
    return "/clusters/" not in href or f"/clusters/{question.cid}" in href


def _bundle(value: Json, question: Question) -> bool:
    if question.name:
        return reading.text(value, "id").lower() == question.name
    return decode.bundle(value).cid == question.cid


def _named(value: Json, question: Question) -> bool:
    return reading.text(value, "name") == question.name


def _work(value: Json, question: Question) -> bool:
    return reading.label(value, ID_LABEL) == question.cid or reading.name(value).startswith(question.cid)


def _applied_work(value: Json, question: Question) -> bool:
    return reading.text(value, "spec", "manifestWorkName") == question.name


def _hosted_cluster(value: Json, question: Question) -> bool:
    if question.name:
        return (reading.namespace(value), reading.name(value)) == (question.namespace, question.name)
    return reading.label(value, ID_LABEL) == question.cid or reading.namespace(value) == question.namespace != ""


def _object_named(value: Json, question: Question) -> bool:
    return reading.name(value) == question.name


def _within(value: Json, question: Question) -> bool:
    return reading.namespace(value) == question.namespace


_RULES: Mapping[Topic, Callable[[Json, Question], bool]] = {
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
