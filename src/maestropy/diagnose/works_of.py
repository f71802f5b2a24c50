"""Read the works in the files of an archive, as the tracer of works reads a dump; damaged lines are left out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson

from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.archive import Opened
from maestropy.trace import offline
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.work import gather, parse
from maestropy.trace.work.model import AccessStatus
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected

ROWS: Final = ("database/rows.jsonl", "server/resource-bundles.jsonl")
_OTHERS: Final = (
    "database/tombstones.jsonl",
    "database/holds.jsonl",
    "server/holds.jsonl",
    "database/pauses.jsonl",
    "server/pauses.jsonl",
)
_CLUSTER: Final = ("objects.jsonl", "appliedmanifestworks.jsonl", "kinds.jsonl")
_MOST_BYTES: Final = 1 << 30


def database(folder: Path) -> offline.OfflineDatabase:
    """Return the works in an unpacked or staged archive."""
    sorting = offline.Sorting()
    for name in (*ROWS, *_OTHERS):
        sorting.add(document for _, document in documents(folder / name))
    return offline.OfflineDatabase(dump=sorting.dump(), description="database (archive)")


def cluster(folder: Path) -> offline.DumpedCluster:
    """Return what an archive has of one cluster, whose folder is given."""
    sorting = offline.Sorting()
    seen: set[tuple[str, str, str, str]] = set()
    for name in _CLUSTER:
        for _, document in documents(folder / name):
            # The list of all applied works repeats those that were read with their work.
            key = _key(document)
            if key not in seen:
                sorting.add([document])
            seen |= {key} if key[1] else set()
    return sorting.dump().clusters.get("", offline.DumpedCluster())


def readers(opened: Opened, manifest: manifests.Manifest, *, database: offline.OfflineDatabase) -> gather.Readers:
    """Return what the tracer of works reads an unpacked archive with; raise InputUnreadable if a file is too large."""
    clusters = _clusters(opened, manifest)
    section = manifest.section("works")
    problem = (section.reason if section else "") or "the archive holds no works of a database or a REST API"
    return gather.Readers(
        database=database if has_rows(opened.folder) else None,
        database_problem=problem,
        clusters=clusters,
        unreachable_clusters=_unreachable(manifest, clusters),
    )


def has_rows(folder: Path) -> bool:
    """Return whether works of a database or a REST API were collected, were it none."""
    return any((folder / name).is_file() for name in ROWS)


def without_cluster(own: gather.Readers, consumer: str) -> gather.Readers:
    """Return the readers for the works of a consumer whose cluster was not collected."""
    nowhere = AccessStatus(
        description=f"cluster of {consumer}", is_readable=False, problem="was not collected", consumer=consumer
    )
    return replace(own, clusters=(), unreachable_clusters=(nowhere,))


def of_uncollected_clusters(database: offline.OfflineDatabase, own: gather.Readers) -> dict[str, list[str]]:
    """Return the works, by consumer, whose cluster is not in the archive and that are on no other cluster."""
    seen = {reader.consumer for reader in own.clusters}
    seen |= {status.consumer for status in own.unreachable_clusters}
    if "" in seen or not seen:
        return {}
    applied = set(applied_names(own))
    found: dict[str, list[str]] = {}
    for row in database.dump.rows:
        if row.consumer not in seen and row.id not in applied:
            found.setdefault(row.consumer, []).append(row.id)
    return found


def applied_names(own: gather.Readers) -> list[str]:
    """Return the names of all works that are applied on the clusters of an archive."""
    names = [
        parse.applied_work(item, cluster=reader.label).work_name
        for reader in own.clusters
        if isinstance(reader, offline.OfflineCluster)
        for item in reader.all_applied_works()
    ]
    return list(dict.fromkeys(name for name in names if name))


def _clusters(opened: Opened, manifest: manifests.Manifest) -> list[offline.OfflineCluster]:
    known = {entry.folder: entry for entry in manifest.clusters}
    home = opened.folder / "clusters"
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    found = []
    for path in folders:
        entry = known.get(path.name) or manifests.Cluster(label=path.name, folder=path.name, consumer=path.name)
        # A cluster that broke off half-way would make works look absent.
        if not entry.problem:
            found.append(offline.OfflineCluster(label=entry.label, consumer=entry.consumer, content=cluster(path)))
    return found


def _unreachable(manifest: manifests.Manifest, clusters: Sequence[offline.OfflineCluster]) -> list[AccessStatus]:
    read = {one.label for one in clusters}
    return [
        AccessStatus(
            description=f"cluster {entry.label}",
            is_readable=False,
            problem=entry.problem or "its files are not in the archive",
            consumer=entry.consumer,
        )
        for entry in manifest.clusters
        if entry.label not in read
    ]


def _key(document: dict[str, Any]) -> tuple[str, str, str, str]:
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return (
        str(document.get("apiVersion", "")),
        str(document.get("kind", "")) if metadata else "",
        str(metadata.get("namespace", "")),
        str(metadata.get("name", "")),
    )


def documents(path: Path, *, problems: list[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the documents of a file with their line numbers; nothing for a file that is not there."""
    if not path.is_file():
        return
    try:
        content = files.read(path, most=_MOST_BYTES)
    except (InputRejected, OSError) as error:
        if problems is None:
            raise InputUnreadable(f"{path.name} cannot be read: {error}") from error
        problems.append(f"{path.name} is not read: {error}")
        return
    damaged = 0
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            damaged += 1
            continue
        if isinstance(document, dict):
            yield number, document
        else:
            damaged += 1
    if damaged and problems is not None:
        problems.append(f"{path.name}: {damaged} lines are damaged and left out")
