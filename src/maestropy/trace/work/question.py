"""The question: which identifier somebody has, and by what they narrow it. Pure; refuses questions without sense.

Identifiers are not matched against patterns: a database may hold any string a raw client sent. They only may not be
empty, hold a NUL (no database takes one), or be longer than any identifier can be.
"""

import re
from dataclasses import dataclass
from typing import Literal

from maestropy.trace.errors import BadQuestion

Entry = Literal["resource-id", "work-name", "manifest", "applied-work", "label", "op-id", "name-like", "file"]
MANY: frozenset[Entry] = frozenset({"label", "file"})
"""Entries that mean a set: all of it is traced, and several matches are no ambiguity."""
LONGEST = 1024
_MOST_IDS = 100_000

_SHORT_KINDS = {
    "cm": "configmap", "crd": "customresourcedefinition", "cj": "cronjob", "deploy": "deployment", "ds": "daemonset",
    "ep": "endpoints", "hc": "hostedcluster", "hpa": "horizontalpodautoscaler", "ing": "ingress", "mw": "manifestwork",
    "netpol": "networkpolicy", "np": "nodepool", "ns": "namespace", "pdb": "poddisruptionbudget", "po": "pod",
    "pv": "persistentvolume", "pvc": "persistentvolumeclaim", "rs": "replicaset", "sa": "serviceaccount",
    "sc": "storageclass", "sts": "statefulset", "svc": "service",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as somebody names it: the kind in any spelling kubectl takes."""

    kind: str
    name: str
    namespace: str = ""
    group: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The spellings of the kind to look for, in lower case; plural forms are undone."""
        given = _SHORT_KINDS.get(self.kind.lower(), self.kind.lower())
        singular = [given]
        if given.endswith("ies"):
            singular.append(given[:-3] + "y")
        if given.endswith("es"):
            singular.append(given[:-2])
        if given.endswith("s"):
            singular.append(given[:-1])
        return tuple(dict.fromkeys(singular))

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind}/{self.namespace}/{self.name}" if self.namespace else f"{kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be traced."""

    entry: Entry
    values: tuple[str, ...] = ()
    """The identifier; for `label` the key and the value, for `file` all of them."""
    manifest: Manifest | None = None
    consumer: str = ""
    source: str = ""

    @property
    def asked(self) -> str:
        """The identifier in words."""
        if self.manifest:
            return str(self.manifest)
        return "=".join(self.values) if self.entry == "label" else ", ".join(self.values[:3])


def parse_manifest(written: str) -> Manifest:
    """Read `KIND[.group]/[NS/]NAME`."""
    parts = written.split("/")
    if len(parts) not in {2, 3} or not all(parts):
        raise BadQuestion(f"--manifest {written!r} cannot be read; write KIND[.group]/[NAMESPACE/]NAME")
    kind, _, group = parts[0].partition(".")
    return Manifest(kind=kind, group=group, namespace=parts[1] if len(parts) == 3 else "", name=parts[-1])


def parse_label(written: str) -> tuple[str, str]:
    """Read `key=value`."""
    key, separator, value = written.partition("=")
    if not key or not separator:
        raise BadQuestion(f"--label {written!r} cannot be read; write KEY=VALUE")
    return key, value


def parse_list(content: str) -> tuple[str, ...]:
    """Read identifiers from a file: one a line, or the first column of a CSV; `#` begins a comment."""
    found = dict.fromkeys(
        word
        for line in content.removeprefix("\ufeff").splitlines()
        if (word := re.split(r"[,;\s]", line.partition("#")[0].strip(), maxsplit=1)[0].strip("\"'"))
    )
    found.pop("id", None)  # the head of an exported column
    if not found:
        raise BadQuestion("--file holds no identifier; write one a line")
    if len(found) > _MOST_IDS:
        raise BadQuestion(f"--file holds {len(found)} identifiers; trace at most {_MOST_IDS} in one pass")
    return tuple(found)


def checked(question: Question) -> Question:
    """Return the question, or refuse one that no database could be asked."""
    parts = [*question.values, question.consumer, question.source]
    if question.manifest:
        manifest = question.manifest
        parts += [manifest.kind, manifest.name, manifest.namespace, manifest.group]
        if not manifest.kind or not manifest.name:
            raise BadQuestion("a manifest needs its kind and its name; give --manifest-kind and --manifest-name")
    elif not question.values or not question.values[0]:
        raise BadQuestion(f"--{question.entry} is empty; give the identifier you have")
    for part in parts:
        if "\0" in part or len(part) > LONGEST or not _is_text(part):
            raise BadQuestion(f"--{question.entry} {part[:40]!r} is no identifier; nothing in Maestro can be named so")
    return question


def _is_text(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True
