"""Compare two analyses: which findings are new, which are gone, and which works changed their verdict. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.diagnose.analysis.ranking import Ranked
from maestropy.trace.exit_codes import Exit
from maestropy.trace.output import document_text, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What changed from one archive to another."""

    before: Analysis
    after: Analysis
    new: tuple[Ranked, ...]
    gone: tuple[Ranked, ...]
    works: tuple[tuple[str, str, str], ...]
    """Works with another verdict: name with consumer, the code before, the code after; empty where it is not there."""

    @property
    def exit(self) -> Exit:
        """Healthy if nothing differs."""
        return Exit.PROBLEM if self.new or self.gone or self.works else Exit.HEALTHY


def compare(before: Analysis, after: Analysis) -> Difference:
    """Compare two analyses."""
    old, new = _keys(before.findings), _keys(after.findings)
    return Difference(
        before=before,
        after=after,
        new=tuple(item for key, item in new.items() if key not in old),
        gone=tuple(item for key, item in old.items() if key not in new),
        works=tuple(_changed_works(before, after)),
    )


def _keys(findings: Iterable[Ranked]) -> dict[tuple[str, str, str], Ranked]:
    """Return findings by code and subject: ages and counts in titles change all the time."""
    return {
        (item.engine, item.code, subject): item
        for item in findings
        for subject in (item.subjects or (item.finding.title if item.code == "MD-201" else "",))
    }


def _changed_works(before: Analysis, after: Analysis) -> Iterable[tuple[str, str, str]]:
    old = {work.id: work for work in before.works}
    new = {work.id: work for work in after.works}
    for key in sorted(old.keys() | new.keys()):
        first, second = old.get(key), new.get(key)
        codes = (f"{first.code} {first.verdict}" if first else "", f"{second.code} {second.verdict}" if second else "")
        if codes[0] != codes[1]:
            work = second or first
            assert work is not None
            yield f"{work.name} of {work.consumer}" if work.consumer else work.name, *codes


def text(difference: Difference) -> str:
    """Return the comparison for people."""
    before, after = difference.before, difference.after
    lines = [
        f"Before     {printable(before.archive)}, collected {before.now:%Y-%m-%d %H:%M:%SZ}",
        f"After      {printable(after.archive)}, collected {after.now:%Y-%m-%d %H:%M:%SZ}",
    ]
    for title, findings in (("New findings", difference.new), ("Findings that are gone", difference.gone)):
        unique = list(dict.fromkeys(findings))
        if unique:
            lines += [
                "",
                f"{title}:",
                *(f"  {item.code} {item.finding.severity}  {printable(item.headline)}" for item in unique),
            ]
    if difference.works:
        lines += ["", "Works with another verdict:"]
        lines += [f"  {printable(name)}: {old or 'absent'} -> {new or 'absent'}" for name, old, new in difference.works]
    if difference.exit is Exit.HEALTHY:
        lines += ["", "No difference in findings and verdicts."]
    return "\n".join(lines) + "\n"


def document(difference: Difference, *, form: str) -> str:
    """Return the comparison as JSON or YAML."""
    body: dict[str, Any] = {
        "before": difference.before.archive,
        "after": difference.after.archive,
        "new": [_model(item) for item in dict.fromkeys(difference.new)],
        "gone": [_model(item) for item in dict.fromkeys(difference.gone)],
        "works": [{"work": name, "before": old, "after": new} for name, old, new in difference.works],
    }
    stamp = difference.after.now.isoformat()
    return document_text(body, form=form, generated_at=stamp, exit_code=int(difference.exit))


def _model(item: Ranked) -> dict[str, Any]:
    return {
        "engine": item.engine,
        "code": item.code,
        "severity": item.finding.severity,
        "title": item.finding.title,
        "subjects": list(item.subjects),
    }
