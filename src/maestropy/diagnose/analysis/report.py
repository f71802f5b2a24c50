"""Write an analysis as text, JSON or one HTML page. Pure; everything from an archive is escaped."""

from collections import Counter
from html import escape
from typing import Any, Final

from maestropy.diagnose.analysis.analyze import Analysis
from maestropy.diagnose.analysis.ranking import Ranked
from maestropy.trace.exit_codes import Exit
from maestropy.trace.output import document_text, finding_lines, finding_model, printable

_WORDS: Final = {
    Exit.HEALTHY: "healthy",
    Exit.PROBLEM: "something is wrong",
    Exit.INCONCLUSIVE: "nothing wrong was found, but a part is unknown",
}


def text(analysis: Analysis, *, most: int) -> str:
    """Return the report for people: the verdict, the findings in order, and what is unknown."""
    lines = [*_head(analysis), ""]
    for number, ranked in enumerate(analysis.findings[:most], 1):
        lines += _finding_lines(number, ranked)
    if len(analysis.findings) > most:
        lines.append(f"… and {len(analysis.findings) - most} more findings; see them with --all or -o json")
    if analysis.unknown:
        lines += [*([] if not lines[-1] else [""]), "Unknown, and not judged:"]
        lines += [f"  - {printable(sentence)}" for sentence in analysis.unknown]
    return "\n".join(lines).rstrip() + "\n"


def _finding_lines(number: int, ranked: Ranked) -> list[str]:
    head, *rest = finding_lines(ranked.finding, indent="     ")
    code, _, _ = head.partition("  ")
    return [f"{number:>3}. {code}  {printable(ranked.headline)}", *rest, ""]


def _head(analysis: Analysis) -> list[str]:
    manifest = analysis.manifest
    scope = [
        f"{name} {value}" for name in ("consumer", "work", "since", "until") if (value := getattr(manifest.scope, name))
    ]
    note = ", names replaced" if manifest.is_anonymised else ""
    by = f", by maestropy {manifest.version}" if manifest.version else ""
    lines = [
        f"Archive    {printable(analysis.archive)}, collected {analysis.now:%Y-%m-%d %H:%M:%SZ}{printable(by)}",
        f"Scope      {printable(', '.join(scope)) or 'everything'}{note}",
        f"Verdict    {_WORDS[analysis.exit]}: {_severities(analysis)}",
    ]
    if analysis.works:
        lines.append(f"Works      {len(analysis.works)}: {_counts(work.verdict for work in analysis.works)}")
    if analysis.requests:
        lines.append(
            f"Requests   {len(analysis.requests)}: {_counts(request.verdict for request in analysis.requests)}"
        )
    return lines


def _severities(analysis: Analysis) -> str:
    counts = Counter(ranked.finding.severity for ranked in analysis.findings)
    words = {"error": ("error", "errors"), "warn": ("warning", "warnings"), "info": ("note", "notes")}
    return (
        ", ".join(f"{counts[key]} {names[counts[key] != 1]}" for key, names in words.items() if counts[key])
        or "no findings"
    )


def _counts(values: Any) -> str:
    return ", ".join(f"{count} {printable(str(value))}" for value, count in Counter(values).most_common())


def model(analysis: Analysis) -> dict[str, Any]:
    """Return the report as the JSON model has it, without the frame."""
    manifest = analysis.manifest
    return {
        "archive": analysis.archive,
        "collectedAt": analysis.now.isoformat(),
        "schema": manifest.schema,
        "isAnonymised": manifest.is_anonymised,
        "verdict": _WORDS[analysis.exit],
        "findings": [_ranked_model(number, ranked) for number, ranked in enumerate(analysis.findings, 1)],
        "works": [
            {"id": work.id, "name": work.name, "consumer": work.consumer, "code": work.code, "verdict": work.verdict}
            for work in analysis.works
        ],
        "requests": [
            {
                "resourceId": request.resource_id,
                "workName": request.work_name,
                "consumer": request.consumer,
                "action": request.action,
                "version": request.version,
                "verdict": request.verdict,
                "failedStage": request.failed_stage,
                "code": request.code,
            }
            for request in analysis.requests
        ],
        "unknown": list(analysis.unknown),
    }


def _ranked_model(number: int, ranked: Ranked) -> dict[str, Any]:
    return {"rank": number, "engine": ranked.engine, "subjects": list(ranked.subjects), **finding_model(ranked.finding)}


def document(analysis: Analysis, *, form: str) -> str:
    """Return the report as JSON or YAML."""
    stamp = analysis.now.isoformat()
    return document_text(model(analysis), form=form, generated_at=stamp, exit_code=int(analysis.exit))


_STYLE: Final = (
    "body{font:15px/1.5 system-ui;margin:2rem;max-width:75rem}pre{overflow:auto;padding:1rem;background:#8881}"
    "details{border-left:4px solid #8886;padding:.2rem 1rem;margin:.6rem 0}summary{cursor:pointer}"
    ".error{border-color:#c33}.warn{border-color:#c90}"
    "table{border-collapse:collapse}td,th{padding:.1rem 1rem .1rem 0;text-align:left}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


def html(analysis: Analysis) -> str:
    """Return one self-contained page, without scripts: nothing of an archive can run in it."""
    title = escape(printable(analysis.archive))
    head = "".join(f"<tr><th>{escape(line[:11].strip())}<td>{escape(line[11:])}" for line in _head(analysis))
    findings = "".join(_section(ranked) for ranked in analysis.findings) or "<p>No findings.</p>"
    unknown = "".join(f"<li>{escape(printable(sentence))}" for sentence in analysis.unknown)
    works = "".join(
        f"<tr><td>{escape(printable(work.name))}<td>{escape(printable(work.consumer))}<td>{work.code}<td>{escape(work.verdict)}"
        for work in analysis.works
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Diagnosis of {title}</title><style>{_STYLE}</style><h1>Diagnosis of {title}</h1><table>{head}</table>"
        f"<h2>Findings</h2>{findings}<h2>Unknown, and not judged</h2><ul>{unknown or '<li>nothing'}</ul>"
        f"<h2>Works</h2><table><tr><th>work<th>consumer<th>code<th>verdict{works}</table></html>\n"
    )


def _section(ranked: Ranked) -> str:
    finding = ranked.finding
    _, *rest = finding_lines(finding, indent="")
    is_open = " open" if finding.severity == "error" else ""
    return (
        f'<details class="{escape(finding.severity)}"{is_open}><summary><b>{escape(ranked.code)}</b> '
        f"{escape(printable(ranked.headline))}</summary><pre>{escape(chr(10).join(rest))}</pre></details>"
    )
