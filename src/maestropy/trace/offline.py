"""Read works from a dump: a directory with files from the database, the REST API and the clusters.

Every `.json`, `.jsonl`, `.yaml` or `.yml` file is read and classified by its content: rows as the queries print them,
resource bundles or lists of them, Kubernetes objects or lists of them. A folder below the directory is a cluster of
that name (and of that consumer); objects at the top level belong to the only cluster.

    psql -XAtc "SELECT row_to_json(r) FROM resources r" > dump/resources.jsonl
    kubectl get appliedmanifestworks -o json > dump/appliedmanifestworks.json
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.rest_reader import holds
from maestropy.trace.work import parse
from maestropy.trace.work.model import WORK_GROUP, Json, Kind, TracedResource, WorkHold
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.readers import FoundResources
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

_JSON_BYTES = 256 * files.MIB
_YAML_BYTES = 32 * files.MIB

_ENDINGS = {".json", ".jsonl", ".yaml", ".yml"}
_NEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """The content of a dump."""

    rows: tuple[TracedResource, ...]
    tombstones: tuple[Json, ...]
    clusters: Mapping[str, tuple[Json, ...]]
    """Objects by the name of their cluster; empty for those at the top."""
    files: int


def load(directory: Path) -> Dump:
    """Read a directory."""
    if not directory.is_dir():
        raise InputUnreadable(f"--offline {directory} is not a directory; give the one with the dump")
    paths = sorted(path for path in directory.rglob("*") if path.suffix in _ENDINGS and path.is_file())
    rows: dict[str, TracedResource] = {}
    tombstones: list[Json] = []
    clusters: dict[str, list[Json]] = {}
    for path in paths:
        relative = path.relative_to(directory)
        for document in _documents(path):
            match _nature(document):
                case "row":
                    rows[str(document["id"])] = parse.row(document)
                case "bundle":
                    rows.setdefault(str(document["id"]), parse.bundle(document))
                case "tombstone":
                    tombstones.append(document)
                case "object":
                    clusters.setdefault(relative.parts[0] if len(relative.parts) > 1 else "", []).append(document)
    if not rows and not clusters:
        raise InputUnreadable(
            f"--offline {directory} holds no rows, bundles or objects in {', '.join(sorted(_ENDINGS))} files"
        )
    objects = {name: tuple(items) for name, items in clusters.items()}
    return Dump(rows=tuple(rows.values()), tombstones=tuple(tombstones), clusters=objects, files=len(paths))


def _documents(path: Path) -> Iterator[Json]:
    try:
        content = files.read(path, most=_JSON_BYTES if path.suffix in (".json", ".jsonl") else _YAML_BYTES)
        if path.suffix == ".jsonl":
            documents: list[Any] = [orjson.loads(line) for line in content.splitlines() if line.strip()]
        elif path.suffix == ".json":
            documents = [orjson.loads(content)]
        else:
            documents = yaml_documents.load_all(content, loader=yaml_documents.FastLoader)
    except InputRejected as error:
        raise InputUnreadable(f"{path} is rejected: {error}; dump less at once, and as JSON") from error
    except OSError as error:
        raise InputUnreadable(f"{path} cannot be read ({error.strerror})") from error
    except (orjson.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise InputUnreadable(f"{path} is neither JSON nor YAML; leave it out of the dump or dump it again") from error
    for item in documents:
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
    if "consumer_name" in document and "id" in document:
        return "row" if isinstance(document.get("payload"), Mapping) else "bundle"
    return "object" if document.get("kind") and isinstance(document.get("metadata"), Mapping) else "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineDatabase:
    """The rows of a dump."""

    dump: Dump
    directory: Path

    @property
    def description(self) -> str:
        """The name of the database in reports."""
        return f"database (dump in {self.directory})"

    async def find(self, query: WorkQuery) -> FoundResources:
        """Return the resources that match a query."""
        fits = _condition(query)
        rows = [
            row
            for row in self.dump.rows
            if query.consumer in {"", row.consumer} and query.source in {"", row.source or query.source} and fits(row)
        ]
        if query.entry == "applied-work" and any(row.id in query.values for row in rows):
            rows = [row for row in rows if row.id in query.values]
        if query.entry == "name-like":
            rows = sorted(rows, key=lambda row: str(row.created), reverse=True)[:_NEWEST]
        left = [parse.tombstone(tombstone) for tombstone in self.dump.tombstones]
        names = {*query.values}
        return FoundResources(
            rows=tuple(rows),
            tombstones=tuple(tombstone for tombstone in left if {tombstone.resource_id, tombstone.work_name} & names),
        )

    async def holds(self) -> Sequence[WorkHold]:
        """Return no holds: a dump has none."""
        return ()


def _condition(query: WorkQuery) -> Callable[[TracedResource], bool]:
    values = query.values
    manifest = query.manifest
    conditions: Mapping[str, Callable[[TracedResource], bool]] = {
        "resource-id": lambda row: row.id in values,
        "file": lambda row: row.id in values,
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
    """The objects of one cluster of a dump."""

    label: str
    consumer: str
    items: tuple[Json, ...] = field(repr=False)
    kubectl: str = ""

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works."""
        return [
            applied_work
            for applied_work in self._applied()
            if (applied_work.get("spec") or {}).get("manifestWorkName") in work_names
        ]

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""
        return next(
            (applied_work for applied_work in self._applied() if applied_work["metadata"].get("name") == name), None
        )

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds among what was dumped; their plurals are guessed."""
        kinds = {
            _kind_of(item)
            for item in self.items
            if str(item.get("kind", "")).lower() in spellings or _kind_of(item).plural in spellings
        }
        return sorted(kind for kind in kinds if group in {"", kind.group})

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name."""
        return [
            item
            for item in self.items
            if item.get("kind") == kind.kind
            and _group(item) == kind.group
            and item["metadata"].get("name") == name
            and namespace in {"", item["metadata"].get("namespace", "")}
        ]

    async def agent_consumer(self) -> str:
        """A dump does not contain it."""
        return ""

    def _applied(self) -> Iterator[Json]:
        return (item for item in self.items if item.get("kind") == "AppliedManifestWork" and _group(item) == WORK_GROUP)


def _group(document: Json) -> str:
    return str(document.get("apiVersion", "")).rpartition("/")[0]


def _kind_of(document: Json) -> Kind:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    kind = str(document.get("kind", ""))
    is_namespaced = bool(document["metadata"].get("namespace"))
    return Kind(group=group, version=version, kind=kind, plural=parse.plural_of(kind), namespaced=is_namespaced)
