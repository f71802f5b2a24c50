"""A report as text for a terminal: the relation, the database, the manifests, a status line, findings, next steps.

Pure; the layout is the one runbooks show, so that people and their notes find everything where it was.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from maestropy.journal import redact
from maestropy.trace.output import finding_lines, printable, table
from maestropy.trace.work import identities, relations
from maestropy.trace.work.facts import Facts
from maestropy.trace.work.model import NestedWork, Row
from maestropy.trace.work.relations import Line
from maestropy.trace.work.report import Report, Traced, resource_id, sequence_time, work_name

_RULE = "═" * 51
_MARKS = {"OK": "✓", "DELETED": "⚠"}
_BRIEF = 3
"""From so many works on, a report begins with a table of them, and tells only those with findings."""


def text(report: Report, *, is_wide: bool = False, zone: tzinfo | None = UTC) -> str:
    """Return the whole report; its times are those of `zone`, None for this computer's."""
    lines: list[str] = []
    if len(report.works) >= _BRIEF:
        lines += [*_overview(report), ""]
    for traced in report.works:
        if len(report.works) < _BRIEF or is_wide:
            lines += [*_work(traced, is_wide=is_wide, zone=zone), ""]
    if report.answer.steps and is_wide:
        lines += ["The way up:", *(f"  {printable(step)}" for step in report.answer.steps), ""]
    if report.answer.candidates:
        lines += [*_candidates(report, zone), ""]
    for finding in report.findings:
        lines += [*finding_lines(finding), ""]
    return "\n".join(lines)


def _overview(report: Report) -> Iterator[str]:
    yield f"ManifestWork Trace Results ({len(report.works)} works)"
    yield _RULE
    rows = [
        (each.verdict.name, each.verdict.code, resource_id(each.facts), work_name(each.facts), each.facts.consumer)
        for each in report.works
    ]
    yield from table(rows, head=("Verdict", "Code", "Resource ID", "Work Name", "Consumer"), indent="")


def _work(traced: Traced, *, is_wide: bool, zone: tzinfo | None) -> Iterator[str]:
    facts, verdict = traced.facts, traced.verdict
    is_deleted = verdict.code in {"MW-101", "MW-102"}
    yield f"ManifestWork Trace Results{' (DELETED)' if is_deleted else ''}"
    yield _RULE
    yield ""
    yield from _identities(facts, is_deleted=is_deleted)
    yield ""
    if facts.gathered.row:
        yield from _database(facts.gathered.row, is_wide=is_wide, zone=zone)
        yield ""
    yield from _manifests(facts, is_deleted=is_deleted, is_wide=is_wide)
    for nested in facts.gathered.nested:
        yield from _nested(nested)
    yield f"Status: {_status(traced)}"
    yield ""
    for finding in verdict.findings:
        if finding.code != "MW-001":
            yield from finding_lines(finding)
            yield ""
    yield from _next_steps(traced)


def _identities(facts: Facts, *, is_deleted: bool) -> Iterator[str]:
    row = facts.gathered.row
    checks = {check.what: check.says for check in identities.check_row(row)} if row else {}
    note = f"  ({checks['resource id']})" if checks else ""
    if facts.gathered.asked:
        yield f"Asked for:              {printable(facts.gathered.asked)}"
    yield f"User-Created Work Name: {printable(work_name(facts)) or '<unknown>'}"
    yield f"Resource ID (DB):       {printable(_shown_id(facts)) or '<unknown>'}{note}"
    for each in facts.gathered.applied:
        where = f"  (cluster {each.cluster})"
        yield f"AppliedManifestWork:    {printable(each.name)}{where}"
    if not facts.gathered.applied:
        yield f"AppliedManifestWork:    {_no_record(facts, is_deleted=is_deleted)}"
    if row:
        yield f"Consumer:               {printable(row.consumer)}"
        yield f"Source:                 {printable(row.source) or '<unknown> (the REST API does not tell)'}"


def _shown_id(facts: Facts) -> str:
    gathered = facts.gathered
    return (
        resource_id(facts)
        if gathered.row or gathered.tombstones
        else "<not in the database>" * gathered.database.is_clear
    )


def _no_record(facts: Facts, *, is_deleted: bool) -> str:
    if not facts.its_clusters:
        return "<unknown> (no cluster of its consumer could be asked)"
    return "Not found on cluster (work deleted)" if is_deleted else "Not found on cluster"


def _database(row: Row, *, is_wide: bool, zone: tzinfo | None) -> Iterator[str]:
    status = row.status
    yield "Database Information:"
    yield "─" * 20
    yield f"Created:  {moment(row.created, zone)}"
    yield f"Updated:  {moment(row.updated, zone)}"
    yield f"Deleted:  {moment(row.deleted, zone) if row.deleted else '<null> (still active)'}"
    reported = f"status for version {status.version}" if status else "no status: the agent has never answered"
    sent = f", sent {moment(sequence_time(status.sequence), zone)}" if status and status.sequence else ""
    yield f"Version:  {row.version} ({reported}{sent})"
    if status:
        yield f"Conditions: {'  '.join(printable(str(each)) for each in status.conditions) or 'none'}"
    if is_wide:
        yield f"Operation:  {printable(row.operation_id) or '<none>'}"
        yield f"Labels:     {', '.join(f'{printable(k)}={printable(v)}' for k, v in row.labels.items()) or 'none'}"
        for event in row.events:
            done = f"published {moment(event.reconciled, zone)}" if event.reconciled else "not yet published"
            yield f"Event:      {event.type} {moment(event.created, zone)}, {done}"


