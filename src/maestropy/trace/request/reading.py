"""Turn one record into what it says: recognise the phrase first, and only then look for ids.

Ids stand in keys (`resourceID="…"`), in JSON (`extensions={…}`), in JSON within a string (`event="{…}"`), in blocks of
`  key: value` lines, or inside a sentence, depending on generation and verbosity. Pure: a record in, a hit out.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson

from maestropy.trace.request import cloudevents, phrases
from maestropy.trace.request.cloudevents import Event
from maestropy.trace.request.hits import LARGE, Hit, What
from maestropy.trace.request.klogtext import field, plain, unquoted
from maestropy.trace.request.lines import Clock, Raw

_APPLIED_WORK = re.compile(r"[0-9a-f]{64}-(.+)")
_RECORDER = re.compile(rb"(INFO: (?:Created|Updated) |WARNING: Failed to (?:create|update) )")
_IN_ERROR = re.compile(r"(?:resource status update|for resource|resource with id) ([0-9a-f-]{36})")
_PREFIX = b"[opid="
_KNOWN = frozenset({*phrases.STRUCTURED, phrases.UNHANDLED})
_ON_ITS_WAY = frozenset({What.WISH, What.SENDING_SPEC})
_USUAL_LIMIT = 512 << 10
_SPEC_OF_STATUS = {What.SENDING_SPEC: What.SENDING_STATUS, What.RECEIVED_SPEC: What.RECEIVED_STATUS}


class Said(NamedTuple):
    """A hit, and what the record gives away about its writer."""

    hit: Hit
    phrase: phrases.Phrase
    generation: str
    verbosity: int


def read(raw: Raw, clock: Clock, *, file: int) -> Said | None:
    """Return what the record says about a request or a component; nothing for all other records."""
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
                return _structured(raw, phrase, message, clock=clock, file=file)
            if message[:5] in (b"INFO:", b"WARNI"):
                return _recorder(raw, message, clock=clock, file=file)
            if message == phrases.UNHANDLED:
                return _sentence(raw, field(line, b"err").encode(), "", clock=clock, file=file)
        return _sentence(raw, line[start + 2 :], "G2", clock=clock, file=file)
    if first == b"{":
        return _json(raw, clock=clock, file=file)
    if first == b"2":
        parts = line.split(b"\t", 3)
        if len(parts) == 4:
            generation = "G1" if parts[1].startswith(b"LEVEL") else "G2"
            return _sentence(raw, parts[3], generation, clock=clock, file=file)
    return None


def is_known(line: bytes) -> bool:
    """Say whether a record that begins with `line` may say anything; most of a log does not."""
    first = line[:1]
    if first in b"IWEF":
        start = line.find(b"] ", 20) + 2
        if line[start : start + 6] == _PREFIX:
            start = line.find(b"] ", start) + 2
        if line[start : start + 1] != b'"':
            return any(line[start : start + length] in phrases.BY_LEAD for length in phrases.LEAD_LENGTHS)
        message = line[start + 1 : line.find(b'"', start + 1)]
        return message in _KNOWN or message[:5] in (b"INFO:", b"WARNI") or message[:8] in phrases.BY_LEAD
    return True


def _structured(raw: Raw, phrase: phrases.Phrase, message: bytes, *, clock: Clock, file: int) -> Said:
    line = raw.text
    at = clock.at(raw) if raw.stamp else clock.klog(line)
    short = _SHORT.get(phrase.what)
    if short is not None:
        hit = short(raw, phrase, at, file)
        return Said(hit, phrase, "G3" if message == b"received action for resource" else "G4", phrase.verbosity)
    event = cloudevents.of_text(line) if phrase.carries_event else Event()
    if phrase.carries_event and event.resource and not event.is_whole:
        return _of_event(raw, phrase, event, at=at, file=file)
    generation = "G3" if b" context=<" in line else "G4"
    return _said(raw, phrase, event, _Fields(line), at=at, file=file, generation=generation)


def _step(raw: Raw, phrase: phrases.Phrase, at: float, file: int) -> Hit:
    line = raw.text
    resource, op = plain(line, b' resourceID="'), plain(line, b' op-id="')
    return Hit(phrase.what, at, file, raw.number, raw.offset, resource, -1, 0, op)


def _publishing(raw: Raw, phrase: phrases.Phrase, at: float, file: int) -> Hit:
    return _step(raw, phrase, at, file)._replace(event=plain(raw.text, b' event="'), action=phrase.action)


def _broadcast(raw: Raw, phrase: phrases.Phrase, at: float, file: int) -> Hit:
    line = raw.text
    resource, event = plain(line, b' resourceID="'), plain(line, b' status_event="') or plain(line, b' eventID="')
    action = "delete" if b'"StatusDelete"' in line else "update"
    source, instance = plain(line, b' source="'), plain(line, b' instanceID="')
    return Hit(phrase.what, at, file, raw.number, raw.offset, resource, -1, 0, "", event, "", "", "", source, action,
               False, instance)  # fmt: skip  # noqa: FBT003 - a column of a row


def _applied(raw: Raw, phrase: phrases.Phrase, at: float, file: int) -> Hit:
    line = raw.text
    resource = plain(line, b' manifestWorkName="')
    if not resource:
        found = _APPLIED_WORK.fullmatch(plain(line, b' appliedManifestWorkName="'))
        resource = found.group(1) if found else ""
    kind, namespace, own = (plain(line, start) for start in (b' gvr="', b' resourceNamespace="', b' resourceName="'))
    name = f"{kind} {namespace}/{own}"
    op = plain(line, b' op-id="')
    return Hit(phrase.what, at, file, raw.number, raw.offset, resource, -1, 0, op, "", "", "", "", "", "", False, name)  # noqa: FBT003 - a column of a row


def _bare(raw: Raw, phrase: phrases.Phrase, at: float, file: int) -> Hit:
    return Hit(phrase.what, at, file, raw.number, raw.offset)


_SHORT: dict[What, Callable[[Raw, phrases.Phrase, float, int], Hit]] = {
    What.STATUS_TAKEN: _step,
    What.NOT_OWNED: _step,
    What.HANDLING: _step,
    What.UPDATE_SENT: _step,
    What.DELETE_SENT: _step,
    What.PUBLISHING: _publishing,
    What.BROADCAST: _broadcast,
    What.APPLIED: _applied,
    What.DELETING: _applied,
    What.REMOVED: _applied,
    What.NO_CLIENTS: _bare,
}
"""Records with few and plain fields, which most records are; each is read with as few steps as possible."""


def _of_event(raw: Raw, phrase: phrases.Phrase, event: Event, *, at: float, file: int) -> Said:
    """Return what the record of a CloudEvent says: nearly half of all records are of this kind."""
    what = _what(phrase.what, event)
    line = raw.text
    hit = Hit(
        what,
        at,
        file,
        raw.number,
        raw.offset,
        event.resource,
        event.version,
        event.sequence,
        plain(line, b' op-id="') or event.op,
        plain(line, b' event="') if what is What.SENDING_SPEC or what is What.TO_AGENTS else "",
        event.ce if what is What.WISH else "",
        event.name,
        event.consumer,
        event.source,
        event.action,
        event.is_deleting,
        "final" if event.is_final else "",
    )
    return Said(hit, phrase, "G3" if b" context=<" in line else "G4", phrase.verbosity)


def _what(what: What, event: Event) -> What:
    if event.action == "resync-request" or (what is What.RECEIVED_STATUS and event.subresource == "spec"):
        return What.OTHER  # a question, not a request
    return _SPEC_OF_STATUS.get(what, what) if event.subresource == "status" else what


class _Fields:
    """The keys of a klog record, looked up when asked for."""

    def __init__(self, line: bytes) -> None:
        self._line = line

    def __call__(self, key: str) -> str:
        return field(self._line, key.encode())


class _Document:
    """The keys of a JSON record."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __call__(self, key: str) -> str:
        value = self._document.get(key, "")
        return value if isinstance(value, str) else str(value)


