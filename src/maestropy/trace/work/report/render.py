"""Format a work report as text: identifiers, database row, manifests, status line, findings, next steps.

Pure. The layout is the one that runbooks show.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo

from maestropy.journal import redact
from maestropy.trace.output import finding_lines, printable, table
from maestropy.trace.work import identities
from maestropy.trace.work.judge import deletion, findings, manifest_rows
from maestropy.trace.work.judge.facts import Facts
from maestropy.trace.work.judge.manifest_rows import ManifestRow
from maestropy.trace.work.model import NestedWork, TracedResource
from maestropy.trace.work.report.work_report import Traced, WorkReport, resource_id, sequence_time, work_name

_RULE = "═" * 51
_MARKS = {"OK": "✓", "DELETED": "⚠"}
_BRIEF = 3
"""With this many works or more, a report starts with a table and shows details only in wide format."""


def text(report: WorkReport, *, is_wide: bool = False, zone: tzinfo | None = UTC) -> str:
    """Return the whole report; its times are those of `zone`, None for this computer's."""
    lines: list[str] = []
    if len(report.works) >= _BRIEF:
        lines += [*_overview(report), ""]
    for traced in report.works:
        if len(report.works) < _BRIEF or is_wide:
            lines += [*work_lines(traced, is_wide=is_wide, zone=zone), ""]
    if report.result.steps and is_wide:
        lines += ["The way up:", *(f"  {printable(step)}" for step in report.result.steps), ""]
    if report.result.candidates:
        lines += [*_candidates(report, zone), ""]
    for finding in report.findings:
        lines += [*finding_lines(finding), ""]
    return "\n".join(lines)


def _overview(report: WorkReport) -> Iterator[str]:
    yield f"ManifestWork Trace Results ({len(report.works)} works)"
    yield _RULE
    rows = [
        (work.verdict.name, work.verdict.code, resource_id(work.facts), work_name(work.facts), work.facts.consumer)
        for work in report.works
    ]
    yield from table(rows, head=("Verdict", "Code", "Resource ID", "Work Name", "Consumer"), indent="")


def work_lines(traced: Traced, *, is_wide: bool = False, zone: tzinfo | None = UTC) -> Iterator[str]:
    """Yield the report of one work."""
    facts, verdict = traced.facts, traced.verdict
    is_deleted = verdict.code in {"MW-101", "MW-102"}
    yield f"ManifestWork Trace Results{' (DELETED)' if is_deleted else ''}"
    yield _RULE
    yield ""
    yield from _identities(facts, is_deleted=is_deleted)
    yield ""
    if facts.data.row:
        yield from _database(facts.data.row, is_wide=is_wide, zone=zone)
        yield ""
    yield from _manifests(facts, is_deleted=is_deleted, is_wide=is_wide)
    for nested in facts.data.nested:
        yield from _nested(nested)
    yield f"Status: {_status(traced)}"
    yield ""
    yield from _deletion(facts)
    for finding in verdict.findings:
        if finding.code != "MW-001":
            yield from finding_lines(finding)
            yield ""
    yield from _next_steps(traced)


def _identities(facts: Facts, *, is_deleted: bool) -> Iterator[str]:
    row = facts.data.row
    checks = {check.what: check.says for check in identities.check_row(row)} if row else {}
    note = f"  ({checks['resource id']})" if checks else ""
    if facts.data.requested:
        yield f"Requested:              {printable(facts.data.requested)}"
    yield f"User-Created Work Name: {printable(work_name(facts)) or '<unknown>'}"
    yield f"Resource ID (DB):       {printable(_shown_id(facts)) or '<unknown>'}{note}"
    for applied_work in facts.data.applied:
        cluster = f"  (cluster {applied_work.cluster})"
        yield f"AppliedManifestWork:    {printable(applied_work.name)}{cluster}"
    if not facts.data.applied:
        yield f"AppliedManifestWork:    {_no_record(facts, is_deleted=is_deleted)}"
    if row:
        yield f"Consumer:               {printable(row.consumer)}"
        yield f"Source:                 {printable(row.source) or '<unknown> (not in the REST API)'}"


