"""Parse one log record: recognise its phrase first, and only then extract its IDs.

Depending on generation and verbosity, IDs are in keys (`resourceID="…"`), in JSON (`extensions={…}`), in JSON within a
string (`event="{…}"`), in blocks of `  key: value` lines, or inside the message. Pure: a raw record in, a record out.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from maestropy.journal import redact
from maestropy.trace.logs.log_records import LARGE, LogRecord, RecordKind
from maestropy.trace.logs.read import cloudevents, phrases
from maestropy.trace.logs.read.cloudevents import LoggedEvent
from maestropy.trace.logs.read.klog_fields import KlogFields, number, unquoted
from maestropy.trace.logs.read.lines import RawRecord, RecordClock

APPLIED_WORK = re.compile(r"[0-9a-f]{64}-(.+)")
_TERMINATING = re.compile(r"manifestwork (\S+) is terminating")
_RECORDER = re.compile(rb"(INFO: (?:Created|Updated) |WARNING: Failed to (?:create|update) )")
_IN_ERROR = re.compile(r"(?:resource status update|for resource|resource with id) ([0-9a-f-]{36})")
_PREFIX = b"[opid="
_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KNOWN = frozenset({*phrases.STRUCTURED, phrases.UNHANDLED})
_BY_EVENT = frozenset({RecordKind.NOTIFIED, RecordKind.OTHER_INSTANCE, RecordKind.NO_AGENT_HERE,
                       RecordKind.PUBLISH_FAILED, RecordKind.DECODE_FAILED, RecordKind.STATUS_FAILED})  # fmt: skip
_OF_COMPONENTS = frozenset(
    message for message, phrase in phrases.STRUCTURED.items() if phrase.is_about_all or phrase.kind in _BY_EVENT
) | {phrases.UNHANDLED}
_ON_ITS_WAY = frozenset({RecordKind.REQUEST_RECEIVED, RecordKind.SENDING_SPEC})
_USUAL_LIMIT = 512 << 10
_APPLYING = "ManifestWorkController"
_CONTROLLERS = ("Controller", "Finalizer")
"""The ends of the names of an agent's controllers, which its loggers have too."""
STEPS = (RecordKind.STATUS_UPDATE_RECEIVED, RecordKind.NOT_OWNED, RecordKind.HANDLING, RecordKind.UPDATE_SENT,
         RecordKind.DELETE_SENT, RecordKind.PUBLISHING)  # fmt: skip
"""Records that name a resource, and little else."""
OF_OBJECTS = (RecordKind.APPLIED, RecordKind.DELETING, RecordKind.REMOVED)
_SPEC_OF_STATUS = {
    RecordKind.SENDING_SPEC: RecordKind.SENDING_STATUS,
    RecordKind.RECEIVED_SPEC: RecordKind.RECEIVED_STATUS,
}


class ParsedRecord(NamedTuple):
    """A log record, and what it shows about its writer."""

    record: LogRecord
    phrase: phrases.Phrase
    generation: str
    verbosity: int
    is_cut_off: bool = False
    """Whether it shows an event, and ends before it names the resource."""


def read(raw: RawRecord, clock: RecordClock, *, file: int) -> ParsedRecord | None:
    """Parse a record about a request or a component; None for all other records.

    Its texts have no secrets: findings and all reports are made of them.
    """
    parsed = _read(raw, clock, file=file)
    if parsed is None or parsed.record.kind in _SHORT_READERS or not parsed.record.detail:
        return parsed
    detail = redact.text(parsed.record.detail)
    return parsed if detail == parsed.record.detail else parsed._replace(record=parsed.record._replace(detail=detail))


