"""Collect requests as compact columns for the HTML report, which holds tens of thousands of them.

Traces are added one by one and not kept: each request becomes a few numbers, each record five numbers, and every text
is stored once. Log lines are quoted until a size limit is reached: of all requests with problems and of some complete
ones, without payloads and secrets. Reads no files itself: `quote` is a parameter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from maestropy.journal import redact
from maestropy.trace.findings.codes import SQL
from maestropy.trace.logs.log_records import LogRecord, RecordKind
from maestropy.trace.logs.model import (
    PROBLEMS,
    RequestFinding,
    RequestVerdict,
    StageResult,
    StageState,
    Trace,
    timeline,
)
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.output import printable
from maestropy.trace.report.formatting import describe
from maestropy.trace.report.json_model import inputs_model, stamp
from maestropy.trace.report.log_lines import shown_line
from maestropy.trace.stages import STAGES

VERDICTS: Final = tuple(verdict.value for verdict in RequestVerdict)
STATES: Final = tuple(state.value for state in StageState)
_LETTERS = {state: str(number) for number, state in enumerate(StageState)}
_QUOTED_BYTES = 6_000_000
_QUOTED_SETTLED = 200

Quote = Callable[[LogRecord], str]


class _TextList:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.list)
            self.list.append(text)
        return number


@dataclass(slots=True)
class Rows:
    """The columns, filled trace by trace."""

    environment: Environment
    quote: Quote
    count: int = 0
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _texts: _TextList = field(default_factory=_TextList)
    _findings: dict[int, list[list[Any]]] = field(default_factory=dict)
    _notes: dict[int, dict[int, str]] = field(default_factory=dict)
    _lines: dict[str, str] = field(default_factory=dict)
    _codes: dict[str, dict[str, Any]] = field(default_factory=dict)
    _room: int = _QUOTED_BYTES
    _settled: int = 0
    _epoch: float = 0.0

    def extend(self, traces: Iterable[Trace]) -> None:
        for trace in traces:
            self.add(trace)

    def add(self, trace: Trace) -> None:
        key = trace.key
        self._epoch = self._epoch or float(int(trace.start))
        number = self._texts.number
        stages = trace.stages  # once: they may be found again each time
        values = {
            "resource": key.resource,
            "work": key.work_name,
            "op": key.op_id,
            "consumer": number(key.consumer),
            "source": number(key.source),
            "action": number(key.action),
            "version": key.version,
            "incarnation": key.incarnation,
            "start": _tenths(trace.start - self._epoch),
            "took": _tenths(trace.duration),
            "verdict": VERDICTS.index(trace.verdict.value),
            "failed": trace.failed_stage or 0,
            "by": trace.superseded_by,
            "states": "".join(_LETTERS[stage.state] for stage in stages),
            "times": [_tenths(stage.first - trace.start) if stage.first else None for stage in stages],
            "records": self._records(trace, stages),
        }
        for name, value in values.items():
            self._columns.setdefault(name, []).append(value)
        if trace.findings:
            self._findings[self.count] = [self._finding(finding) for finding in trace.findings]
        notes = {
            stage.number: ", ".join(
                filter(None, (stage.note, f"via {stage.via}" if stage.via not in ("", "direct") else ""))
            )
            for stage in stages
        }
        if any(notes.values()):
            self._notes[self.count] = {stage: note for stage, note in notes.items() if note}
        self.count += 1

    def _records(self, trace: Trace, stages: Iterable[StageResult]) -> list[int]:
        is_problem = trace.verdict in PROBLEMS
        is_quoted = self._room > 0 and (is_problem or self._settled < _QUOTED_SETTLED)
        self._settled += not is_problem
        flat: list[int] = []
        for record in timeline(stages):
            phrase = self._texts.number(
                _phrase(record.kind, record.action, record.version, record.is_deleting, record.detail)
            )
            flat += (
                _tenths(record.at - trace.start) if record.at else 0,
                record.stage,
                record.file,
                record.line,
                phrase,
            )
            if is_quoted and self._room > 0:
                self._quoted(record)
        return flat

    def _quoted(self, record: LogRecord) -> None:
        position = f"{record.file}:{record.line}"
        if position not in self._lines and (line := self.quote(record)):
            self._lines[position] = shown_line(line)
            self._room -= len(self._lines[position])

    def _finding(self, finding: RequestFinding) -> list[Any]:
        entry = finding.entry
        self._codes.setdefault(
            finding.code,
            {
                "title": entry.title,
                "severity": entry.severity,
                "stage": entry.stage,
                "cause": entry.cause,
                "advice": list(entry.advice),
                "sql": [SQL[name] for name in entry.sql],
            },
        )
        for record in finding.evidence:
            self._quoted(record)
        evidence = [[record.file, record.line, self._texts.number(describe(record))] for record in finding.evidence]
        return [finding.code, finding.confidence, printable(redact.text(finding.detail)), evidence]

    def model(self, *, notes: Iterable[RequestFinding], about: dict[str, Any]) -> dict[str, Any]:
        environment = self.environment
        return {
            "about": about,
            "epoch": stamp(self._epoch),
            "verdicts": VERDICTS,
            "states": STATES,
            "stages": [[number, *STAGES[number]] for number in sorted(STAGES)],
            "inputs": inputs_model(environment),
            "writers": [[writer.pod, writer.path, writer.role] for writer in environment.writers],
            "notes": [[note.code, note.entry.title, note.detail] for note in notes],
            "codes": self._codes,
            "texts": self._texts.list,
            "columns": self._columns,
            "findings": self._findings,
            "stageNotes": self._notes,
            "lines": self._lines,
        }


def _tenths(seconds: float) -> int:
    """Return tenths of milliseconds: finer than clocks agree, and short when written."""
    return round(seconds * 10_000)


# Most records have one of a few hundred texts.
@lru_cache(maxsize=1 << 14)
def _phrase(kind: RecordKind, action: str, version: int, is_deleting: bool, detail: str) -> str:  # noqa: FBT001 - the fields of a hit
    return describe(
        LogRecord(kind, 0.0, 0, 0, 0, version=version, action=action, is_deleting=is_deleting, detail=detail)
    )
