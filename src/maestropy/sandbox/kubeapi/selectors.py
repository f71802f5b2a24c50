"""Does an object match a label or field selector? Parses both and answers; refuses what it cannot read."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from maestropy.sandbox.kubeapi.kinds import Kind

Predicate = Callable[[Mapping[str, Any]], bool]


class BadSelector(Exception):
    """The selector cannot be parsed, or names a field that cannot be selected by."""


_SET = re.compile(r"^(?P<key>[^\s!=(),]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=(),<>]+)\s*(?P<op>==|!=|=)\s*(?P<value>[^\s=!(),]*)$")
_ORDER = re.compile(r"^(?P<key>[^\s!=(),<>]+)\s*(?P<op>[<>])\s*(?P<value>-?\d+)$")
_EXISTS = re.compile(r"^(?P<not>!\s*)?(?P<key>[^\s!=(),<>]+)$")
_COMMA = re.compile(r",(?![^(]*\))")

# What can be selected by besides name and namespace, per resource.
_FIELDS = {
    ("", "pods"): {"status.phase", "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.podIP"},
    ("", "namespaces"): {"status.phase"},
    ("", "secrets"): {"type"},
    ("", "nodes"): {"spec.unschedulable"},
    ("", "services"): {"spec.clusterIP", "spec.type"},
    ("", "replicationcontrollers"): {"status.replicas"},
    ("apps", "replicasets"): {"status.replicas"},
    ("batch", "jobs"): {"status.successful"},
    ("", "events"): {
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    },
}


def labels(text: str) -> Predicate | None:
    """Return a test of an object's labels; nothing where every object matches."""
    parts = [part.strip() for part in _COMMA.split(text)] if text.strip() else []
    tests = [_requirement(part) for part in parts]
    if not tests:
        return None
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def match_labels(selector: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    """Whether `present` fits a LabelSelector object; an empty selector fits everything."""
    if any(present.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(each, present) for each in selector.get("matchExpressions") or [])


def _expression(each: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    key, values = each.get("key", ""), each.get("values") or []
    match each.get("operator"):
        case "In":
            return present.get(key) in values
        case "NotIn":
            return present.get(key) not in values
        case "Exists":
            return key in present
        case "DoesNotExist":
            return key not in present
    return False


def _requirement(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key = found["key"]
        values = {value.strip() for value in found["values"].split(",")}
        if found["op"] == "in":
            return lambda present: present.get(key) in values
        return lambda present: present.get(key) not in values
    if found := _EQUAL.match(part):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda present: present.get(key) != value
        return lambda present: present.get(key) == value
    if found := _ORDER.match(part):
        return _ordered(found["key"], found["op"], int(found["value"]))
    if found := _EXISTS.match(part):
        key = found["key"]
        return (lambda present: key not in present) if found["not"] else (lambda present: key in present)
    raise BadSelector(f"unable to parse requirement: {part!r} is not a label requirement")


def _ordered(key: str, operator: str, bound: int) -> Callable[[Mapping[str, str]], bool]:
    def test(present: Mapping[str, str]) -> bool:
        try:
            value = int(present[key])
        except (KeyError, ValueError):
            return False
        return value > bound if operator == ">" else value < bound

    return test


def fields(text: str, kind: Kind) -> Predicate | None:
    """Return a test of an object's fields; nothing where every object matches."""
    allowed = {"metadata.name", "metadata.namespace"} | _FIELDS.get(kind.resource, set()) | set(kind.selectable)
    tests = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.match(r"^([^=!]+)(==|!=|=)(.*)$", part)
        if not found:
            raise BadSelector(f"invalid field selector: {part!r}; can't understand it")
        if found[1] not in allowed:
            raise BadSelector(_unknown(found[1], kind))
        tests.append((found[1].split("."), found[2] == "!=", found[3]))
    if not tests:
        return None
    return lambda obj: all((_value(obj, path) == value) is not negated for path, negated, value in tests)


def _unknown(label: str, kind: Kind) -> str:
    if kind.resource in _FIELDS or kind.custom:
        return f"field label not supported: {label}"
    return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _value(obj: Mapping[str, Any], path: list[str]) -> str:
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    if isinstance(found, bool):
        return str(found).lower()
    return "" if found is None else str(found)