def _manifests(facts: Facts, *, is_deleted: bool, is_wide: bool) -> Iterator[str]:
    if is_deleted or not facts.gathered.applied:
        wanted = [line for line in facts.lines if line.wanted is not None]
        if wanted:
            yield "Original Manifests (from DB):"
            yield "─" * 29
            yield from (f"- {printable(str(line.key))}{_notes(line)}" for line in wanted)
            yield ""
        return
    applied = sum(line.is_applied for line in facts.lines)
    counted = f"{applied} total" if facts.gathered.row is None else f"{applied} total, {_wanted(facts)} in DB"
    title = f"Applied Manifests ({counted}):"
    yield title
    yield "─" * len(title)
    head = ["Resource Type", "Namespace", "Name", "Applied", "Live", "Conditions"]
    rows = [_cells(line, is_known=facts.gathered.row is not None) for line in facts.lines]
    if is_wide:
        head += ["UID", "Strategy", "Feedback"]
        rows = [[*cells, *_wide_cells(line)] for cells, line in zip(rows, facts.lines, strict=True)]
    yield from table(rows, head=head, indent="")
    yield ""


def _wanted(facts: Facts) -> int:
    return sum(line.wanted is not None for line in facts.lines)


def _cells(line: Line, *, is_known: bool) -> list[str]:
    is_unwanted = is_known and line.wanted is None
    return [
        line.key.kind or line.key.plural,
        line.key.namespace or "<cluster>",
        line.key.name,
        ("not wanted" if is_unwanted else "yes") if line.is_applied else "no",
        live_word(line),
        " ".join(str(each) for each in line.conditions) or "-",
    ]


def _wide_cells(line: Line) -> list[str]:
    uid = next((each.resource.uid for each in line.placed), "")
    feedback = ", ".join(f"{name}={value}" for name, value in redact.fields(dict(line.feedback)).items())
    return [uid or "-", line.strategy or "Update", feedback[:80] or "-"]


def live_word(line: Line) -> str:
    """Return in a word how an object is on its cluster."""
    if any(each.is_same_object is False for each in line.placed):
        return "other uid"
    if any(live.deleting for live in line.lives):
        return "leaving"
    return {True: "yes", False: "absent", None: "unknown" if line.lives else "-"}[line.is_live]


def _notes(line: Line) -> str:
    said = [str(each) for each in line.conditions]
    live = [] if line.is_live is None else ["live" if line.is_live else "not on cluster"]
    return f"  [{', '.join(live + said)}]" if live or said else ""


def _nested(nested: NestedWork) -> Iterator[str]:
    place = f"{nested.namespace}/{nested.name}"
    records = ", ".join(each.name for each in nested.applied) or "no AppliedManifestWork"
    yield f"Nested ManifestWork (level {nested.depth}): {printable(place)}"
    yield f"  {printable(records)}"
    if nested.status:
        yield f"  {printable(' '.join(str(each) for each in nested.status.conditions))}"
    head = ("Resource Type", "Namespace", "Name", "Applied", "Live", "Conditions")
    yield from table([_cells(line, is_known=True) for line in relations.nested_lines(nested)], head=head)
    yield ""
    for inner in nested.nested:
        yield from _nested(inner)


def _status(traced: Traced) -> str:
    code, verdict = traced.verdict.code, traced.verdict
    if code == "MW-001":
        return "✓ All manifests successfully applied to cluster"
    if code in {"MW-101", "MW-102"}:
        return f"⚠ {verdict.summary} ({verdict.code})"
    mark = "✗" if any(each.code == code and each.severity == "error" for each in verdict.findings) else "⚠"
    return f"{mark} {verdict.name} ({code}): {verdict.summary}"


def _next_steps(traced: Traced) -> Iterator[str]:
    found = resource_id(traced.facts)
    if found or traced.verdict.code == "MW-001":
        yield "Next steps:"
    if traced.verdict.code == "MW-001":
        yield f"  {traced.verdict.summary}"
        for finding in traced.verdict.findings:
            yield from (f"  {printable(each)}" for each in finding.advice)
    if found:
        yield f"  Why and when, from logs: maestro trace request --resource-id {printable(found)} LOGS"


def _candidates(report: Report, zone: tzinfo | None) -> Iterator[str]:
    yield f"Multiple resources found for {printable(report.answer.question.asked)}:"
    rows = [
        (row.id, row.work_name, row.source or "-", row.consumer, moment(row.created, zone), moment(row.deleted, zone))
        for row in report.answer.candidates
    ]
    yield from table(rows, head=("Resource ID", "Work Name", "Source", "Consumer", "Created", "Deleted"))


def verdicts(report: Report) -> str:
    """Return the report as lines that say the least: a verdict for each work, or what there is to say without one."""
    lines = [
        f"{each.verdict.name} {each.verdict.code} {resource_id(each.facts) or '-'} {work_name(each.facts) or '-'}"
        for each in report.works
    ]
    lines += [f"{each.severity} {each.code} {each.title}" for each in report.findings]
    return "".join(f"{printable(line)}\n" for line in lines)


def moment(value: datetime | None, zone: tzinfo | None = UTC) -> str:
    """Return a time for people."""
    if value is None:
        return "-"
    plain = value.astimezone(zone)
    shown = plain.strftime("%Y-%m-%d %H:%M:%S")
    offset = plain.strftime("%z")
    said = "Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
    return f"{shown}.{plain.microsecond // 1000:03d}{said}" if plain.microsecond else f"{shown}{said}"
