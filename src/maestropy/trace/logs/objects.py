"""Identify the Kubernetes objects that log records name, in whichever form they name them. Pure.

An identity is `plural namespace/name`: agents write resources (`Resource=configmaps`), manifests and events kinds.
API groups are left out, because half of the forms do not name them.
"""

import re

_RESOURCE = re.compile(r"Resource=(\S+) (?:with key )?([^/\s]*)/(\S+?)(?=:? |:?$)")
_RECORDED = re.compile(r"(?:Created|Updated|create|update) ([A-Za-z]\w*)(?:\.\S+?)?/(\S+?)(?: -n (\S+?))?(?=:?\s|:?$)")
_BY_KIND = re.compile(r"([A-Z]\w*) ([^/\s]+)/(\S+)")


def identity_of_kind(kind: str, namespace: str, name: str) -> str:
    """Return the identity of an object whose kind is known."""
    return f"{_plural(kind.lower())} {namespace}/{name}"


def identity(text: str) -> str:
    """Return the identity of the object that a record is about; empty when it names none."""
    match = _RESOURCE.search(text)
    if match:
        return f"{match.group(1)} {match.group(2)}/{match.group(3)}"
    match = _RECORDED.search(text)
    if match:
        return identity_of_kind(match.group(1), match.group(3) or "", match.group(2))
    match = _BY_KIND.fullmatch(text)
    return identity_of_kind(*match.groups()) if match else ""


def _plural(kind: str) -> str:
    if kind.endswith(("s", "x", "ch", "sh")):
        return kind if kind == "endpoints" else f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2:-1] not in "aeiou" else f"{kind}s"