def _read(raw: RawRecord, clock: RecordClock, *, file: int) -> ParsedRecord | None:
    line = raw.text
    first = line[:1]
    if first in b"IWEF" and first:
        start = line.find(b"] ", 20)
        if start < 0:
            return None
        if line[start + 2 : start + 3] == b'"':
            end = line.find(b'"', start + 3)
            message = line[start + 3 : end]
            phrase = phrases.STRUCTURED.get(message)
            if phrase is not None:
                fields = KlogFields(line, start=start + 2)
                return _structured(raw, phrase, message, fields, clock=clock, file=file)
            if message[:5] in (b"INFO:", b"WARNI"):
                return _recorder(raw, message, clock=clock, file=file)
            if message == phrases.UNHANDLED:
                return _unstructured(raw, KlogFields(line, start=start + 2)("err").encode(), "", clock=clock, file=file)
        return _unstructured(raw, line[start + 2 :], "G2", clock=clock, file=file)
    if first == b"{":
        return _json(raw, clock=clock, file=file)
    if first == b"2":
        parts = line.split(b"\t", 3)
        if len(parts) == 4:
            generation = "G1" if parts[1].startswith(b"LEVEL") else "G2"
            return _unstructured(raw, parts[3], generation, clock=clock, file=file)
    return None


def is_known(line: bytes) -> bool:
    """Say whether a record that starts with `line` may be relevant; most lines of a log are not."""
    first = line[:1]
    if first in b"IWEF":
        start = line.find(b"] ", 20) + 2
        if line[start : start + 6] == _PREFIX:
            start = line.find(b"] ", start) + 2
        if line[start : start + 1] != b'"':
            return any(line[start : start + length] in phrases.BY_PREFIX for length in phrases.PREFIX_LENGTHS)
        message = line[start + 1 : line.find(b'"', start + 1)]
        return message in _KNOWN or message[:5] in (b"INFO:", b"WARNI") or message[:8] in phrases.BY_PREFIX
    return True


def is_of_component(line: bytes) -> bool:
    """Say whether a line starts a record that is about a component, or that names its resource only by an event."""
    parts = line.split(b'"', 2)
    if len(parts) == 3 and parts[0][-2:] == b"] ":
        return parts[1] in _OF_COMPONENTS
    return line[:1] in b"IWEF2" and line[:1] != b"" and is_known(line) and b"Received event" not in line


def _structured(
    raw: RawRecord, phrase: phrases.Phrase, message: bytes, get: KlogFields, *, clock: RecordClock, file: int
) -> ParsedRecord:
    at = clock.at(raw) if raw.stamp else clock.klog(raw.text)
    short = _SHORT_READERS.get(phrase.kind)
    if short is not None:
        bare = LogRecord(phrase.kind, at, file, raw.number, raw.offset)
        generation = "G3" if message == phrases.ACTION_OF_G3 else "G4"
        return ParsedRecord(short(bare, phrase, get), phrase, generation, phrase.verbosity)
    if phrase.carries_event and get.is_empty:
        # A damaged record; many logs have some, and a hostile one has millions.
        bare = LogRecord(phrase.kind, at, file, raw.number, raw.offset)
        return ParsedRecord(bare._replace(action=phrase.action), phrase, "G4", phrase.verbosity)
    event = cloudevents.of_fields(get) if phrase.carries_event else LoggedEvent()
    generation = "G3" if get.raw(b"context")[:1] == b"<" else "G4"
    if phrase.carries_event and event.resource and not event.is_whole:
        return _of_event(raw, phrase, event, get, at=at, file=file, generation=generation)
    return _parsed(raw, phrase, event, get, at=at, file=file, generation=generation)


def _step(bare: LogRecord, _: phrases.Phrase, get: KlogFields) -> LogRecord:
    return bare._replace(resource=get("resourceID"), op_id=get("op-id"))


def _publishing(bare: LogRecord, phrase: phrases.Phrase, get: KlogFields) -> LogRecord:
    return _step(bare, phrase, get)._replace(event=get("event"), action=phrase.action)


def _broadcast(bare: LogRecord, _: phrases.Phrase, get: KlogFields) -> LogRecord:
    return bare._replace(
        resource=get("resourceID"),
        event=get("status_event") or get("eventID"),
        source=get("source"),
        action="delete" if get("statusEventType") == "StatusDelete" else "update",
        detail=get("instanceID"),
    )


def _applied(bare: LogRecord, _: phrases.Phrase, get: KlogFields) -> LogRecord:
    resource = get("manifestWorkName")
    if not resource:
        match = APPLIED_WORK.fullmatch(get("appliedManifestWorkName")) or _TERMINATING.fullmatch(get("reason"))
        resource = match.group(1) if match else ""
    name = f"{get('gvr')} {get('resourceNamespace')}/{get('resourceName')}"
    return bare._replace(resource=resource, op_id=get("op-id"), detail=name)


