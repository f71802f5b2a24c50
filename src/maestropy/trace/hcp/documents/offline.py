"""Answer the walk's questions from a directory of documents: any names, any depth, JSON, YAML or JSON lines.

Reads files once and never writes. A file that cannot be read is told and left out. Where two documents speak about
the same thing, the one that was taken in a list counts, because a list was taken at one moment; the other is noted.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from maestropy.trace.errors import InputUnreadable
from maestropy.trace.hcp import lookup
from maestropy.trace.hcp.documents import document_types, matching
from maestropy.trace.hcp.documents.document_types import RecognisedDocument
from maestropy.trace.hcp.lookup import Json
from maestropy.trace.hcp.query import (
    CommandFlags,
    Document,
    HopQuery,
    HopQueryResult,
    Topic,
    absent_result,
    found_result,
    unknown_result,
)
from maestropy.untrusted import files, yaml_documents
from maestropy.untrusted.errors import InputRejected

_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".txt", ".log", ""})
_LARGEST = 256 * 1024 * 1024


class NoDocuments(InputUnreadable):
    """The directory contains no document of the walk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDirectory:
    """All documents of a directory."""

    entries: Mapping[Topic, tuple[RecognisedDocument, ...]]
    unused: tuple[str, ...]
    """Files that are no part of the walk."""
    unreadable: tuple[str, ...]
    """Files that could not be read, with the reason."""
    taken_at: datetime | None = None
    """When the walk that saved them was made."""
    absent: Mapping[HopQuery, str] = field(default_factory=dict)
    """The queries that were absent in that walk, with the reason."""
    directory: Path | None = None

    @property
    def flags(self) -> CommandFlags:
        """The flags for printed commands: the bundles of the directory can be traced as works."""
        return CommandFlags(work=f"--offline {shlex.quote(str(self.directory))}" if self.directory else "")

    async def run_queries(self, queries: Sequence[HopQuery]) -> Sequence[HopQueryResult]:
        return [self.look_up(query) for query in queries]

    def look_up(self, query: HopQuery) -> HopQueryResult:
        matching_entries = [entry for entry in self.entries.get(query.topic, ()) if matching.matches(entry, query)]
        absences = [entry for entry in matching_entries if entry.is_absence]
        chosen, differing = _deduplicate([entry for entry in matching_entries if not entry.is_absence], query.topic)
        if chosen:
            differing += [
                f"{refusal.where} shows no such object: saved at another time?"
                for refusal in absences
                if _is_error(refusal)
            ]
            return found_result(
                *(Document(value=entry.value, where=entry.where) for entry in chosen), disagreements=tuple(differing)
            )
        if query in self.absent:
            return absent_result(self.absent[query])
        if absences:
            return absent_result(f"{absences[0].where} shows no such object")
        return unknown_result(f"no document contains the {query.topic.value}")


def read(directory: Path) -> DocumentDirectory:
    """Read all documents below `directory`."""
    entries: dict[Topic, list[RecognisedDocument]] = {}
    unused, unreadable, markers = [], [], []
    for path in _files(directory):
        where = str(path.relative_to(directory))
        try:
            documents = [document for whole in _parse(path) for document in document_types.recognise(whole)]
        except (OSError, ValueError, yaml.YAMLError, RecursionError, InputRejected) as error:
            unreadable.append(f"{where}: {_short(error)}")
            continue
        markers += [document.value for document in documents if _is_marker(document)]
        used = [document for document in documents if document.topic]
        for recognised in used:
            assert recognised.topic
            entries.setdefault(recognised.topic, []).append(replace(recognised, where=where))
        if not used and not any(_is_marker(document) for document in documents):
            unused.append(where)
    if not entries:
        hint = f" ({unreadable[0]})" if unreadable else ""
        raise NoDocuments(f"{directory} holds no document of a hosted control plane{hint}")
    return DocumentDirectory(
        entries={topic: tuple(entry) for topic, entry in entries.items()},
        unused=tuple(unused),
        unreadable=tuple(unreadable),
        taken_at=max((moment for marker in markers if (moment := lookup.moment(marker, "takenAt"))), default=None),
        directory=directory,
        absent={_query(entry): lookup.text(entry, "why") for one in markers for entry in lookup.objects(one, "absent")},
    )


def _files(directory: Path) -> Iterator[Path]:
    if not directory.is_dir():
        raise NoDocuments(f"{directory} is not a directory")
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix.lower() in _SUFFIXES:
            yield path


def _parse(path: Path) -> Iterable[Any]:
    content = files.read(path, most=_LARGEST)
    try:
        return [orjson.loads(content)]
    except orjson.JSONDecodeError:
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}") for line in lines):
            return [orjson.loads(line) for line in lines]
        if content.lstrip().startswith((b"{", b"[")):
            raise
    return yaml_documents.load_all(content, loader=yaml_documents.FastLoader)


def _deduplicate(entries: Sequence[RecognisedDocument], topic: Topic) -> tuple[list[RecognisedDocument], list[str]]:
    """Keep one document of each object; note the others that differ from it."""
    kept: dict[str, RecognisedDocument] = {}
    notes = []
    for number, entry in enumerate(sorted(entries, key=lambda item: not item.in_list)):
        key = matching.identity(entry) or str(number)
        other = kept.setdefault(key, entry)
        if other is not entry and other.value != entry.value:
            difference = matching.difference(other.value, entry.value)
            notes.append(
                f"{entry.where} tells {topic.value} {key} differently than {other.where}, which counts: {difference}"
            )
    return list(kept.values()), notes


def _query(document: Json) -> HopQuery:
    topic = next(
        (known_topic for known_topic in Topic if known_topic.value == lookup.text(document, "topic")), Topic.COSMOS
    )
    named = {name: lookup.text(document, name) for name in ("name", "namespace", "cid", "arm")}
    return HopQuery(topic=topic, **named)


def _is_error(entry: RecognisedDocument) -> bool:
    return "error" in entry.value


def _is_marker(document: RecognisedDocument) -> bool:
    return lookup.text(document.value, "kind") == document_types.SAVED


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"cannot be read as JSON or YAML ({first[:120]})" if not isinstance(error, OSError) else str(error.strerror)