def _said(  # noqa: PLR0913 - the parts of one record, each named
    raw: Raw, phrase: phrases.Phrase, event: Event, get: "_Fields | _Document", *, at: float, file: int, generation: str
) -> Said:
    what = _what(phrase.what, event)
    detail = _detail(phrase, get)
    if what is What.DECODE_FAILED and get("logger").startswith("maestro-server"):
        what = What.STATUS_FAILED
    action = event.action or phrase.action
    if what is What.BROADCAST:
        action = "delete" if get("statusEventType") == "StatusDelete" else "update"
    version = event.version
    if what is What.STALE and get("wantVersion").isdigit():
        version = int(get("wantVersion"))
    if what is What.APPLY_FAILED and event.condition:
        detail = event.condition
    if event.is_whole and what in _ON_ITS_WAY and len(raw.text) > _USUAL_LIMIT:
        detail = _large(raw.text)
    hit = Hit(
        what,
        at,
        file,
        raw.number,
        raw.offset,
        event.resource or _resource(get, what=what, detail=detail),
        version,
        event.sequence,
        event.op or get("op-id"),
        _event_id(get, what=what, is_whole=event.is_whole),
        event.ce,
        event.name,
        event.consumer or get("clusterName") or get("consumerName") or get("eventClusterName"),
        event.source or get("source"),
        action,
        event.is_deleting,
        "final" if event.is_final else detail or event.condition,
    )
    verbosity = max(phrase.verbosity, _whole_verbosity(phrase) if event.is_whole else 0)
    return Said(hit, phrase, generation, verbosity)


def _large(line: bytes) -> str:
    """Return what to say of an event that brokers drop; nothing if it is large only as it stands in the log."""
    size = len(line) - line.count(b"\\")
    return f"{LARGE}about {size // 1024:,} KB, brokers take {_USUAL_LIMIT // 1024} KB" if size > _USUAL_LIMIT else ""


def _whole_verbosity(phrase: phrases.Phrase) -> int:
    return 5 if phrase.verbosity == 2 else 4


