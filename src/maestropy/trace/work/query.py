"""The query of a work trace: one identifier, narrowed by consumer and source. Pure; rejects invalid queries.

Identifiers are not matched against patterns: the database may hold any string that a raw client sent. They must not be
empty, contain a NUL (PostgreSQL stores none), or be longer than any identifier can be.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Literal, TypedDict, Unpack

from maestropy.trace.errors import InvalidArguments

Entry = Literal["resource-id", "work-name", "manifest", "applied-work", "label", "op-id", "name-like", "file"]
MANY: frozenset[Entry] = frozenset({"label", "file"})
"""Entries that mean a set: all of it is traced, and several matches are no ambiguity."""
LONGEST = 1024
_MOST_IDS = 100_000
_RESOURCE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_APPLIED_WORK = re.compile(r"[0-9a-f]{64}-.+")

_SHORT_KINDS = {
    "cm": "configmap", "crd": "customresourcedefinition", "cj": "cronjob", "deploy": "deployment", "ds": "daemonset",
    "ep": "endpoints", "hc": "hostedcluster", "hpa": "horizontalpodautoscaler", "ing": "ingress", "mw": "manifestwork",
    "netpol": "networkpolicy", "np": "nodepool", "ns": "namespace", "pdb": "poddisruptionbudget", "po": "pod",
    "pv": "persistentvolume", "pvc": "persistentvolumeclaim", "rs": "replicaset", "sa": "serviceaccount",
    "sc": "storageclass", "sts": "statefulset", "svc": "service",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestQuery:
    """A manifest as the user names it: the kind in any spelling that kubectl accepts."""

    kind: str
    name: str
    namespace: str = ""
    group: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The possible spellings of the kind, in lower case and singular."""
        kind = _SHORT_KINDS.get(self.kind.lower(), self.kind.lower())
        singular = [kind]
        if kind.endswith("ies"):
            singular.append(kind[:-3] + "y")
        if kind.endswith("es"):
            singular.append(kind[:-2])
        if kind.endswith("s"):
            singular.append(kind[:-1])
        return tuple(dict.fromkeys(singular))

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind}/{self.namespace}/{self.name}" if self.namespace else f"{kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQuery:
    """What is to be traced."""

    entry: Entry
    values: tuple[str, ...] = ()
    """The identifier; for `label` the key and the value, for `file` all of them."""
    manifest: ManifestQuery | None = None
    consumer: str = ""
    source: str = ""
    searches_all: bool = False
    """Search all works, however long that takes; otherwise a scan ends after a part of a second."""

    @property
    def requested(self) -> str:
        if self.manifest:
            return str(self.manifest)
        return "=".join(self.values) if self.entry == "label" else ", ".join(self.values[:3])


class WorkIdentifier(TypedDict, total=False):
    """The keyword arguments that name a work: exactly one identifier, and what narrows it."""

    resource_id: str
    work_name: str
    manifest: str | ManifestQuery
    """`KIND[.group]/[NAMESPACE/]NAME`."""
    applied_work: str
    label: str
    """`KEY=VALUE`: all works that have it."""
    op_id: str
    name_like: str
    """A part of a work's name: the newest ten."""
    resource_ids: Sequence[str]
    """Many resource IDs in one pass."""
    consumer: str
    source: str
    search_all: bool
    """Search all works; by default a search that no index helps ends after a part of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTraceOptions:
    """How much of a work is read."""

    live: bool | None = None
    """Read every object on the cluster; None: yes, up to 100 works."""
    nested: bool = True
    """Follow ManifestWorks within works, two levels down."""
    compare: bool = False
    """Compare live objects with their manifests, field by field."""
    broker_host: str = ""
    """The agents' broker, HOST:PORT: checks the hub hash."""
    zone: tzinfo | None = UTC
    """The time zone of times in texts; None is this computer's."""
    is_quiet: bool = False
    """Show no warnings; confirmations are still asked for."""


def from_identifier(**identifier: Unpack[WorkIdentifier]) -> WorkQuery:
    """Return the query for one identifier; raise InvalidArguments if there is none, or more than one."""
    queries = _queries(identifier)
    if len(queries) != 1:
        problem = "none is given" if not queries else "given are " + ", ".join(f"--{query.entry}" for query in queries)
        raise InvalidArguments(
            f"give exactly one of --resource-id, --work-name, --manifest, --applied-work, --label, --op-id, "
            f"--name-like, --file; {problem}"
        )
    narrowed = replace(
        queries[0],
        consumer=identifier.get("consumer", ""),
        source=identifier.get("source", ""),
        searches_all=identifier.get("search_all", False),
    )
    return checked(narrowed)


def _queries(identifier: WorkIdentifier) -> list[WorkQuery]:
    plain: list[tuple[Entry, str | None]] = [
        ("resource-id", identifier.get("resource_id")),
        ("work-name", identifier.get("work_name")),
        ("applied-work", identifier.get("applied_work")),
        ("op-id", identifier.get("op_id")),
        ("name-like", identifier.get("name_like")),
    ]
    queries = [WorkQuery(entry=entry, values=(value,)) for entry, value in plain if value is not None]
    if (manifest := identifier.get("manifest")) is not None:
        parsed = parse_manifest(manifest) if isinstance(manifest, str) else manifest
        queries.append(WorkQuery(entry="manifest", manifest=parsed))
    if (label := identifier.get("label")) is not None:
        queries.append(WorkQuery(entry="label", values=parse_label(label)))
    if (resource_ids := identifier.get("resource_ids")) is not None:
        queries.append(WorkQuery(entry="file", values=tuple(resource_ids)))
    return queries


def named_by(word: str) -> WorkIdentifier:
    """Return what a word without a flag names, by its form; a work unless it looks like something else."""
    if _RESOURCE_ID.fullmatch(word):
        return {"resource_id": word}
    if _APPLIED_WORK.fullmatch(word):
        return {"applied_work": word}
    if "/" in word:
        return {"manifest": word}
    return {"label": word} if "=" in word else {"work_name": word}


def parse_manifest(written: str) -> ManifestQuery:
    """Read `KIND[.group]/[NS/]NAME`."""
    parts = written.split("/")
    if len(parts) not in {2, 3} or not all(parts):
        raise InvalidArguments(f"--manifest {written!r} cannot be read; write KIND[.group]/[NAMESPACE/]NAME")
    kind, _, group = parts[0].partition(".")
    return ManifestQuery(kind=kind, group=group, namespace=parts[1] if len(parts) == 3 else "", name=parts[-1])


def parse_label(written: str) -> tuple[str, str]:
    """Read `key=value`."""
    key, separator, value = written.partition("=")
    if not key or not separator:
        raise InvalidArguments(f"--label {written!r} cannot be read; write KEY=VALUE")
    return key, value


def parse_list(content: str) -> tuple[str, ...]:
    """Read identifiers from a file: one per line, or the first column of a CSV; `#` starts a comment."""
    identifiers = dict.fromkeys(
        identifier
        for line in content.removeprefix("\ufeff").splitlines()
        if (identifier := re.split(r"[,;\s]", line.partition("#")[0].strip(), maxsplit=1)[0].strip("\"'"))
    )
    identifiers.pop("id", None)  # the head of an exported column
    if not identifiers:
        raise InvalidArguments("--file holds no identifier; write one a line")
    if len(identifiers) > _MOST_IDS:
        raise InvalidArguments(f"--file holds {len(identifiers)} identifiers; trace at most {_MOST_IDS} in one pass")
    return tuple(identifiers)


def checked(query: WorkQuery) -> WorkQuery:
    """Return the query; raise InvalidArguments if no database could run it."""
    parts = [*query.values, query.consumer, query.source]
    if query.manifest:
        manifest = query.manifest
        parts += [manifest.kind, manifest.name, manifest.namespace, manifest.group]
        if not manifest.kind or not manifest.name:
            raise InvalidArguments("a manifest needs its kind and its name; give --manifest-kind and --manifest-name")
    elif not query.values or not query.values[0]:
        raise InvalidArguments(f"--{query.entry} is empty; give the identifier you have")
    for part in parts:
        if "\0" in part or len(part) > LONGEST or not _is_text(part):
            raise InvalidArguments(f"--{query.entry} {part[:40]!r} is not an identifier that Maestro can store")
    return query


def _is_text(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True
