"""Parse label selectors, match labels, and translate a selector to search terms of the REST API.

    app=web,tier in (front,back),!canary,env!=prod

The search of a Go or Python server supports equality, `in` and `exists`. The other operators (`!=`, `notin`, `!key`)
treat objects without the label differently in SQL than in Kubernetes, so only `matches` evaluates them. Pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.sdk.errors import Invalid
from maestropy.wire import kubernetes_names

Labels = str | Mapping[str, str] | None
"""A selector as callers give it: a string, or labels that must all be set."""

_LABELS_PATH = "payload->'metadata'->'labels'"
_MAX_PUSHED = 6
"""A Go server allows ten logical operators in one search; the client uses some itself."""

_TERM = re.compile(
    r"\s*(?:(?P<absent>!\s*)(?P<missing>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<op>==|=|!=)\s*(?P<value>[^\s,=!()]*))?)\s*"
)


class InvalidSelector(Invalid):
    """A label selector is malformed; on a command line, a mistake of its user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One requirement on one label."""

    key: str
    operator: str
    """`in`, `notin`, `exists` or `absent`."""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet the requirement, as Kubernetes evaluates it."""
        match self.operator:
            case "in":
                return labels.get(self.key) in self.values
            case "notin":
                return labels.get(self.key) not in self.values
            case "exists":
                return self.key in labels
            case _:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that must all be met."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels meet all requirements."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def has_index(self) -> bool:
        """Whether an index of the server serves one of the requirements; otherwise it reads every object."""
        return any(requirement.operator == "in" for requirement in self.requirements)

    def search_terms(self) -> list[str]:
        """Return terms for the server's search; it finds every match, and possibly more."""
        equal = {
            requirement.key: requirement.values[0]
            for requirement in self.requirements
            if requirement.operator == "in" and len(requirement.values) == 1
        }
        terms = [f"{_LABELS_PATH}@>'{json.dumps(equal, separators=(',', ':'))}'"] if equal else []
        for requirement in self.requirements:
            path = f"{_LABELS_PATH}->>'{requirement.key}'"
            if requirement.operator == "in" and len(requirement.values) > 1:
                values = ",".join(f"'{value}'" for value in requirement.values)
                terms.append(f"{path}in({values})")
            elif requirement.operator == "exists":
                terms.append(f"{path} like '%'")
        return terms[:_MAX_PUSHED]


def parse(labels: Labels) -> LabelSelector:
    """Parse a selector; every label in it must be valid."""
    if labels is None:
        return LabelSelector()
    if isinstance(labels, Mapping):
        return LabelSelector(tuple(_checked(key, "in", (value,)) for key, value in labels.items()))
    requirements = []
    position = 0
    while position < len(labels) and labels.strip():
        term = _TERM.match(labels, position)
        if term is None or (term.end() < len(labels) and labels[term.end()] != ","):
            raise InvalidSelector(
                f"the label selector {labels!r} cannot be read at {labels[position:]!r}", advice=_HELP
            )
        requirements.append(_requirement(term))
        position = term.end() + 1
    if labels.rstrip().endswith(","):
        raise InvalidSelector(f"the label selector {labels!r} ends with a comma", advice=_HELP)
    return LabelSelector(tuple(requirements))


_HELP = "write it like app=web,tier in (front,back),!canary"


def _requirement(term: re.Match[str]) -> Requirement:
    if term["absent"]:
        return _checked(term["missing"], "absent", ())
    if term["set"]:
        return _checked(term["key"], term["set"], tuple(value.strip() for value in term["values"].split(",")))
    if term["op"]:
        return _checked(term["key"], "notin" if term["op"] == "!=" else "in", (term["value"],))
    return _checked(term["key"], "exists", ())


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    problems = [f"label {key!r}: {problem}" for problem in kubernetes_names.qualified_name(key)]
    for value in values:
        if not isinstance(value, str):
            raise InvalidSelector(f"the value of label {key!r} is {value!r}, which is not a string", advice=_HELP)
        problems += [f"value {value!r} of label {key!r}: {problem}" for problem in kubernetes_names.label_value(value)]
    if problems:
        raise InvalidSelector(problems[0], advice=_HELP)
    return Requirement(key=key, operator=operator, values=values)


def quoted(text: str) -> str:
    """Return a literal of the search language, in quotes.

    The two dialects of the language escape a quote differently, so a text with a quote is rejected.
    """
    if "'" in text or "\\" in text or not text.isprintable():
        raise Invalid(f"{text[:64]!r} cannot be searched for", advice="leave out quotes and backslashes")
    return f"'{text}'"
