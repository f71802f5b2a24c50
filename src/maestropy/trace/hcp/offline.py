"""Answer the walk's questions from a directory of documents: any names, any depth, JSON, YAML or JSON lines.

Reads files once and never writes. A file that cannot be read is told and left out. Where two documents speak about
the same thing, the one that was taken in a list counts, because a list was taken at one moment; the other is noted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from maestropy.trace.errors import Unreadable
from maestropy.trace.hcp import matching, reading, recognise
from maestropy.trace.hcp.question import Answer, Document, Question, Topic, absent, found, unknown
from maestropy.trace.hcp.reading import Json
from maestropy.trace.hcp.recognise import Recognised

_SUFFIXES = frozenset({".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".txt", ".log", ""})
_LARGEST = 256 * 1024 * 1024


class NothingHere(Unreadable):
    """The directory holds no document of the walk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recognised document and its file."""

    found: Recognised
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """All documents of a directory."""

    entries: Mapping[Topic, tuple[Entry, ...]]
    unused: tuple[str, ...]
    """Files that are no part of the walk."""
    unreadable: tuple[str, ...]
    """Files that could not be read, with the reason."""
    taken_at: datetime | None = None
    """When the walk that saved them was made."""
    absent: Mapping[Question, str] = field(default_factory=dict)
    """What that walk was told not to exist, and by whom."""

    async def answer(self, questions: Sequence[Question]) -> Sequence[Answer]:
        """Answer as a live system would."""
        return [self.look_up(each) for each in questions]

    def look_up(self, question: Question) -> Answer:
        """Answer one question."""
        told = [each for each in self.entries.get(question.topic, ()) if matching.matches(each.found, question)]
        refusals = [each for each in told if each.found.is_refusal]
        chosen, differing = _agree([each for each in told if not each.found.is_refusal], question.topic)
        if chosen:
            differing += [
                f"{each.where} says there is none: taken at another time?" for each in refusals if _is_error(each)
            ]
            return found(
                *(Document(value=each.found.value, where=each.where) for each in chosen), disagreements=tuple(differing)
            )
        if question in self.absent:
            return absent(self.absent[question])
        if refusals:
            return absent(f"{refusals[0].where} says there is none")
        return unknown(f"no document tells the {question.topic.value}")


def read(directory: Path) -> Library:
    """Read all documents below `directory`."""
    entries: dict[Topic, list[Entry]] = {}
    unused, unreadable, markers = [], [], []
    for path in _files(directory):
        where = str(path.relative_to(directory))
        try:
            documents = [each for whole in _parse(path) for each in recognise.recognise(whole)]
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            unreadable.append(f"{where}: {_short(error)}")
            continue
        markers += [each.value for each in documents if _is_marker(each)]
        used = [each for each in documents if each.topic]
        for each in used:
            assert each.topic
            entries.setdefault(each.topic, []).append(Entry(found=each, where=where))
        if not used and not any(_is_marker(each) for each in documents):
            unused.append(where)
    if not entries:
        hint = f" ({unreadable[0]})" if unreadable else ""
        raise NothingHere(f"{directory} holds no document of a hosted control plane{hint}")
    return Library(
        entries={topic: tuple(each) for topic, each in entries.items()},
        unused=tuple(unused),
        unreadable=tuple(unreadable),
        taken_at=max((found for each in markers if (found := reading.moment(each, "takenAt"))), default=None),
        absent={
            _question(each): reading.text(each, "why") for one in markers for each in reading.objects(one, "absent")
        },
    )


def _files(directory: Path) -> Iterator[Path]:
    if not directory.is_dir():
        raise NothingHere(f"{directory} is not a directory")
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix.lower() in _SUFFIXES:
            yield path


def _parse(path: Path) -> Iterable[Any]:
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"larger than {_LARGEST >> 20} MiB")
    content = path.read_bytes()
    try:
        return [orjson.loads(content)]
    except orjson.JSONDecodeError:
        lines = [line for line in content.splitlines() if line.strip()]
        if len(lines) > 1 and all(line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}") for line in lines):
            return [orjson.loads(line) for line in lines]
        if content.lstrip().startswith((b"{", b"[")):
            raise
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(content, Loader=loader))


def _agree(told: Sequence[Entry], topic: Topic) -> tuple[list[Entry], list[str]]:
    """Keep one document of each thing; say which others tell it differently."""
    kept: dict[str, Entry] = {}
    notes = []
    for number, entry in enumerate(sorted(told, key=lambda each: not each.found.in_list)):
        key = matching.identity(entry.found) or str(number)
        other = kept.setdefault(key, entry)
        if other is not entry and other.found.value != entry.found.value:
            difference = matching.difference(other.found.value, entry.found.value)
            notes.append(
                f"{entry.where} tells {topic.value} {key} differently than {other.where}, which counts: {difference}"
            )
    return list(kept.values()), notes


def _question(told: Json) -> Question:
    topic = next((each for each in Topic if each.value == reading.text(told, "topic")), Topic.COSMOS)
    named = {name: reading.text(told, name) for name in ("name", "namespace", "cid", "arm")}
    return Question(topic=topic, **named)


def _is_error(entry: Entry) -> bool:
    return "error" in entry.found.value


def _is_marker(each: Recognised) -> bool:
    return reading.text(each.value, "kind") == recognise.SAVED


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"cannot be read as JSON or YAML ({first[:120]})" if not isinstance(error, OSError) else str(error.strerror)
