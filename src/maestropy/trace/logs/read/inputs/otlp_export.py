"""Read the spans of an OTLP export as the log records that they stand for.

The file exporter of an OpenTelemetry collector writes one JSON document a line. Each span of a Maestro process becomes
the log line that the process writes at that step, so that everything after this module knows log lines only. Spans of
others, and steps without a log line, are left out. Which traces are in an export is for its sampler to say: a request
without spans may have been complete.
"""

import io
import json
from collections.abc import Callable, Container, Iterator, Mapping
from operator import itemgetter
from typing import IO, Any, Final, NamedTuple

import msgspec

from maestropy.journal import jsonl
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import (
    AgentPhrase,
    SpecDispatcherPhrase,
    SpecWriterPhrase,
    StatusDispatcherPhrase,
    StatusWriterPhrase,
)
from maestropy.journal.record import Record
from maestropy.trace.errors import InputUnreadable
from maestropy.trace.logs.log_records import STAGE_OF, RecordKind, RecordTable
from maestropy.trace.stages import AGENT_STAGES
from maestropy.wire.events import event

_BEGINNING: Final = b'{"resourceSpans":'
"""How an export begins."""

_LONGEST_LINE: Final = 64 << 20
_CALLER: Final = "span.py:1"
_ERROR: Final = 2
"""The code of a span that failed."""
_SPEC, _STATUS = f"{event.MANIFEST_BUNDLES}.spec.", f"{event.MANIFEST_BUNDLES}.status.update_request"
_PUBLISHED: Final = {
    "create_request": SpecDispatcherPhrase.INSERTED,
    "update_request": SpecDispatcherPhrase.UPDATED,
    "delete_request": SpecDispatcherPhrase.DELETED,
}


class _Attribute(msgspec.Struct):
    key: str
    value: dict[str, Any]


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Span(msgspec.Struct):
    name: str
    id: str = msgspec.field(name="spanId", default="")
    parent: str = msgspec.field(name="parentSpanId", default="")
    start: str = msgspec.field(name="startTimeUnixNano", default="0")
    end: str = msgspec.field(name="endTimeUnixNano", default="0")
    attributes: list[_Attribute] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _ScopeSpans(msgspec.Struct):
    spans: list[_Span] = []


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] = []


class _ResourceSpans(msgspec.Struct):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_ScopeSpans] = msgspec.field(name="scopeSpans", default_factory=list)


class _Export(msgspec.Struct):
    resource_spans: list[_ResourceSpans] = msgspec.field(name="resourceSpans", default_factory=list)


_decoder = msgspec.json.Decoder(_Export)


def is_export(stream: IO[bytes]) -> bool:
    """Return whether a file is an export; the stream stays at its beginning."""
    beginning = stream.read(len(_BEGINNING))
    stream.seek(0)
    return beginning == _BEGINNING


def logs(stream: IO[bytes]) -> dict[str, IO[bytes]]:
    """Return the log of each process of an export, by its name; raises `InputUnreadable`."""
    spans: dict[str, list[_Span]] = {}
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        if len(line) > _LONGEST_LINE:
            raise InputUnreadable(f"line {number} of the OTLP export is longer than {_LONGEST_LINE >> 20} MiB")
        if not line.strip():
            continue
        try:
            export = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputUnreadable(f"line {number} is no OTLP export in JSON ({str(error)[:200]})") from error
        for process in export.resource_spans:
            found = spans.setdefault(_process_name(process.resource), [])
            found.extend(span for scope in process.scope_spans for span in scope.spans if span.name in _STEPS)
    texts = {name: _log(found) for name, found in spans.items()}
    return {name: io.BytesIO(text.encode()) for name, text in texts.items() if text}


def _log(spans: list[_Span]) -> str:
    """Return the log of one process."""
    # An agent sends the status of a work before the reconcile ends that has applied it.
    reported: dict[str, float] = {}
    for span in spans:
        start = _seconds(span.start)
        reported[span.parent] = min(start, reported.get(span.parent, start))
    records = [record for span in spans for record in _records(span, reported=reported.get(span.id))]
    # Lines of the same moment stay in the order of their span.
    return "".join(text for _, text in sorted(records, key=itemgetter(0)))


def drop_logged(records: RecordTable, exports: Container[int]) -> None:
    """Remove the spans of requests that a log of the same role shows: every step would have happened twice.

    `exports` are the files that are exports.
    """

    def key(at: int) -> tuple[int, int, bool]:
        is_of_agent = STAGE_OF.get(RecordKind(records.kinds[at]), 0) in AGENT_STAGES
        return records.resources[at], records.operations[at], is_of_agent

    logged = {key(at) for at, file in enumerate(records.files) if file not in exports}
    records.keep([file not in exports or key(at) not in logged for at, file in enumerate(records.files)])


def _process_name(resource: _Resource) -> str:
    attributes = _texts(resource.attributes)
    return "-".join(filter(None, (attributes.get("service.name", ""), attributes.get("service.instance.id", ""))))


class _Step(NamedTuple):
    """A span of one request."""

    facts: Mapping[str, str]
    start: float
    end: float
    error: str

    @property
    def action(self) -> str:
        return self.facts.get("maestro.action", "")

    @property
    def resource(self) -> dict[str, object]:
        return {**_operation(self.facts), LogKey.RESOURCE_ID: self.facts["maestro.resource_id"]}

    @property
    def work(self) -> dict[str, object]:
        return {LogKey.MANIFEST_WORK_NAME: self.facts["maestro.resource_id"], **_operation(self.facts)}


