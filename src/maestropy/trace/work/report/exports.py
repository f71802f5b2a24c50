"""Export a report as tree, Mermaid, Markdown or HTML. Pure; each format is complete by itself."""

from collections.abc import Iterator
from html import escape

import orjson

from maestropy.journal import redact
from maestropy.trace.markdown_text import code_block, escaped
from maestropy.trace.output import finding_lines, printable
from maestropy.trace.work.judge import manifest_rows
from maestropy.trace.work.judge.manifest_rows import ManifestRow
from maestropy.trace.work.model import AppliedWork, NestedWork
from maestropy.trace.work.report.render import live_state, text
from maestropy.trace.work.report.work_report import Traced, WorkReport, resource_id, work_name

_LONGEST = 2000
"""Characters of one value of feedback; whole objects are longer, and are for -o json."""


def tree(report: WorkReport) -> str:
    """Return the relation as a tree: name, resource, applied works, manifests, works within works."""
    lines: list[str] = []
    for traced in report.works:
        facts = traced.facts
        lines.append(f"{printable(work_name(facts) or '<unknown>')}  [{traced.verdict.name} {traced.verdict.code}]")
        row = facts.data.row
        version = f"  version {row.version}, consumer {printable(row.consumer)}" if row else "  not in the database"
        lines.append(f"└─ resource {printable(resource_id(facts))}{version}")
        branches = [_branch(applied_work, facts.manifest_rows) for applied_work in facts.data.applied]
        branches += [
            [f"desired {_leaf(manifest_row)}"] for manifest_row in facts.manifest_rows if not manifest_row.is_applied
        ]
        branches += [list(_nested_branch(nested)) for nested in facts.data.nested]
        lines += _grown(branches, indent="   ")
    return "\n".join([*lines, *(line for finding in report.findings for line in finding_lines(finding))]) + "\n"


def _branch(applied: AppliedWork, lines: tuple[ManifestRow, ...]) -> list[str]:
    own = [line for line in lines if any(entry.work == applied for entry in line.entries)]
    head = f"applied work {printable(applied.name)}  cluster {applied.cluster}"
    return [head, *_grown([[_leaf(line)] for line in own], indent="")]


def _nested_branch(nested: NestedWork) -> Iterator[str]:
    yield f"work within: {printable(nested.namespace)}/{printable(nested.name)}  level {nested.depth}"
    leaves = [[_leaf(manifest_row)] for manifest_row in manifest_rows.nested_rows(nested)]
    yield from _grown([*leaves, *(list(_nested_branch(inner)) for inner in nested.nested)], indent="")


def _leaf(line: ManifestRow) -> str:
    conditions = " ".join(str(condition) for condition in line.conditions)
    return f"{printable(str(line.key))}  live {live_state(line)}  {printable(conditions)}".rstrip()


def _grown(branches: list[list[str]], *, indent: str) -> list[str]:
    lines = []
    for index, branch in enumerate(branches):
        is_last = index == len(branches) - 1
        lines.append(f"{indent}{'└─' if is_last else '├─'} {branch[0]}")
        lines += [f"{indent}{'   ' if is_last else '│  '}{line}" for line in branch[1:]]
    return lines


def feedback(report: WorkReport) -> str:
    """Return what agents feed back, object by object, without secrets."""
    lines = ["Feedback:"]
    for traced in report.works:
        lines += _feedback_lines(traced.facts.manifest_rows, indent="  ")
        for nested in traced.facts.data.nested:
            lines += _nested_feedback(nested)
    return "\n".join([*lines, *(["  none"] if len(lines) == 1 else [])]) + "\n"


def _nested_feedback(nested: NestedWork) -> list[str]:
    lines = [f"  in {printable(nested.namespace)}/{printable(nested.name)}:"]
    lines += _feedback_lines(manifest_rows.nested_rows(nested), indent="    ")
    for inner in nested.nested:
        lines += _nested_feedback(inner)
    return lines


def _feedback_lines(rows: tuple[ManifestRow, ...], *, indent: str) -> list[str]:
    return [
        f"{indent}{printable(str(line.key))}  {printable(name)} = {printable(_shown(value))}"
        for line in rows
        for name, value in redact.fields(dict(line.feedback)).items()
    ]


def _shown(value: object) -> str:
    """Return a value in one line."""
    # Text within JSON escapes its quotes; a person wants to read it as it was.
    shown = redact.text(value if isinstance(value, str) else orjson.dumps(value).decode())
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def mermaid(report: WorkReport) -> str:
    """Return the relation as a Mermaid flow chart."""
    lines = ["flowchart LR"]
    for number, traced in enumerate(report.works):
        lines += _chart(traced, prefix=f"w{number}")
    return "\n".join(lines) + "\n"


def _chart(traced: Traced, *, prefix: str) -> Iterator[str]:
    facts = traced.facts
    yield f"  {prefix}n[{_label(work_name(facts) or 'unknown', 'user work name')}] --> {prefix}r"
    yield f"  {prefix}r[{_label(resource_id(facts) or 'unknown', f'{traced.verdict.code} {traced.verdict.name}')}]"
    for index, applied in enumerate(facts.data.applied):
        node = f"{prefix}a{index}"
        yield f"  {prefix}r --> {node}[{_label(applied.name, f'cluster {applied.cluster}')}]"
        for number, manifest_row in enumerate(facts.manifest_rows):
            if any(entry.work == applied for entry in manifest_row.entries):
                yield f"  {node} --> {prefix}m{number}[{_label(str(manifest_row.key), _live(manifest_row))}]"
    for number, manifest_row in enumerate(facts.manifest_rows):
        if not manifest_row.is_applied:
            yield f"  {prefix}r -.-> {prefix}m{number}[{_label(str(manifest_row.key), 'not applied')}]"


def _live(manifest_row: ManifestRow) -> str:
    return f"live {live_state(manifest_row)}"


def _label(text_: str, note: str) -> str:
    plain = printable(f"{text_}").replace('"', "'").replace("<", "‹").replace(">", "›")
    return f'"{plain}<br/>{printable(note)}"'


def markdown(report: WorkReport) -> str:
    """Return the report as Markdown: a heading, and the text report."""
    blocks = [*code_block([text(report, is_wide=True).rstrip("\n")]), "", *code_block([tree(report).rstrip("\n")])]
    head = [f"# Trace of {escaped(report.result.query.requested)}", "", f"Exit code {int(report.exit)}.", ""]
    return "\n".join([*head, *blocks]) + "\n"


def html(report: WorkReport) -> str:
    """Return one self-contained page."""
    title = escape(printable(report.result.query.requested))
    parts = [_section(work) for work in report.works]
    rest = escape("\n".join(line for finding in report.findings for line in finding_lines(finding)))
    style = (
        "body{font:15px/1.5 system-ui;margin:2rem;max-width:75rem}pre{overflow:auto;padding:1rem;background:#8881}"
        "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Trace of {title}</title><style>{style}</style>'
        f"<h1>Trace of {title}</h1><p>Exit code {int(report.exit)}</p>{''.join(parts)}"
        f"<details open><summary>Report</summary><pre>{escape(text(report, is_wide=True))}</pre></details>"
        f"<details open><summary>Relation</summary><pre>{escape(tree(report))}</pre></details>"
        f"<pre>{rest}</pre></html>\n"
    )


def _section(traced: Traced) -> str:
    name = escape(printable(work_name(traced.facts) or resource_id(traced.facts)))
    verdict = traced.verdict
    return f"<h2>{name}</h2><p><b>{verdict.code} {escape(verdict.name)}</b> {escape(verdict.summary)}</p>"
