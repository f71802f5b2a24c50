"""Results of findings: of an analysis, of a comparison, and of the catalogue. Pure: the verdicts are the engines'."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.diagnose.analysis.diff import Difference
from maestropy.diagnose.analysis.ranking import Ranked
from maestropy.mcp.answers import Result, ToolError
from maestropy.mcp.evidence import EvidenceStore
from maestropy.mcp.texts import Ours, known
from maestropy.trace.findings import explain
from maestropy.trace.findings.codes import CODES
from maestropy.trace.output import Finding

_MOST_SUBJECTS: Final = 10
_MOST_EVIDENCE: Final = 6


def finding_item(finding: Finding, store: EvidenceStore, *, files: Collection[str] = ()) -> dict[str, Any]:
    """Return a finding of any engine, with IDs of its evidence."""
    item: dict[str, Any] = {
        "finding": Ours(finding.code),
        "severity": Ours(finding.severity),
        "title": known(finding.title),
    }
    if finding.detail:
        item["detail"] = known(finding.detail)
    if finding.evidence:
        item["evidence"] = store.items(finding.evidence[:_MOST_EVIDENCE], files=files)
    if finding.advice:
        item["do"] = [known(command) for command in finding.advice]
    return item


def of_analysis(
    analysis: Analysis, store: EvidenceStore, *, engines: Collection[str], files: Collection[str]
) -> Result:
    """Return the findings of some engines, ranked; of all for no engines."""
    chosen = [item for item in analysis.findings if not engines or item.engine in engines]
    severities = [item.finding.severity for item in chosen]
    head: dict[str, Any] = {
        "collected": Ours(analysis.now.isoformat(timespec="seconds")),
        "errors": severities.count("error"),
        "warnings": severities.count("warn"),
        "notes": severities.count("info"),
    }
    if not engines:
        head["works"] = len(analysis.works)
        head["requests"] = len(analysis.requests)
    if not chosen:
        head["summary"] = Ours("Nothing wrong was found in what could be read; see `unknown` for what could not.")
    return Result(head=head, items=[_ranked(item, store, files=files) for item in chosen], unknown=analysis.unknown)


def _ranked(item: Ranked, store: EvidenceStore, *, files: Collection[str]) -> dict[str, Any]:
    model = {"engine": Ours(item.engine), **finding_item(item.finding, store, files=files)}
    if item.subjects:
        model["about"] = list(item.subjects[:_MOST_SUBJECTS])
        model["aboutCount"] = len(item.subjects)
    return model


def of_difference(difference: Difference, store: EvidenceStore, *, files: Collection[str]) -> Result:
    """Return what changed from one archive to another."""
    new, gone = list(dict.fromkeys(difference.new)), list(dict.fromkeys(difference.gone))
    items: list[Mapping[str, Any]] = [{"change": Ours("new"), **_ranked(item, store, files=files)} for item in new]
    items += [{"change": Ours("gone"), **_ranked(item, store, files=())} for item in gone]
    items += [
        {"change": Ours("verdict"), "work": name, "before": old or Ours("absent"), "after": now or Ours("absent")}
        for name, old, now in difference.works
    ]
    head = {
        "before": difference.before.archive,
        "after": difference.after.archive,
        "new": len(new),
        "gone": len(gone),
        "worksWithAnotherVerdict": len(difference.works),
    }
    unknown = list(dict.fromkeys((*difference.before.unknown, *difference.after.unknown)))
    return Result(head=head, items=items, unknown=unknown)


def of_code(word: str) -> Result:
    """Return what a code means, or the list of all codes."""
    code = word.strip().upper()
    if not code:
        items = [
            {"code": Ours(code), "severity": Ours(severity), "title": Ours(title)}
            for code, severity, title in explain.titles()
        ]
        return Result(head={"codes": len(items)}, items=items)
    entry = CODES.get(code)
    if entry is None:
        text = explain.of_sentence(word)
        if text:
            return Result(head={}, items=[{"text": Ours(part)} for part in _blocks(text)])
        raise ToolError(f"there is no code {word}", remedy="Call explain without a code for the list of all.")
    return Result(head={"code": Ours(code)}, items=[{"text": Ours(part)} for part in _blocks(explain.explained(code))])


def _blocks(text: str) -> Iterable[str]:
    return [line for line in text.splitlines() if line]


def unknown_sides(sides: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what could not be read, as sentences."""
    return [f"{side['place']} could not be read: {side['trouble']}" for side in sides if not side["seen"]]
