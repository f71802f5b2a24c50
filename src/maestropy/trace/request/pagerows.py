"""Requests as compact columns, for a page that holds tens of thousands of them.

Traces come one by one and are not kept: a request becomes a few numbers, its records five numbers each, and every text
is stored once. Lines themselves are quoted while a budget lasts, of all requests with problems and of some that went
well, without payloads and without what looks like a secret. Reads nothing itself: quoting is somebody else's.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from maestropy.journal import redact
from maestropy.trace.output import printable
from maestropy.trace.request.codes import SQL, STAGES
from maestropy.trace.request.document import inputs_model, stamp
from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Finding, State, Trace, Verdict
from maestropy.trace.request.statistics import PROBLEMS
from maestropy.trace.request.words import said

VERDICTS: Final = tuple(each.value for each in Verdict)
STATES: Final = tuple(each.value for each in State)
_LETTERS = {each: str(number) for number, each in enumerate(State)}
_QUOTED_BYTES = 6_000_000
_QUOTED_SETTLED = 200
_LONGEST_LINE = 1200
_PAYLOAD = re.compile(r'(event="\{|evt=|Data,|"data":|\\"data\\":)')

Quote = Callable[[Hit], str]


def no_quote(_: Hit) -> str:
    """Quote nothing."""
    return ""


def shown_line(line: str, *, longest: int = _LONGEST_LINE) -> str:
    """Return a line of a log as it may leave the computer: no payload, no secret, no end of the screen."""
    found = _PAYLOAD.search(line)
    if found:
        line = f"{line[: found.start()]}{found.group()[:6]}… (payload left out)"
    line = printable(redact.text(line))
    return line if len(line) <= longest else f"{line[:longest]}…"


class _Words:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, word: str) -> int:
        found = self._numbers.get(word)
        if found is None:
            found = self._numbers[word] = len(self.list)
            self.list.append(word)
        return found


@dataclass(slots=True)
class Rows:
    """The columns, filled trace by trace."""

    known: Environment
    quote: Quote = no_quote
    count: int = 0
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _words: _Words = field(default_factory=_Words)
    _findings: dict[int, list[list[Any]]] = field(default_factory=dict)
    _notes: dict[int, dict[int, str]] = field(default_factory=dict)
    _lines: dict[str, str] = field(default_factory=dict)
    _codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    _room: int = _QUOTED_BYTES
    _settled: int = 0
    _epoch: float = 0.0

    def extend(self, traces: Iterable[Trace]) -> None:
        """Take many requests."""
        for trace in traces:
            self.add(trace)

    def add(self, trace: Trace) -> None:
        """Take one request."""
        key = trace.key
        self._epoch = self._epoch or float(int(trace.start))
        number = self._words.number
        values = {
            "resource": key.resource,
            "work": key.work_name,
            "op": key.op,
            "consumer": number(key.consumer),
            "source": number(key.source),
            "action": number(key.action),
            "version": key.version,
            "life": key.life,
            "start": _tenths(trace.start - self._epoch),
            "took": _tenths(trace.duration),
            "verdict": VERDICTS.index(trace.verdict.value),
            "failed": trace.failed_stage or 0,
            "by": trace.superseded_by,
            "states": "".join(_LETTERS[stage.state] for stage in trace.stages),
            "times": [_tenths(stage.first - trace.start) if stage.first else None for stage in trace.stages],
            "records": self._records(trace),
        }
        for name, value in values.items():
            self._columns.setdefault(name, []).append(value)
        if trace.findings:
            self._findings[self.count] = [self._finding(each) for each in trace.findings]
        notes = {
            stage.number: ", ".join(
                filter(None, (stage.note, f"via {stage.via}" if stage.via not in ("", "direct") else ""))
            )
            for stage in trace.stages
        }
        if any(notes.values()):
            self._notes[self.count] = {stage: note for stage, note in notes.items() if note}
        self.count += 1

    def _records(self, trace: Trace) -> list[int]:
        is_problem = trace.verdict in PROBLEMS
        is_quoted = self._room > 0 and (is_problem or self._settled < _QUOTED_SETTLED)
        self._settled += not is_problem
        flat: list[int] = []
        for hit in trace.timeline:
            word = self._words.number(_phrase(hit.what, hit.action, hit.version, hit.is_deleting, hit.detail))
            flat += (_tenths(hit.at - trace.start) if hit.at else 0, hit.stage, hit.file, hit.line, word)
            if is_quoted:
                self._quoted(hit)
        return flat

    def _quoted(self, hit: Hit) -> None:
        place = f"{hit.file}:{hit.line}"
        if place not in self._lines and (line := self.quote(hit)):
            self._lines[place] = shown_line(line)
            self._room -= len(self._lines[place])

    def _finding(self, finding: Finding) -> list[Any]:
        entry = finding.entry
        self._codes.setdefault(
            finding.code,
            {
                "title": entry.title,
                "severity": entry.severity,
                "stage": entry.stage,
                "cause": entry.cause,
                "advice": list(entry.advice),
                "sql": [SQL[each] for each in entry.sql],
            },
        )
        for hit in finding.evidence:
            self._quoted(hit)
        evidence = [[hit.file, hit.line, self._words.number(said(hit))] for hit in finding.evidence]
        return [finding.code, finding.confidence, printable(redact.text(finding.detail)), evidence]

    def model(self, *, notes: Iterable[Finding], about: dict[str, Any]) -> dict[str, Any]:
        """Return everything the page needs."""
        known = self.known
        return {
            "about": about,
            "epoch": stamp(self._epoch),
            "verdicts": VERDICTS,
            "states": STATES,
            "stages": [[number, *STAGES[number]] for number in sorted(STAGES)],
            "inputs": inputs_model(known),
            "writers": [[each.pod, each.path, each.role] for each in known.writers],
            "notes": [[each.code, each.entry.title, each.detail] for each in notes],
            "codes": self._codes,
            "words": self._words.list,
            "columns": self._columns,
            "findings": self._findings,
            "stageNotes": self._notes,
            "lines": self._lines,
        }


def _tenths(seconds: float) -> int:
    """Return tenths of milliseconds: finer than clocks agree, and short when written."""
    return round(seconds * 10_000)


# Most records of a log say one of a few hundred things.
@lru_cache(maxsize=1 << 14)
def _phrase(what: What, action: str, version: int, is_deleting: bool, detail: str) -> str:  # noqa: FBT001 - the fields of a hit
    return said(Hit(what, 0.0, 0, 0, 0, version=version, action=action, is_deleting=is_deleting, detail=detail))
