"""Label selectors: read one, match it, and say as much of it as a server's search can.

    app=web,tier in (front,back),!canary,env!=prod

A server of either kind understands equality, `in` and `exists`. The rest (`!=`, `notin`, `!key`) means something else
in SQL than in Kubernetes for objects without the label, so it is left to `matches`. Pure.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from maestropy.sdk.errors import Invalid
from maestropy.wire import names

Labels = str | Mapping[str, str] | None
"""A selector as callers give it: a text, or labels that must all be there."""

_LABELS_PATH = "payload->'metadata'->'labels'"
_MAX_PUSHED = 6
"""A Go server takes ten logical operators in one search; some are ours already."""

_TERM = re.compile(
    r"\s*(?:(?P<absent>!\s*)(?P<missing>[^\s,=!()]+)"
    r"|(?P<key>[^\s,=!()]+)\s*(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<op>==|=|!=)\s*(?P<value>[^\s,=!()]*))?)\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One demand on one label."""

    key: str
    operator: str
    """`in`, `notin`, `exists` or `absent`."""
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet it, in the sense of Kubernetes."""
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
class Selector:
    """Demands that must all be met."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Say whether the labels meet all demands."""
        return all(each.matches(labels) for each in self.requirements)

    def search_terms(self) -> list[str]:
        """Return what a server can look for; it finds everything that matches, and perhaps more."""
        equal = {
            each.key: each.values[0] for each in self.requirements if each.operator == "in" and len(each.values) == 1
        }
        terms = [f"{_LABELS_PATH}@>'{json.dumps(equal, separators=(',', ':'))}'"] if equal else []
        for each in self.requirements:
            path = f"{_LABELS_PATH}->>'{each.key}'"
            if each.operator == "in" and len(each.values) > 1:
                values = ",".join(f"'{value}'" for value in each.values)
                terms.append(f"{path}in({values})")
            elif each.operator == "exists":
                terms.append(f"{path} like '%'")
        return terms[:_MAX_PUSHED]


def parse(wanted: Labels) -> Selector:
    """Read a selector; everything it names must be a good label."""
    if wanted is None:
        return Selector()
    if isinstance(wanted, Mapping):
        return Selector(tuple(_checked(key, "in", (value,)) for key, value in wanted.items()))
    requirements = []
    position = 0
    while position < len(wanted) and wanted.strip():
        found = _TERM.match(wanted, position)
        if found is None or (found.end() < len(wanted) and wanted[found.end()] != ","):
            raise Invalid(f"the label selector {wanted!r} cannot be read at {wanted[position:]!r}", advice=_HELP)
        requirements.append(_requirement(found))
        position = found.end() + 1
    if wanted.rstrip().endswith(","):
        raise Invalid(f"the label selector {wanted!r} ends with a comma", advice=_HELP)
    return Selector(tuple(requirements))


_HELP = "write it like app=web,tier in (front,back),!canary"


def _requirement(found: re.Match[str]) -> Requirement:
    if found["absent"]:
        return _checked(found["missing"], "absent", ())
    if found["set"]:
        return _checked(found["key"], found["set"], tuple(each.strip() for each in found["values"].split(",")))
    if found["op"]:
        return _checked(found["key"], "notin" if found["op"] == "!=" else "in", (found["value"],))
    return _checked(found["key"], "exists", ())


def _checked(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    problems = [f"label {key!r}: {problem}" for problem in names.qualified_name(key)]
    for value in values:
        if not isinstance(value, str):
            raise Invalid(f"the value of label {key!r} is {value!r}, which is no text", advice=_HELP)
        problems += [f"value {value!r} of label {key!r}: {problem}" for problem in names.label_value(value)]
    if problems:
        raise Invalid(problems[0], advice=_HELP)
    return Requirement(key=key, operator=operator, values=values)


def quoted(text: str) -> str:
    """Return a literal of the search language, in quotes.

    Both of its dialects write a quote inside a literal differently, so such a text is refused instead.
    """
    if "'" in text or "\\" in text or not text.isprintable():
        raise Invalid(f"{text[:64]!r} cannot be searched for", advice="leave out quotes and backslashes")
    return f"'{text}'"