def _shown_id(facts: Facts) -> str:
    data = facts.data
    return resource_id(facts) if data.row or data.tombstones else "<not in the database>" * data.database.is_readable


def _no_record(facts: Facts, *, is_deleted: bool) -> str:
    if not facts.readable_clusters:
        return "<unknown> (no cluster of its consumer could be read)"
    return "Not found on cluster (work deleted)" if is_deleted else "Not found on cluster"


def _database(row: TracedResource, *, is_wide: bool, zone: tzinfo | None) -> Iterator[str]:
    status = row.status
    yield "Database Information:"
    yield "─" * 20
    yield f"Created:  {moment(row.created, zone)}"
    yield f"Updated:  {moment(row.updated, zone)}"
    yield f"Deleted:  {moment(row.deleted, zone) if row.deleted else '<null> (still active)'}"
    reported = f"status for version {status.version}" if status else "no status: the agent has never reported"
    sent = f", sent {moment(sequence_time(status.sequence), zone)}" if status and status.sequence else ""
    yield f"Version:  {row.version} ({reported}{sent})"
    if status:
        yield f"Conditions: {'  '.join(printable(str(condition)) for condition in status.conditions) or 'none'}"
    if is_wide:
        yield f"Operation:  {printable(row.operation_id) or '<none>'}"
        yield f"Labels:     {', '.join(f'{printable(k)}={printable(v)}' for k, v in row.labels.items()) or 'none'}"
        for event in row.events:
            done = f"published {moment(event.reconciled, zone)}" if event.reconciled else "not yet published"
            yield f"Event:      {event.type} {moment(event.created, zone)}, {done}"


def _manifests(facts: Facts, *, is_deleted: bool, is_wide: bool) -> Iterator[str]:
    if is_deleted or not facts.data.applied:
        desired = [manifest_row for manifest_row in facts.manifest_rows if manifest_row.desired is not None]
        if desired:
            yield "Original Manifests (from DB):"
            yield "─" * 29
            yield from (f"- {printable(str(line.key))}{_notes(line)}" for line in desired)
            yield ""
        return
    applied = sum(manifest_row.is_applied for manifest_row in facts.manifest_rows)
    counted = f"{applied} total" if facts.data.row is None else f"{applied} total, {_desired_count(facts)} in DB"
    title = f"Applied Manifests ({counted}):"
    yield title
    yield "─" * len(title)
    head = ["Resource Type", "Namespace", "Name", "Applied", "Live", "Conditions"]
    rows = [_cells(manifest_row, is_known=facts.data.row is not None) for manifest_row in facts.manifest_rows]
    if is_wide:
        head += ["UID", "Strategy", "Feedback"]
        rows = [
            [*cells, *_wide_cells(manifest_row)] for cells, manifest_row in zip(rows, facts.manifest_rows, strict=True)
        ]
    yield from table(rows, head=head, indent="")
    yield ""


def _desired_count(facts: Facts) -> int:
    return sum(manifest_row.desired is not None for manifest_row in facts.manifest_rows)


def _cells(line: ManifestRow, *, is_known: bool) -> list[str]:
    is_undesired = is_known and line.desired is None
    return [
        line.key.kind or line.key.plural,
        line.key.namespace or "<cluster>",
        line.key.name,
        ("not desired" if is_undesired else "yes") if line.is_applied else "no",
        live_state(line),
        " ".join(str(condition) for condition in line.conditions) or "-",
    ]


def _wide_cells(line: ManifestRow) -> list[str]:
    uid = next((entry.resource.uid for entry in line.entries), "")
    feedback = ", ".join(f"{name}={value}" for name, value in redact.fields(dict(line.feedback)).items())
    return [uid or "-", line.strategy or "Update", feedback[:80] or "-"]


def live_state(line: ManifestRow) -> str:
    """Return the state of an object on its cluster in one or two words."""
    if any(entry.is_same_object is False for entry in line.entries):
        return "other uid"
    if any(live.deleting for live in line.live_objects):
        return "leaving"
    return {True: "yes", False: "absent", None: "unknown" if line.live_objects else "-"}[line.is_live]


