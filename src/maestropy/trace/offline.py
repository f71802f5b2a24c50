"""Answer from files: a directory of what was dumped from the database, the REST API and the clusters.

Any `.json`, `.jsonl`, `.yaml` or `.yml` file is read and sorted by what it holds: rows as the queries print them,
resource bundles or lists of them, Kubernetes objects or lists of them. A folder below the directory is a cluster of
that name (and of that consumer); objects at the top belong to the one cluster there is.

    psql -XAtc "SELECT row_to_json(r) FROM resources r" > dump/resources.jsonl
    kubectl get appliedmanifestworks -o json > dump/appliedmanifestworks.json
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml

from maestropy.trace.errors import Unreadable
from maestropy.trace.restside import holds
from maestropy.trace.work import reading
from maestropy.trace.work.model import WORK_GROUP, Json, Kind, Row
from maestropy.trace.work.question import Question
from maestropy.trace.work.sides import Found

_ENDINGS = {".json", ".jsonl", ".yaml", ".yml"}
_NEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """What a directory holds."""

    rows: tuple[Row, ...]
    tombstones: tuple[Json, ...]
    clusters: Mapping[str, tuple[Json, ...]]
    """Objects by the name of their cluster; empty for those at the top."""
    files: int


def load(directory: Path) -> Dump:
    """Read a directory."""
    if not directory.is_dir():
        raise Unreadable(f"--offline {directory} is no directory; give the one that holds the dump")
    paths = sorted(path for path in directory.rglob("*") if path.suffix in _ENDINGS and path.is_file())
    rows: dict[str, Row] = {}
    tombstones: list[Json] = []
    clusters: dict[str, list[Json]] = {}
    for path in paths:
        relative = path.relative_to(directory)
        for document in _documents(path):
            match _nature(document):
                case "row":
                    rows[str(document["id"])] = reading.row(document)
                case "bundle":
                    rows.setdefault(str(document["id"]), reading.bundle(document))
                case "tombstone":
                    tombstones.append(document)
                case "object":
                    clusters.setdefault(relative.parts[0] if len(relative.parts) > 1 else "", []).append(document)
    if not rows and not clusters:
        raise Unreadable(
            f"--offline {directory} holds no rows, bundles or objects in {', '.join(sorted(_ENDINGS))} files"
        )
    objects = {name: tuple(found) for name, found in clusters.items()}
    return Dump(rows=tuple(rows.values()), tombstones=tuple(tombstones), clusters=objects, files=len(paths))


def _documents(path: Path) -> Iterator[Json]:
    try:
        content = path.read_bytes()
        if path.suffix == ".jsonl":
            found: list[Any] = [orjson.loads(line) for line in content.splitlines() if line.strip()]
        elif path.suffix == ".json":
            found = [orjson.loads(content)]
        else:
            found = list(yaml.safe_load_all(content))
    except OSError as error:
        raise Unreadable(f"{path} cannot be read ({error.strerror})") from error
    except (orjson.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"{path} is neither JSON nor YAML; leave it out of the dump or dump it again") from error
    for each in found:
        yield from _flat(each)


def _flat(document: object) -> Iterator[Json]:
    if isinstance(document, list):
        for each in document:
            yield from _flat(each)
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
    def place(self) -> str:
        """Who is asked."""
        return f"database (dump in {self.directory})"

    async def find(self, question: Question) -> Found:
        """Return all that fits a question."""
        fits = _condition(question)
        rows = [
            row
            for row in self.dump.rows
            if question.consumer in {"", row.consumer}
            and question.source in {"", row.source or question.source}
            and fits(row)
        ]
        if question.entry == "applied-work" and any(row.id in question.values for row in rows):
            rows = [row for row in rows if row.id in question.values]
        if question.entry == "name-like":
            rows = sorted(rows, key=lambda row: str(row.created), reverse=True)[:_NEWEST]
        left = [reading.tombstone(each) for each in self.dump.tombstones]
        wanted = {*question.values}
        return Found(
            rows=tuple(rows), tombstones=tuple(each for each in left if {each.resource_id, each.work_name} & wanted)
        )


def _condition(question: Question) -> Callable[[Row], bool]:
    values = question.values
    wanted = question.manifest
    conditions: Mapping[str, Callable[[Row], bool]] = {
        "resource-id": lambda row: row.id in values,
        "file": lambda row: row.id in values,
        "applied-work": lambda row: row.id in values or row.work_name in values,
        "work-name": lambda row: row.work_name in values,
        "name-like": lambda row: values[0].lower() in row.work_name.lower(),
        "label": lambda row: row.labels.get(values[0]) == values[1],
        "op-id": lambda row: row.operation_id == values[0],
        "manifest": lambda row: wanted is not None and holds(row, wanted),
    }
    return conditions[question.entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineCluster:
    """The objects of one cluster of a dump."""

    label: str
    consumer: str
    items: tuple[Json, ...] = field(repr=False)
    kubectl: str = ""

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works."""
        return [each for each in self._applied() if (each.get("spec") or {}).get("manifestWorkName") in work_names]

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""
        return next((each for each in self._applied() if each["metadata"].get("name") == name), None)

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds among what was dumped; their plurals are guessed."""
        found = {
            _kind_of(each)
            for each in self.items
            if str(each.get("kind", "")).lower() in spellings or _kind_of(each).plural in spellings
        }
        return sorted(each for each in found if group in {"", each.group})

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name."""
        return [
            each
            for each in self.items
            if each.get("kind") == kind.kind
            and _group(each) == kind.group
            and each["metadata"].get("name") == name
            and namespace in {"", each["metadata"].get("namespace", "")}
        ]

    async def agent_consumer(self) -> str:
        """A dump does not say."""
        return ""

    def _applied(self) -> Iterator[Json]:
        return (each for each in self.items if each.get("kind") == "AppliedManifestWork" and _group(each) == WORK_GROUP)


def _group(document: Json) -> str:
    return str(document.get("apiVersion", "")).rpartition("/")[0]


def _kind_of(document: Json) -> Kind:
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    kind = str(document.get("kind", ""))
    is_namespaced = bool(document["metadata"].get("namespace"))
    return Kind(group=group, version=version, kind=kind, plural=reading.plural_of(kind), namespaced=is_namespaced)
