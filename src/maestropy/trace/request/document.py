"""The JSON model of a trace (schemaVersion 1). Values in, plain dictionaries out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from maestropy.trace.request import environment as surroundings
from maestropy.trace.request.codes import SQL, STAGES
from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.inputs import Environment, Writer
from maestropy.trace.request.model import Finding, Stage, Trace
from maestropy.trace.request.statistics import Statistics
from maestropy.trace.request.words import said
from maestropy.wire import order

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stamp(at: float) -> str | None:
    """Return a time as RFC 3339 in UTC; nothing for none."""
    if not at:
        return None
    return (_EPOCH + timedelta(seconds=at)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def inputs_model(known: Environment) -> dict[str, Any]:
    """Return what was read."""
    holes = surroundings.gaps(known.writers)
    return {
        "files": [_writer(each, holes.get(each.pod, [])) for each in known.writers],
        "environment": {
            "broker": known.broker,
            "subscription": known.subscription,
            "instances": known.instances,
            "skewMs": {each.pod: round(each.skew * 1000, 3) for each in known.writers if each.skew},
        },
    }


def _writer(writer: Writer, holes: Sequence[tuple[float, float]]) -> dict[str, Any]:
    return {
        "path": writer.path,
        "role": writer.role,
        "pod": writer.pod,
        "format": writer.format,
        "generation": writer.generation,
        "lines": writer.lines or None,  # whoever searches for one resource does not count them
        "bytes": writer.bytes,
        "first": stamp(writer.first),
        "last": stamp(writer.last),
        "verbosity": writer.verbosity,
        "restarts": [stamp(each) for each in writer.started],
        "gaps": [[stamp(start), stamp(end)] for start, end in holes],
        "recognised": writer.hits,
    }


def trace_model(trace: Trace, known: Environment) -> dict[str, Any]:
    """Return one request."""
    key = trace.key
    return {
        "key": {
            "resourceId": key.resource,
            "workName": key.work_name,
            "consumer": key.consumer,
            "source": key.source,
            "action": key.action,
            "version": key.version,
            "opId": key.op,
            "ceId": key.ce,
            "dbEventId": key.db_event,
            "life": key.life,
        },
        "verdict": trace.verdict.value,
        "failedStage": trace.failed_stage,
        "confidence": trace.confidence,
        "supersededBy": trace.superseded_by or None,
        "start": stamp(trace.start),
        "end": stamp(trace.end),
        "durationMs": round(trace.duration * 1000, 3),
        "stages": [_stage(stage, known) for stage in trace.stages],
        "statusUpdates": [
            {
                "sequenceId": str(each.sequence) if each.sequence else "",
                "agentTime": stamp(order.split(each.sequence).time_ms / 1000) if each.sequence else None,
                "version": each.version,
                "handledBy": each.handled_by,
                "skippedBy": each.skipped_by,
                "result": each.result,
            }
            for each in trace.status_updates
        ],
        "findings": [finding_model(each, known) for each in trace.findings],
        "timeline": [
            {
                "ts": stamp(hit.at),
                "pod": known.writers[hit.file].pod,
                "stage": hit.stage,
                "text": said(hit),
                "file": known.writers[hit.file].path,
                "line": hit.line,
            }
            for hit in trace.timeline
        ],
    }


def _stage(stage: Stage, known: Environment) -> dict[str, Any]:
    return {
        "n": stage.number,
        "id": STAGES[stage.number][0],
        "state": stage.state.value,
        "first": stamp(stage.first),
        "last": stamp(stage.last),
        "count": len(stage.hits),
        "attempts": max(Counter((hit.file, hit.what, hit.detail) for hit in stage.hits).values(), default=0),
        "pods": pods(stage.hits, known),
        "hopMs": None if stage.hop is None else round(stage.hop * 1000, 3),
        "via": stage.via,
        "note": stage.note or None,
        "evidence": [_evidence(hit, known) for hit in stage.hits[:5]],
    }


def pods(hits: Iterable[Hit], known: Environment) -> list[str]:
    """Return the pods that did something, in their order; where all stood by, those that said so."""
    written = list(hits)
    acting = [hit for hit in written if hit.what not in (What.NO_CLIENTS, What.OTHER_INSTANCE)]
    return list(dict.fromkeys(known.writers[hit.file].pod for hit in acting or written))


def _evidence(hit: Hit, known: Environment) -> dict[str, Any]:
    writer = known.writers[hit.file]
    return {
        "file": writer.path,
        "line": hit.line,
        "offset": hit.offset,
        "ts": stamp(hit.at),
        "pod": writer.pod,
        "msg": said(hit),
    }


def finding_model(finding: Finding, known: Environment) -> dict[str, Any]:
    """Return one finding."""
    entry = finding.entry
    return {
        "code": finding.code,
        "severity": entry.severity,
        "confidence": finding.confidence,
        "stage": entry.stage,
        "title": entry.title,
        "detail": finding.detail,
        "cause": entry.cause,
        "evidence": [_evidence(hit, known) for hit in finding.evidence],
        "advice": list(entry.advice),
        "sql": [SQL[each] for each in entry.sql],
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
        "slowest": [each.key.resource for each in numbers.slowest],
        "byCode": numbers.by_code,
    }