def _records(span: _Span, *, reported: float | None) -> Iterator[tuple[float, str]]:
    """Yield the log lines of a span, with their times; `reported` is when the process began what follows it."""
    facts = _texts(span.attributes)
    if "maestro.resource_id" in facts:
        error = (span.status.message or "failed") if span.status.code == _ERROR else ""
        start, end = _seconds(span.start), _seconds(span.end)
        is_work = span.name in ("apply work", "finalize work")
        yield from _STEPS[span.name](_Step(facts, start, min(end, reported or end) if is_work else end, error))


def _accepted(step: _Step) -> Iterator[tuple[float, str]]:
    sent = {**step.facts, "maestro.resource_version": step.facts.get("maestro.requested_version", "")}
    yield _line(step.start, SpecWriterPhrase.RECEIVED, _event(sent, _SPEC + step.action))
    if step.error:
        yield _line(step.end, SpecWriterPhrase.REJECTED, {**step.resource, LogKey.REASON: step.error})


def _dispatched(step: _Step) -> Iterator[tuple[float, str]]:
    if step.error:
        yield _line(step.end, SpecDispatcherPhrase.PUBLISH_FAILED, step.resource, error=step.error)
    elif step.action in _PUBLISHED:
        yield _line(step.end, _PUBLISHED[step.action], step.resource)


def _received(step: _Step) -> Iterator[tuple[float, str]]:
    yield _line(step.start, AgentPhrase.RECEIVED, _event(step.facts, _SPEC + step.action))


def _applied(step: _Step) -> Iterator[tuple[float, str]]:
    phrase = AgentPhrase.APPLY_FAILED if step.error else AgentPhrase.APPLIED
    yield _line(step.end, phrase, step.work, error=step.error)


def _finalized(step: _Step) -> Iterator[tuple[float, str]]:
    if not step.error:
        yield _line(step.end, AgentPhrase.DELETED, step.work)


def _status_sent(step: _Step) -> Iterator[tuple[float, str]]:
    yield _line(step.start, AgentPhrase.SENDING, _event(step.facts, _STATUS))


def _status_received(step: _Step) -> Iterator[tuple[float, str]]:
    if "maestro.consumer" not in step.facts:
        return  # a client has received it
    yield _line(step.start, StatusWriterPhrase.RECEIVED, _event(step.facts, _STATUS))
    yield _line(step.start, StatusWriterPhrase.STATUS_RECEIVED, step.resource)
    if step.error:
        yield _line(step.end, StatusWriterPhrase.HANDLE_FAILED, step.resource, error=step.error)


def _status_committed(step: _Step) -> Iterator[tuple[float, str]]:
    yield _line(step.end, StatusWriterPhrase.HANDLING, step.resource)
    if step.facts.get("maestro.outcome") == "Remove":
        yield _line(step.end, StatusWriterPhrase.DELETE_SENT, step.resource)
    else:
        yield _line(step.end, StatusWriterPhrase.UPDATING, _event(step.facts, _STATUS))
        yield _line(step.end, StatusWriterPhrase.UPDATE_SENT, step.resource)


def _status_dispatched(step: _Step) -> Iterator[tuple[float, str]]:
    kind = "StatusDelete" if step.facts.get("maestro.is_final") == "True" else "StatusUpdate"
    yield _line(step.end, StatusDispatcherPhrase.BROADCAST, {**step.resource, LogKey.STATUS_EVENT_TYPE: kind})
    yield _line(step.end, StatusDispatcherPhrase.TO_STATUS_SUBSCRIBERS, _event(step.facts, _STATUS))


_STEPS: Final[Mapping[str, Callable[[_Step], Iterator[tuple[float, str]]]]] = {
    "accept spec request": _accepted,
    "dispatch spec": _dispatched,
    "receive spec": _received,
    "apply work": _applied,
    "finalize work": _finalized,
    "send status": _status_sent,
    "receive status": _status_received,
    "commit status": _status_committed,
    "dispatch status": _status_dispatched,
}
"""The log lines of each span, by its name."""


def _event(facts: Mapping[str, str], event_type: str) -> dict[str, object]:
    operation = _operation(facts)
    version = facts.get("maestro.resource_version", "")
    extensions: dict[str, object] = {
        event.CLUSTER_NAME: facts.get("maestro.consumer", ""),
        event.RESOURCE_ID: facts["maestro.resource_id"],
        event.RESOURCE_VERSION: int(version) if version.isdecimal() else 0,
    }
    if operation:
        extensions[event.LOG_TRACING] = json.dumps({event.OPERATION_ID_KEY: operation[LogKey.OP_ID]})
    if facts.get("maestro.sequence_id"):
        extensions[event.SEQUENCE_ID] = facts["maestro.sequence_id"]
    return {
        **operation,
        LogKey.EVENT_ID: facts.get("maestro.event_id", ""),
        LogKey.EVENT_TYPE: event_type,
        LogKey.EVENT_SOURCE: facts.get("maestro.source", ""),
        LogKey.EXTENSIONS: extensions,
    }


def _operation(facts: Mapping[str, str]) -> dict[str, object]:
    return {LogKey.OP_ID: facts["op-id"]} if facts.get("op-id") else {}


def _line(at: float, message: str, fields: dict[str, object], *, error: str = "") -> tuple[float, str]:
    return at, jsonl.line(Record("error" if error else "info", 0, at, 0, _CALLER, message, error or None, "", fields))


def _texts(attributes: list[_Attribute]) -> dict[str, str]:
    return {attribute.key: str(next(iter(attribute.value.values()), "")) for attribute in attributes}


def _seconds(nanoseconds: str) -> float:
    return int(nanoseconds) / 1e9 if nanoseconds.isdecimal() else 0.0
