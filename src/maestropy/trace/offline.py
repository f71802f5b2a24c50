"""Read works from a dump: a directory with files from the database, the REST API and the clusters.

Every `.json`, `.jsonl`, `.yaml` or `.yml` file is read and classified by its content: rows as the queries print them,
resource bundles or lists of them, Kubernetes objects or lists of them. A folder below the directory is a cluster of
that name (and of that consumer); objects at the top level belong to the only cluster.

    psql -XAtc "SELECT row_to_json(r) FROM resources r" > dump/resources.jsonl
    kubectl get appliedmanifestworks -o json > dump/appliedmanifestworks.json
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from maestropy.trace.errors import InputUnreadable, NoAccess
from maestropy.trace.rest_reader import holds
from maestropy.trace.work import parse
from maestropy.trace.work.model import WORK_GROUP, ConsumerPause, Json, Kind, TracedResource, WorkHold
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.readers import FoundResources
from maestropy.trace.work.statements import NEWEST
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

_JSON_BYTES = 256 * files.MIB
_YAML_BYTES = 32 * files.MIB

_ENDINGS = {".json", ".jsonl", ".yaml", ".yml"}
_OWN_NATURES = frozenset({"hold", "pause", "kind", "denied"})
"""Documents of `maestro diagnose` that say so themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedCluster:
    """What a dump has of one cluster."""

    objects: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """By name: a fleet has thousands, and every work asks for its own."""
    kinds: tuple[Kind, ...] = ()
    """The kinds that the cluster serves; empty if they were not dumped, and are then guessed from the objects."""
    denied: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Why the cluster did not show an object when it was dumped, by group, plural, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The content of a dump."""

    rows: tuple[TracedResource, ...]
    tombstones: tuple[Json, ...]
    clusters: Mapping[str, DumpedCluster]
    """By the name of the cluster; empty for objects at the top."""
    files: int
    holds: tuple[WorkHold, ...] = ()
    pauses: tuple[ConsumerPause, ...] = ()


def load(directory: Path) -> Dump:
    """Read a directory."""
    if not directory.is_dir():
        raise InputUnreadable(f"--offline {directory} is not a directory; give the one with the dump")
    paths = sorted(path for path in directory.rglob("*") if path.suffix in _ENDINGS and path.is_file())
    sorting = Sorting()
    for path in paths:
        relative = path.relative_to(directory)
        sorting.add(documents(path), cluster=relative.parts[0] if len(relative.parts) > 1 else "")
    dump = sorting.dump(files=len(paths))
    if not dump.rows and not dump.clusters:
        raise InputUnreadable(
            f"--offline {directory} holds no rows, bundles or objects in {', '.join(sorted(_ENDINGS))} files"
        )
    return dump


class Sorting:
    """Sorts documents by their content."""

    def __init__(self) -> None:
        self._rows: dict[str, TracedResource] = {}
        self._tombstones: list[Json] = []
        self._holds: list[WorkHold] = []
        self._pauses: list[ConsumerPause] = []
        self._objects: dict[str, dict[str, list[Json]]] = {}
        self._kinds: dict[str, list[Kind]] = {}
        self._denied: dict[str, dict[tuple[str, ...], str]] = {}

    def add(self, found: Iterable[Json], *, cluster: str = "") -> None:
        """Add documents; objects, kinds and denials are of that cluster."""
        for document in found:
            match _nature(document):
                case "row":
                    self._rows[str(document["id"])] = parse.row(document)
                case "bundle":
                    self._rows.setdefault(str(document["id"]), parse.bundle(document))
                case "tombstone":
                    self._tombstones.append(document)
                case "hold":
                    self._holds.append(parse.hold(document))
                case "pause":
                    self._pauses.append(parse.pause(document))
                case "kind":
                    self._kinds.setdefault(cluster, []).append(_stored_kind(document))
                case "denied":
                    key = tuple(parse.text(document.get(name)) for name in ("group", "plural", "namespace", "name"))
                    self._denied.setdefault(cluster, {}).setdefault(key, parse.text(document.get("problem")))
                case "object":
                    name = str(document["metadata"].get("name", ""))
                    self._objects.setdefault(cluster, {}).setdefault(name, []).append(document)

    def dump(self, *, files: int = 0) -> Dump:
        clusters = {
            name: DumpedCluster(
                objects=self._objects.get(name, {}),
                kinds=tuple(self._kinds.get(name, ())),
                denied=self._denied.get(name, {}),
            )
            for name in dict.fromkeys([*self._objects, *self._kinds, *self._denied])
        }
        return Dump(
            rows=tuple(self._rows.values()),
            tombstones=tuple(self._tombstones),
            holds=tuple(self._holds),
            pauses=tuple(self._pauses),
            clusters=clusters,
            files=files,
        )


def _stored_kind(document: Json) -> Kind:
    texts = {name: parse.text(document.get(name)) for name in ("group", "version", "kind", "plural")}
    versions = tuple(parse.texts(document.get("versions")))
    return Kind(
        group=texts["group"],
        version=texts["version"],
        kind=texts["kind"],
        plural=texts["plural"],
        namespaced=document.get("namespaced") is True,
        versions=versions,
    )


def documents(path: Path) -> Iterator[Json]:
    """Yield the documents of a file; raise InputUnreadable if it is neither JSON nor YAML, or too large."""
    try:
        content = files.read(path, most=_JSON_BYTES if path.suffix in (".json", ".jsonl") else _YAML_BYTES)
        if path.suffix == ".jsonl":
            items: list[Any] = [orjson.loads(line) for line in content.splitlines() if line.strip()]
        elif path.suffix == ".json":
            items = [orjson.loads(content)]
        else:
            items = yaml_documents.load_all(content, loader=yaml_documents.FastLoader)
    except InputRejected as error:
        raise InputUnreadable(f"{path} is rejected: {error}; dump less at once, and as JSON") from error
    except OSError as error:
        raise InputUnreadable(f"{path} cannot be read ({error.strerror})") from error
    except (orjson.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputUnreadable(f"{path} is neither JSON nor YAML; leave it out of the dump or dump it again") from error
    for item in items:
        yield from _flat(item)


def _flat(document: object) -> Iterator[Json]:
    if isinstance(document, list):
        for item in document:
            yield from _flat(item)
    elif isinstance(document, Mapping):
        items = document.get("items")
        if isinstance(items, list):
            yield from _flat(items)
        else:
            yield document


def _nature(document: Json) -> str:
    if document.get("trace") == "tombstone" or document.get("status_event_type") == "StatusDelete":
        return "tombstone"
    if document.get("trace") in _OWN_NATURES:
        return str(document["trace"])
    if "consumer_name" in document and "id" in document:
        return "row" if isinstance(document.get("payload"), Mapping) else "bundle"
    return "object" if document.get("kind") and isinstance(document.get("metadata"), Mapping) else "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDatabase:
    """The rows of a dump."""

    dump: Dump
    description: str
    """The name of the database in reports."""

    async def find(self, query: WorkQuery) -> FoundResources:
        fits = _condition(query)
        rows = [
            row
            for row in self.dump.rows
            if query.consumer in {"", row.consumer} and query.source in {"", row.source or query.source} and fits(row)
        ]
        if query.entry == "applied-work" and any(row.id in query.values for row in rows):
            rows = [row for row in rows if row.id in query.values]
        if query.entry == "name-like":
            rows = sorted(rows, key=lambda row: str(row.created), reverse=True)[:NEWEST]
        left = [parse.tombstone(tombstone) for tombstone in self.dump.tombstones]
        names = {*query.values}
        return FoundResources(
            rows=tuple(rows),
            tombstones=tuple(tombstone for tombstone in left if {tombstone.resource_id, tombstone.work_name} & names),
        )

    async def pauses(self) -> Sequence[ConsumerPause]:
        return self.dump.pauses

    async def holds(self) -> Sequence[WorkHold]:
        return self.dump.holds


def _condition(query: WorkQuery) -> Callable[[TracedResource], bool]:
    values, listed = query.values, frozenset(query.values)
    manifest = query.manifest
    conditions: Mapping[str, Callable[[TracedResource], bool]] = {
        "resource-id": lambda row: row.id in values,
        "file": lambda row: row.id in listed,
        "applied-work": lambda row: row.id in values or row.work_name in values,
        "work-name": lambda row: row.work_name in values,
        "name-like": lambda row: values[0].lower() in row.work_name.lower(),
        "label": lambda row: row.labels.get(values[0]) == values[1],
        "op-id": lambda row: row.operation_id == values[0],
        "manifest": lambda row: manifest is not None and holds(row, manifest),
    }
    return conditions[query.entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineCluster:
    """One cluster of a dump."""

    label: str
    consumer: str
    content: DumpedCluster = field(repr=False)
    kubectl: str = ""

    def all_applied_works(self) -> Sequence[Json]:
        return list(self._applied())

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        return [
            applied_work
            for applied_work in self._applied()
            if (applied_work.get("spec") or {}).get("manifestWorkName") in work_names
        ]

    async def applied_work(self, name: str) -> Json | None:
        return next(
            (applied_work for applied_work in self._applied() if applied_work["metadata"].get("name") == name), None
        )

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds that the cluster serves; of a dump without them, those of its objects."""
        served = self.content.kinds or {_kind_of(item) for item in self._all()}
        found = {kind for kind in served if kind.kind.lower() in spellings or kind.plural in spellings}
        return sorted(kind for kind in found if group in {"", kind.group})

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name; raise NoAccess if the cluster did not show it when it was dumped."""
        problem = self.content.denied.get((kind.group, kind.plural, namespace, name))
        if problem is not None:
            raise NoAccess(problem)
        return [
            item
            for item in self.content.objects.get(name, ())
            if _is_of(item, kind)
            and _group(item) == kind.group
            and namespace in {"", item["metadata"].get("namespace", "")}
        ]

    async def agent_consumer(self) -> str:
        """A dump does not contain it."""
        return ""

    def _all(self) -> Iterator[Json]:
        return (item for items in self.content.objects.values() for item in items)

    def _applied(self) -> Iterator[Json]:
        return (
            item for item in self._all() if item.get("kind") == "AppliedManifestWork" and _group(item) == WORK_GROUP
        )


def _is_of(item: Json, kind: Kind) -> bool:
    """Return whether an object is of a kind; an applied work names only the plural."""
    if kind.kind:
        return item.get("kind") == kind.kind
    return (item.get("trace_plural") or parse.plural_of(str(item.get("kind", "")))) == kind.plural


def _group(document: Json) -> str:
    return str(document.get("apiVersion", "")).rpartition("/")[0]


def _kind_of(document: Json) -> Kind:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    kind = str(document.get("kind", ""))
    is_namespaced = bool(document["metadata"].get("namespace"))
    return Kind(group=group, version=version, kind=kind, plural=parse.plural_of(kind), namespaced=is_namespaced)