def _detail(phrase: phrases.Phrase, get: "_Fields | _Document") -> str:
    what = phrase.what
    if what in (What.APPLIED, What.DELETING, What.REMOVED):
        return f"{get('gvr')} {get('resourceNamespace')}/{get('resourceName')}"
    if what is What.STALE:
        return "sequence" if get("foundSequenceID") else "version"
    if what in (What.APPLY_FAILED, What.REFUSED, What.NO_OP, What.UNCHANGED):
        name = get("resourceName")
        where = f"{get('gvr')} {get('resourceNamespace')}/{name}: " if name else ""
        prefix = f"{phrase.prefix}: " if phrase.prefix else ""
        return where + prefix + (get("err") or get("reason"))
    if what is What.PENDING_DELETION:
        return get("numOfResources")
    if what is What.BROADCAST:
        return get("instanceID")
    if what is What.OTHER_CLUSTER:
        return f"the agent is {get('agentClusterName')}'s, the event {get('eventClusterName')}'s"
    if phrase.is_about_all:
        return get("err") or get("topic") or get("channel") or get("brokerHost")
    return get("err")


def _resource(get: "_Fields | _Document", *, what: What, detail: str) -> str:
    found = get("resourceID") or get("manifestWorkName")
    if found:
        return found
    applied = _APPLIED_WORK.fullmatch(get("appliedManifestWorkName"))
    if applied:
        return applied.group(1)
    if what is What.APPLY_FAILED:
        return get("key")
    inside = _IN_ERROR.search(detail)
    return inside.group(1) if inside else ""


def _event_id(get: "_Fields | _Document", *, what: What, is_whole: bool) -> str:
    if what is What.NOTIFIED:
        return get("extra")
    if what is What.PUBLISH_FAILED:
        return get("event") or get("key")
    if what in (What.CLIENT_ON, What.CLIENT_OFF, What.AGENT_ON, What.AGENT_OFF):
        return get("id") or get("subscriber")
    if what is What.BROADCAST:
        return get("status_event") or get("eventID")
    return "" if is_whole else get("event")


def _recorder(raw: Raw, message: bytes, *, clock: Clock, file: int) -> Said | None:
    if not _RECORDER.match(message):
        return None
    what = What.APPLIED if message.startswith(b"INFO") else What.APPLY_FAILED
    start = raw.text.find(b'] "') + 2
    phrase = phrases.Phrase(what=what, role="agent")
    said = _said(raw, phrase, Event(), _Fields(raw.text), at=clock.at(raw), file=file, generation="G4")
    return said._replace(hit=said.hit._replace(detail=unquoted(raw.text, start)))


def _sentence(raw: Raw, text: bytes, generation: str, *, clock: Clock, file: int) -> Said | None:
    if text[:6] == _PREFIX:
        text = text[text.find(b"] ") + 2 :]
        generation = "G0"
    found = phrases.sentence_of(text)
    if found is None:
        return None
    sentence, parts = found
    groups = {key: value.decode("utf-8", "replace") for key, value in parts.groupdict().items() if value}
    event = cloudevents.of_block(raw.text, cloudevents.kind_of(raw.text)) if sentence.phrase.carries_event else Event()
    what = _what(sentence.phrase.what, event)
    action = event.action or sentence.phrase.action or {"StatusDelete": "delete"}.get(groups.get("kind", ""), "")
    if what is What.BROADCAST:
        action = action or "update"
    if what is What.STORED and generation == "G2" and raw.text[:1] in b"IWEF":
        generation = ""  # written alike by all generations
    hit = Hit(
        what,
        clock.at(raw),
        file,
        raw.number,
        raw.offset,
        event.resource or groups.get("resource", ""),
        int(groups["want"]) if "want" in groups else event.version,
        event.sequence,
        event.op,
        groups.get("event", ""),
        event.ce,
        event.name,
        event.consumer,
        event.source or groups.get("source", ""),
        action or groups.get("kind", "").lower(),
        event.is_deleting,
        "final" if event.is_final else "version" if what is What.STALE else groups.get("detail", "")[:2000],
    )
    return Said(hit, sentence.phrase, generation, sentence.phrase.verbosity)


def _json(raw: Raw, *, clock: Clock, file: int) -> Said | None:
    line = raw.text
    at = line.find(b'"msg":"')
    if at < 0:
        return None
    message = line[at + 7 : line.find(b'"', at + 7)]
    phrase = phrases.STRUCTURED.get(message)
    if phrase is None:
        return _sentence(raw, message, "G2", clock=clock, file=file)
    try:
        document = orjson.loads(line)
        kind = cloudevents.kind_of(line)
        event = Event()
        if phrase.carries_event and isinstance(document.get("extensions"), dict):
            event = cloudevents.of_attributes(
                document["extensions"], kind, ce=document.get("eventID", ""), source=document.get("eventSource", "")
            )
        elif phrase.carries_event and str(document.get("event", "")).startswith("{"):
            event = cloudevents.of_whole(orjson.loads(document["event"]), kind)
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return None
    return _said(raw, phrase, event, _Document(document), at=clock.at(raw), file=file, generation="G4")