def _bare(bare: LogRecord, _: phrases.Phrase, __: KlogFields) -> LogRecord:
    return bare


_SHORT_READERS: dict[RecordKind, Callable[[LogRecord, phrases.Phrase, KlogFields], LogRecord]] = {
    **dict.fromkeys(STEPS, _step),
    **dict.fromkeys(OF_OBJECTS, _applied),
    RecordKind.PUBLISHING: _publishing,
    RecordKind.BROADCAST: _broadcast,
    RecordKind.NO_CLIENTS: _bare,
    RecordKind.PROGRESS: _bare,
}
"""Records with few and plain fields, which most records are; each is read with as few steps as possible."""


def _of_event(  # noqa: PLR0913 - the parts of one record, each named
    raw: RawRecord, phrase: phrases.Phrase, event: LoggedEvent, get: KlogFields, *, at: float, file: int,
    generation: str,
) -> ParsedRecord:  # fmt: skip
    """Return the record of a CloudEvent: nearly half of all records are of this kind."""
    kind = event_kind(phrase.kind, event.subresource, event.action)
    record = LogRecord(
        kind,
        at,
        file,
        raw.number,
        raw.offset,
        event.resource,
        event.version,
        event.sequence,
        get("op-id") or event.op_id,
        get("event") if kind is RecordKind.SENDING_SPEC or kind is RecordKind.SENT_TO_AGENTS else "",
        event.cloudevent_id if kind is RecordKind.REQUEST_RECEIVED else "",
        event.name,
        event.consumer,
        event.source,
        event.action,
        event.is_deleting,
        "final" if event.is_final else "",
    )
    return ParsedRecord(record, phrase, generation, phrase.verbosity)


def event_kind(kind: RecordKind, subresource: str, action: str) -> RecordKind:
    """Return the kind of a record about an event, whose type decides between spec and status."""
    if action == "resync-request" or (kind is RecordKind.RECEIVED_STATUS and subresource == "spec"):
        return RecordKind.OTHER  # a resync query, not a request
    return _SPEC_OF_STATUS.get(kind, kind) if subresource == "status" else kind


