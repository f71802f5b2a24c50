"""Read the works in the files of an archive, as the tracer of works reads a dump; damaged lines are left out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from maestropy.trace import offline
from maestropy.trace.errors import InputUnreadable
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
