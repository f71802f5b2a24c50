"""Parse label selectors and field selectors into predicates over objects. Pure."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind

Predicate = Callable[[Mapping[str, Any]], bool]


class BadSelector(Exception):
    """The selector cannot be parsed, or uses an unsupported field."""


_SET = re.compile(r"^(?P<key>[^\s!=(),]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=(),<>]+)\s*(?P<op>==|!=|=)\s*(?P<value>[^\s=!(),]*)$")
_ORDER = re.compile(r"^(?P<key>[^\s!=(),<>]+)\s*(?P<op>[<>])\s*(?P<value>-?\d+)$")
_EXISTS = re.compile(r"^(?P<not>!\s*)?(?P<key>[^\s!=(),<>]+)$")
_COMMA = re.compile(r",(?![^(]*\))")

# Supported field selectors per resource, besides name and namespace.
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
    """Return a predicate for a label selector; None if every object matches."""
    parts = [part.strip() for part in _COMMA.split(text)] if text.strip() else []
    tests = [_requirement(part) for part in parts]
    if not tests:
        return None
    return lambda obj: all(test(obj["metadata"].get("labels") or {}) for test in tests)


def match_labels(selector: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    """Whether the labels `present` match a LabelSelector object; an empty selector matches everything."""
    if any(present.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_expression(expression, present) for expression in selector.get("matchExpressions") or [])


def _expression(expression: Mapping[str, Any], present: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or []
    match expression.get("operator"):
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
    if match := _SET.match(part):
        key = match["key"]
        values = {value.strip() for value in match["values"].split(",")}
        if match["op"] == "in":
            return lambda present: present.get(key) in values
        return lambda present: present.get(key) not in values
    if match := _EQUAL.match(part):
        key, value = match["key"], match["value"]
        if match["op"] == "!=":
            return lambda present: present.get(key) != value
        return lambda present: present.get(key) == value
    if match := _ORDER.match(part):
        return _ordered(match["key"], match["op"], int(match["value"]))
    if match := _EXISTS.match(part):
        key = match["key"]
        return (lambda present: key not in present) if match["not"] else (lambda present: key in present)
    raise BadSelector(f"unable to parse requirement: {part!r} is not a label requirement")


def _ordered(key: str, operator: str, bound: int) -> Callable[[Mapping[str, str]], bool]:
    def test(present: Mapping[str, str]) -> bool:
        try:
            value = int(present[key])
        except (KeyError, ValueError):
            return False
        return value > bound if operator == ">" else value < bound

    return test


def fields(text: str, kind: ServedKind) -> Predicate | None:
    """Return a predicate for a field selector; None if every object matches."""
    allowed = {"metadata.name", "metadata.namespace"} | _FIELDS.get(kind.resource, set()) | set(kind.selectable)
    tests = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.match(r"^([^=!]+)(==|!=|=)(.*)$", part)
        if not match:
            raise BadSelector(f"invalid field selector: {part!r}; can't understand it")
        if match[1] not in allowed:
            raise BadSelector(_unknown(match[1], kind))
        tests.append((match[1].split("."), match[2] == "!=", match[3]))
    if not tests:
        return None
    return lambda obj: all((_value(obj, path) == value) is not negated for path, negated, value in tests)


def _unknown(label: str, kind: ServedKind) -> str:
    if kind.resource in _FIELDS or kind.is_custom:
        return f"field label not supported: {label}"
    return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _value(obj: Mapping[str, Any], path: list[str]) -> str:
    value: Any = obj
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