def _notes(line: ManifestRow) -> str:
    conditions = [str(condition) for condition in line.conditions]
    live = [] if line.is_live is None else ["live" if line.is_live else "not on cluster"]
    return f"  [{', '.join(live + conditions)}]" if live or conditions else ""


def _nested(nested: NestedWork) -> Iterator[str]:
    work = f"{nested.namespace}/{nested.name}"
    records = ", ".join(applied_work.name for applied_work in nested.applied) or "no AppliedManifestWork"
    yield f"Nested ManifestWork (level {nested.depth}): {printable(work)}"
    yield f"  {printable(records)}"
    if nested.status:
        yield f"  {printable(' '.join(str(condition) for condition in nested.status.conditions))}"
    head = ("Resource Type", "Namespace", "Name", "Applied", "Live", "Conditions")
    yield from table(
        [_cells(manifest_row, is_known=True) for manifest_row in manifest_rows.nested_rows(nested)], head=head
    )
    yield ""
    for inner in nested.nested:
        yield from _nested(inner)


_STEP_SIGNS = {"done": "✓", "waiting": ">", "not yet": " ", "unknown": "?"}


def _deletion(facts: Facts) -> Iterator[str]:
    """Return how far a deletion has come; the step it waits at is explained."""
    steps = deletion.steps(facts)
    if not steps:
        return
    yield "Deletion:"
    yield "─" * 9
    for step in steps:
        yield f"{_STEP_SIGNS[step.state]} {step.name:<12}  {printable(step.says)}"
        if step.state == "waiting":
            yield f"{'':16}{step.explanation}"
    yield ""


def _status(traced: Traced) -> str:
    code, verdict = traced.verdict.code, traced.verdict
    if code == "MW-001":
        return "✓ All manifests successfully applied to cluster"
    if code in {"MW-101", "MW-102", "MW-124"}:
        return f"⚠ {verdict.summary} ({verdict.code})"
    mark = "✗" if any(finding.code == code and finding.severity == "error" for finding in verdict.findings) else "⚠"
    return f"{mark} {verdict.name} ({code}): {verdict.summary}"


def _next_steps(traced: Traced) -> Iterator[str]:
    id_ = resource_id(traced.facts)
    if id_ or traced.verdict.code == "MW-001":
        yield "Next steps:"
    if traced.verdict.code == "MW-001":
        yield f"  {traced.verdict.summary}"
        for finding in traced.verdict.findings:
            yield from (f"  {printable(command)}" for command in finding.advice)
    if id_:
        logs = printable(findings.trace_logs(traced.facts))
        yield f"  Why and when, from logs: maestro trace request --resource-id {printable(id_)} {logs}"


def _candidates(report: WorkReport, zone: tzinfo | None) -> Iterator[str]:
    yield f"Multiple resources found for {printable(report.result.query.requested)}:"
    rows = [
        (row.id, row.work_name, row.source or "-", row.consumer, moment(row.created, zone), moment(row.deleted, zone))
        for row in report.result.candidates
    ]
    yield from table(rows, head=("Resource ID", "Work Name", "Source", "Consumer", "Created", "Deleted"))


def verdicts(report: WorkReport) -> str:
    """Return the shortest report: one line with the verdict of each work, or the findings without works."""
    lines = [
        f"{work.verdict.name} {work.verdict.code} {resource_id(work.facts) or '-'} {work_name(work.facts) or '-'}"
        for work in report.works
    ]
    lines += [f"{finding.severity} {finding.code} {finding.title}" for finding in report.findings]
    return "".join(f"{printable(line)}\n" for line in lines)


def moment(value: datetime | None, zone: tzinfo | None = UTC) -> str:
    """Return a time for people."""
    if value is None:
        return "-"
    plain = value.astimezone(zone)
    shown = plain.strftime("%Y-%m-%d %H:%M:%S")
    offset = plain.strftime("%z")
    suffix = "Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:5]}"
    return f"{shown}.{plain.microsecond // 1000:03d}{suffix}" if plain.microsecond else f"{shown}{suffix}"