class _Document:
    """The keys of a JSON record."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __call__(self, key: str) -> str:
        value = self._document.get(key, "")
        return value if isinstance(value, str) else str(value)


def _parsed(  # noqa: PLR0913 - the parts of one record, each named
    raw: RawRecord,
    phrase: phrases.Phrase,
    event: LoggedEvent,
    get: "KlogFields | _Document",
    *,
    at: float,
    file: int,
    generation: str,
) -> ParsedRecord:
    kind = event_kind(phrase.kind, event.subresource, event.action)
    detail = _detail(phrase, get)
    if kind is RecordKind.DECODE_FAILED and get("logger").startswith("maestro-server"):
        kind = RecordKind.STATUS_FAILED
    action = event.action or phrase.action
    if kind is RecordKind.BROADCAST:
        action = "delete" if get("statusEventType") == "StatusDelete" else "update"
    consumer = event.consumer or get("clusterName") or get("consumerName") or get("eventClusterName")
    if kind is RecordKind.OPERATOR_ACTION:
        action, consumer = get("action"), get("consumer")
    of_controller = _failed_controller(get) if kind is RecordKind.APPLY_FAILED else RecordKind.APPLY_FAILED
    if kind is RecordKind.APPLY_FAILED and of_controller is RecordKind.DELETING:
        action = "delete"
    version = event.version
    if kind is RecordKind.STALE:
        version = number(get("wantVersion"), version)
    if event.is_whole and kind in _ON_ITS_WAY and len(raw.text) > _USUAL_LIMIT:
        detail = _large(raw.text)
    record = LogRecord(
        of_controller if of_controller is RecordKind.CONTROLLER_FAILED else kind,
        at,
        file,
        raw.number,
        raw.offset,
        event.resource or _resource(get, kind=kind, detail=detail),
        version,
        event.sequence,
        event.op_id or get("op-id"),
        _event_id(get, kind=kind, is_whole=event.is_whole),
        event.cloudevent_id,
        event.name,
        consumer,
        event.source or get("source"),
        action,
        event.is_deleting,
        "final" if event.is_final else detail or event.content,
    )
    verbosity = max(phrase.verbosity, _whole_verbosity(phrase) if event.is_whole else 0)
    is_cut_off = phrase.carries_event and not record.resource and _shows_event(get)
    return ParsedRecord(record, phrase, generation, verbosity, is_cut_off)


def _failed_controller(get: "KlogFields | _Document") -> RecordKind:
    """Return what an error of an agent is about, by the controller that the record names.

    Only one controller applies works, and finalizers delete their objects; others update conditions and the agent's own
    records. An error that names no controller may be of the one that applies.
    """
    parts = (get("controller"), get("controllerName"), *get("logger").split("."))
    name = next((part for part in parts if part.endswith(_CONTROLLERS)), "")
    if not name or name == _APPLYING:
        return RecordKind.APPLY_FAILED
    return RecordKind.DELETING if "Finaliz" in name else RecordKind.CONTROLLER_FAILED


def _shows_event(get: "KlogFields | _Document") -> bool:
    """Say whether a record has a CloudEvent, or the beginning of one."""
    return get("event")[:1] == "{" or get("extensions")[:1] == "{"


def _large(line: bytes) -> str:
    """Return a note about an event that brokers drop; empty if only its log text is large."""
    size = len(line) - line.count(b"\\")
    return f"{LARGE}about {size // 1024:,} KB, brokers take {_USUAL_LIMIT // 1024} KB" if size > _USUAL_LIMIT else ""


def _whole_verbosity(phrase: phrases.Phrase) -> int:
    return 5 if phrase.verbosity == 2 else 4


def _detail(phrase: phrases.Phrase, get: "KlogFields | _Document") -> str:
    kind = phrase.kind
    if kind in OF_OBJECTS:
        return f"{get('gvr')} {get('resourceNamespace')}/{get('resourceName')}"
    if kind is RecordKind.STALE:
        return "sequence" if get("foundSequenceID") else "version"
    if kind in (RecordKind.APPLY_FAILED, RecordKind.REQUEST_REJECTED, RecordKind.NO_OP, RecordKind.UNCHANGED):
        name = get("resourceName")
        object_name = f"{get('gvr')} {get('resourceNamespace')}/{name}: " if name else ""
        prefix = f"{phrase.prefix}: " if phrase.prefix else ""
        return object_name + prefix + (get("err") or get("reason"))
    if kind is RecordKind.PENDING_DELETION:
        return get("numOfResources")
    if kind is RecordKind.BROADCAST:
        return get("instanceID")
    return _component_detail(kind, get) if phrase.is_about_all else get("err")


def _component_detail(kind: RecordKind, get: "KlogFields | _Document") -> str:
    if kind is RecordKind.INSTANCES:
        # The servers of this project log the ready instances, and how many consumers they gained as `addedMembers`.
        members = get("readyInstanceIDs") or get("addedMembers")
        return "" if members.isdecimal() else " ".join(_INSTANCE.findall(members.removeprefix("Set{")))
    if kind is RecordKind.OTHER_CLUSTER:
        return f"the agent is {get('agentClusterName')}'s, the event {get('eventClusterName')}'s"
    if kind is RecordKind.PANIC:
        return get("panic")
    if kind is RecordKind.OPERATOR_ACTION:
        return get("reason")
    return get("err") or get("topic") or get("channel") or get("brokerHost")


def _resource(get: "KlogFields | _Document", *, kind: RecordKind, detail: str) -> str:
    resource = get("resourceID") or get("manifestWorkName")
    if resource:
        return resource
    applied = APPLIED_WORK.fullmatch(get("appliedManifestWorkName"))
    if applied:
        return applied.group(1)
    if kind is RecordKind.APPLY_FAILED:
        # Controllers of AppliedManifestWorks report errors by the name of these.
        of_applied_work = APPLIED_WORK.fullmatch(get("key"))
        return of_applied_work.group(1) if of_applied_work else get("key")
    inside = _IN_ERROR.search(detail)
    return inside.group(1) if inside else ""


def _event_id(get: "KlogFields | _Document", *, kind: RecordKind, is_whole: bool) -> str:
    if kind is RecordKind.NOTIFIED:
        return get("extra")
    if kind is RecordKind.PUBLISH_FAILED:
        return get("event") or get("key")
    if kind in (
        RecordKind.CLIENT_SUBSCRIBED,
        RecordKind.CLIENT_UNSUBSCRIBED,
        RecordKind.AGENT_SUBSCRIBED,
        RecordKind.AGENT_UNSUBSCRIBED,
    ):
        return get("id") or get("subscriber")
    if kind is RecordKind.BROADCAST:
        return get("status_event") or get("eventID")
    return "" if is_whole else get("event")


def _recorder(raw: RawRecord, message: bytes, *, clock: RecordClock, file: int) -> ParsedRecord | None:
    if not _RECORDER.match(message):
        return None
    kind = RecordKind.APPLIED if message.startswith(b"INFO") else RecordKind.APPLY_FAILED
    start = raw.text.find(b'] "') + 2
    phrase = phrases.Phrase(kind=kind, role="agent")
    parsed = _parsed(
        raw, phrase, LoggedEvent(), KlogFields(raw.text, start=start), at=clock.at(raw), file=file, generation="G4"
    )
    return parsed._replace(record=parsed.record._replace(detail=unquoted(raw.text, start)))


def _unstructured(
    raw: RawRecord, text: bytes, generation: str, *, clock: RecordClock, file: int
) -> ParsedRecord | None:
    if text[:6] == _PREFIX:
        text = text[text.find(b"] ") + 2 :]
        generation = "G0"
    matched = phrases.match_unstructured(text)
    if matched is None:
        return None
    unstructured, parts = matched
    groups = {key: value.decode("utf-8", "replace") for key, value in parts.groupdict().items() if value}
    event = cloudevents.of_block(raw.text) if unstructured.phrase.carries_event else LoggedEvent()
    kind = event_kind(unstructured.phrase.kind, event.subresource, event.action)
    action = event.action or unstructured.phrase.action or {"StatusDelete": "delete"}.get(groups.get("kind", ""), "")
    if kind is RecordKind.BROADCAST:
        action = action or "update"
    if kind is RecordKind.STORED and generation == "G2" and raw.text[:1] in b"IWEF":
        generation = ""  # written alike by all generations
    record = LogRecord(
        kind,
        clock.at(raw),
        file,
        raw.number,
        raw.offset,
        event.resource or groups.get("resource", ""),
        number(groups.get("want", ""), event.version),
        event.sequence,
        event.op_id,
        groups.get("event", ""),
        event.cloudevent_id,
        event.name,
        event.consumer,
        event.source or groups.get("source", ""),
        action or groups.get("kind", "").lower(),
        event.is_deleting,
        "final"
        if event.is_final
        else "version"
        if kind is RecordKind.STALE
        else event.content or groups.get("detail", "")[:2000],
    )
    return ParsedRecord(record, unstructured.phrase, generation, unstructured.phrase.verbosity)


def _json(raw: RawRecord, *, clock: RecordClock, file: int) -> ParsedRecord | None:
    line = raw.text
    at = line.find(b'"msg":"')
    if at < 0:
        return None
    message = line[at + 7 : line.find(b'"', at + 7)]
    phrase = phrases.STRUCTURED.get(message)
    if phrase is None:
        return _unstructured(raw, message, "G2", clock=clock, file=file)
    try:
        document = orjson.loads(line)
        if document.get("msg") != message.decode():
            return None  # a member of a nested object, not the message
        kind = cloudevents.kind_of(str(document.get("eventType", "")).encode("utf-8", "replace"))
        event = LoggedEvent()
        if phrase.carries_event and isinstance(document.get("extensions"), dict):
            event = cloudevents.of_attributes(
                document["extensions"],
                kind,
                cloudevent_id=document.get("eventID", ""),
                source=document.get("eventSource", ""),
            )
        elif phrase.carries_event and str(document.get("event", "")).startswith("{"):
            event = cloudevents.of_whole(orjson.loads(document["event"]))
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return None
    return _parsed(raw, phrase, event, _Document(document), at=clock.at(raw), file=file, generation="G4")
