"""Open the database and the clusters of an archive as the tracer of works reads them. No system is reached."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from maestropy.diagnose import manifest as manifests
from maestropy.diagnose import works_of
from maestropy.diagnose.archive import Opened
from maestropy.trace import offline
from maestropy.trace.work import gather, parse
from maestropy.trace.work.model import AccessStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveReaders:
    """What an archive has of works."""

    database: offline.OfflineDatabase
    readers: gather.Readers


def readers_of(opened: Opened, manifest: manifests.Manifest) -> ArchiveReaders:
    """Return the readers of an archive; raise InputUnreadable if its works cannot be read."""
    folder = opened.folder
    database = works_of.database(folder)
    clusters = _clusters(opened, manifest)
    has_rows = any((folder / name).is_file() for name in works_of.ROWS)
    section = manifest.section("works")
    problem = (section.reason if section else "") or "the archive holds no works of a database or a REST API"
    readers = gather.Readers(
        database=database if has_rows else None,
        database_problem=problem,
        clusters=clusters,
        unreachable_clusters=_unreachable(manifest, clusters),
    )
    return ArchiveReaders(database=database, readers=readers)


def of_uncollected_clusters(database: offline.OfflineDatabase, readers: gather.Readers) -> dict[str, list[str]]:
    """Return the works, by consumer, whose cluster is not in the archive and that are on no other cluster."""
    seen = {cluster.consumer for cluster in readers.clusters}
    seen |= {status.consumer for status in readers.unreachable_clusters}
    if "" in seen or not seen:
        return {}
    applied = set(applied_names(readers))
    found: dict[str, list[str]] = {}
    for row in database.dump.rows:
        if row.consumer not in seen and row.id not in applied:
            found.setdefault(row.consumer, []).append(row.id)
    return found


def without_cluster(readers: gather.Readers, consumer: str) -> gather.Readers:
    """Return the readers of works of a consumer whose cluster was not collected: they are not searched on others."""
    nowhere = AccessStatus(
        description=f"cluster of {consumer}", is_readable=False, problem="was not collected", consumer=consumer
    )
    return replace(readers, clusters=(), unreachable_clusters=(nowhere,))


def applied_names(readers: gather.Readers) -> list[str]:
    """Return the names of all works that are applied on clusters of the archive."""
    names = [
        parse.applied_work(item, cluster=cluster.label).work_name
        for cluster in readers.clusters
        if isinstance(cluster, offline.OfflineCluster)
        for item in cluster.all_applied_works()
    ]
    return list(dict.fromkeys(name for name in names if name))


def _clusters(opened: Opened, manifest: manifests.Manifest) -> list[offline.OfflineCluster]:
    known = {cluster.folder: cluster for cluster in manifest.clusters}
    home = opened.folder / "clusters"
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    found = []
    for path in folders:
        entry = known.get(path.name) or manifests.Cluster(label=path.name, folder=path.name, consumer=path.name)
        # A cluster that broke off half-way would make works look absent.
        if not entry.problem:
            found.append(
                offline.OfflineCluster(label=entry.label, consumer=entry.consumer, content=works_of.cluster(path))
            )
    return found


def _unreachable(manifest: manifests.Manifest, clusters: Sequence[offline.OfflineCluster]) -> list[AccessStatus]:
    read = {cluster.label for cluster in clusters}
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
