"""Build the JSON model of a trace (schemaVersion 1). Values in, plain dictionaries out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from maestropy.trace.findings.codes import SQL
from maestropy.trace.logs.log_records import LogRecord, RecordKind, count_of
from maestropy.trace.logs.match import log_environment
from maestropy.trace.logs.model import RequestFinding, RequestKey, StageResult, Trace, timeline
from maestropy.trace.logs.read.log_writers import Environment, LogWriter
from maestropy.trace.report.formatting import describe
from maestropy.trace.report.statistics import Statistics
from maestropy.trace.stages import STAGES
from maestropy.wire import ordering

MOST_SHOWN: Final = 10_000
"""So many records of one request, and of one of its stages, are shown; of more, the first and the last."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(at: float) -> str | None:
    """Return a time as RFC 3339 in UTC; nothing for none."""
    if not at:
        return None
    return (_EPOCH + timedelta(seconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def inputs_model(environment: Environment) -> dict[str, Any]:
    """Return what was read."""
    holes = log_environment.gaps(environment.writers)
    return {
        "files": [_writer(writer, holes.get(writer.pod, [])) for writer in environment.writers],
        "environment": {
            "broker": environment.broker,
            "subscription": environment.subscription,
            "instances": environment.instances,
            "skewMs": {writer.pod: round(writer.skew * 1000, 3) for writer in environment.writers if writer.skew},
        },
    }


def _writer(writer: LogWriter, holes: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "path": writer.path,
        "copies": list(writer.copies),
        "role": writer.role,
        "pod": writer.pod,
        "format": writer.format,
        "generation": writer.generation,
        "lines": writer.lines or None,  # a search for one resource does not count lines
        "bytes": writer.bytes,
        "first": stamp(writer.first),
        "last": stamp(writer.last),
        "verbosity": writer.verbosity,
        "restarts": [stamp(moment) for moment in writer.started],
        "gaps": [[stamp(start), stamp(end)] for start, end in holes],
        "recognised": writer.record_count,
    }


def brief_model(trace: Trace, environment: Environment) -> dict[str, Any]:
    """Return one request without its stages, status updates and records."""
    key = trace.key
    return {
        "key": {
            "resourceId": key.resource,
            "workName": key.work_name,
            "consumer": key.consumer,
            "source": key.source,
            "action": key.action,
            "version": key.version,
            "opId": key.op_id,
            "ceId": key.cloudevent_id,
            "dbEventId": key.db_event,
            "life": key.incarnation,
        },
        "verdict": trace.verdict.value,
        "failedStage": trace.failed_stage,
        "confidence": trace.confidence,
        "supersededBy": trace.superseded_by or None,
        "start": stamp(trace.start),
        "end": stamp(trace.end),
        "durationMs": round(trace.duration * 1000, 3),
        "findings": [finding_model(finding, environment, trace.key) for finding in trace.findings],
    }


def trace_model(trace: Trace, environment: Environment) -> dict[str, Any]:
    """Return one request in full."""
    brief = brief_model(trace, environment)
    findings = brief.pop("findings")
    details = trace.details.value  # once: they may be found again each time
    shown, left_out = shown_records(timeline(details.stages))
    return {
        **brief,
        "stages": [_stage(stage, environment) for stage in details.stages],
        "statusUpdates": [
            {
                "sequenceId": str(update.sequence) if update.sequence else "",
                "agentTime": stamp(ordering.split(update.sequence).time_ms / 1000) if update.sequence else None,
                "version": update.version,
                "handledBy": update.handled_by,
                "skippedBy": update.skipped_by,
                "result": update.result,
            }
            for update in details.status_updates
        ],
        "findings": findings,
        "timeline": [
            {
                "ts": stamp(record.at),
                "pod": environment.writers[record.file].pod,
                "stage": record.stage,
                "text": describe(record),
                "file": environment.writers[record.file].path,
                "line": record.line,
            }
            for record in shown
        ],
        **({"timelineLeftOut": left_out} if left_out else {}),
    }


def shown_records(records: Sequence[LogRecord]) -> tuple[Sequence[LogRecord], int]:
    """Return the records of a request that reports show, and how many are left out: repetitions, and the middle."""
    half = MOST_SHOWN // 2
    shown = records if len(records) <= MOST_SHOWN else [*records[:half], *records[-half:]]
    return shown, count_of(records) - len(shown)


def _stage(stage: StageResult, environment: Environment) -> dict[str, Any]:
    return {
        "n": stage.number,
        "id": STAGES[stage.number][0],
        "state": stage.state.value,
        "first": stamp(stage.first),
        "last": stamp(stage.last),
        "count": count_of(stage.records),
        "attempts": _attempts(stage.records),
        "pods": pods(stage.records, environment),
        "hopMs": None if stage.hop is None else round(stage.hop * 1000, 3),
        "via": stage.via,
        "note": stage.note or None,
        "evidence": [_evidence(record, environment) for record in stage.records[:5]],
    }


def _attempts(records: Iterable[LogRecord]) -> int:
    """Return how often the most frequent record was written."""
    equal: Counter[tuple[int, int, str]] = Counter()
    for record in records:
        equal[record.file, record.kind, record.detail] += 1 + record.repeats
    return max(equal.values(), default=0)


_IDLE = frozenset({RecordKind.NO_CLIENTS, RecordKind.OTHER_INSTANCE, RecordKind.NO_AGENT_HERE})


def pods(records: Iterable[LogRecord], environment: Environment) -> list[str]:
    """Return the pods that acted, in order; if all only skipped, those that logged it."""
    written = list(records)
    acting = [record for record in written if record.kind not in _IDLE]
    return list(dict.fromkeys(environment.writers[record.file].pod for record in acting or written))


def _evidence(record: LogRecord, environment: Environment) -> dict[str, Any]:
    writer = environment.writers[record.file]
    return {
        "file": writer.path,
        "line": record.line,
        "offset": record.offset,
        "ts": stamp(record.at),
        "pod": writer.pod,
        "msg": describe(record),
    }


def finding_model(finding: RequestFinding, environment: Environment, key: RequestKey | None = None) -> dict[str, Any]:
    """Return one finding; of a request, with its names in the advice."""
    entry = finding.entry
    return {
        "code": finding.code,
        "severity": entry.severity,
        "confidence": finding.confidence,
        "stage": entry.stage,
        "title": entry.title,
        "detail": finding.detail,
        "cause": entry.cause,
        "evidence": [_evidence(record, environment) for record in finding.evidence],
        "advice": list(finding.advice(key) if key else entry.advice),
        "sql": [SQL[name] for name in entry.sql],
    }


def statistics_model(numbers: Statistics) -> dict[str, Any]:
    """Return the numbers over all requests."""
    return {
        "total": numbers.total,
        "byVerdict": numbers.by_verdict,
        "byAction": numbers.by_action,
        "firstMissing": {str(stage): count for stage, count in numbers.first_missing.items()},
        "hops": {
            key: {"n": hop.count, "p50": hop.p50, "p90": hop.p90, "p99": hop.p99, "max": hop.most}
            for key, hop in numbers.hops.items()
        },
        "slowest": [trace.key.resource for trace in numbers.slowest],
        "byCode": numbers.by_code,
    }
