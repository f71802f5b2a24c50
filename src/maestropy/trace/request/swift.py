"""Read the records that most of a log of today consists of, by the places of their fields.

Nine of ten records have one of a few messages, plain quoted values and the extensions of one CloudEvent, always in the
same order. These are cut at their quotes instead of parsed. Whatever looks different in any way (escapes, other keys,
a cut end, letters beyond ASCII) is refused, and `reading` reads it: both must say the same of a record. Pure.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import orjson

from maestropy.journal.fields import Absorb, Accept, Agent, Deliver, Fanout
from maestropy.trace.request.hits import AGENT_STAGES, LARGEST_SEQUENCE, LARGEST_VERSION, STAGE_OF, Hits, What

_KEY: Final = re.compile(rb" [A-Za-z_-]+=")
_APPLIED_WORK: Final = re.compile(rb"[0-9a-f]{64}-(.+)")
_OPERATION: Final = rb"\"logging.open-cluster-management.io/op-id\":\""
_EXTENSIONS: Final = b' extensions={"clustername":"'
KINDS: Final = {
    f"io.open-cluster-management.works.v1alpha1.manifestbundles.{half}.{word}".encode(): (half, action)
    for half in ("spec", "status")
    for word, action in (
        ("create_request", "create"), ("update_request", "update"), ("delete_request", "delete"),
        ("resync_response", "resync"),
    )
}  # fmt: skip
_SHAPES: Final = 512
_OBJECT: Final = (b"gvr", b"resourceNamespace", b"resourceName")

Fields = tuple[int, int, int, int, int, int, int, int]
"""What, resource, version, sequence, operation, event, name, rest: a row without its place."""


class Messages(NamedTuple):
    """What a message says when its event is about a spec, and when it is about a status; 0 for neither."""

    spec: int
    status: int


EVENTS: Final = {
    Accept.RECEIVED.encode(): Messages(What.WISH, What.WISH),
    Deliver.SENDING.encode(): Messages(What.SENDING_SPEC, What.SENDING_STATUS),
    Agent.RECEIVED.encode(): Messages(What.RECEIVED_SPEC, What.RECEIVED_STATUS),
    Absorb.UPDATING.encode(): Messages(0, What.UPDATING),
    Fanout.TO_STATUS_SUBSCRIBERS.encode(): Messages(0, What.TO_CLIENTS),
}
STEPS: Final = {
    Absorb.STATUS_RECEIVED.encode(): What.STATUS_TAKEN,
    Absorb.NOT_OWNED.encode(): What.NOT_OWNED,
    Absorb.HANDLING.encode(): What.HANDLING,
    Absorb.UPDATE_SENT.encode(): What.UPDATE_SENT,
    Absorb.DELETE_SENT.encode(): What.DELETE_SENT,
}
PUBLISHING: Final = {
    Deliver.INSERTED.encode(): "create",
    Deliver.UPDATED.encode(): "update",
    Deliver.DELETED.encode(): "delete",
}
APPLYING: Final = {
    Agent.APPLIED.encode(): What.APPLIED,
    Agent.CREATED.encode(): What.APPLIED,
    Agent.UPDATED.encode(): What.APPLIED,
    Agent.READ_ONLY.encode(): What.APPLIED,
    Agent.DELETED.encode(): What.DELETING,
    Agent.REMOVED.encode(): What.REMOVED,
}
VERBOSITY: Final = {
    What.SENDING_SPEC: 2, What.SENDING_STATUS: 2, What.RECEIVED_SPEC: 2, What.RECEIVED_STATUS: 2,
}  # fmt: skip
"""What has to be set for a record to be written; 0 for all others that are read here."""


class Swift:
    """Readers of the frequent messages of one file, which number its words in a table."""

    def __init__(self, hits: Hits) -> None:
        self._hits = hits
        self._ids = hits.ids
        self._shapes: dict[tuple[bytes, ...], dict[bytes, int]] = {}
        self._rests: dict[tuple[object, ...], int] = {}
        self.consumers: set[str] = set()
        """Whose agent the file seems to be of."""
        self.instances: set[str] = set()
        self.readers: dict[bytes, Callable[[bytes], Fields | None]] = {
            Fanout.NO_CLIENTS.encode(): self._bare(What.NO_CLIENTS),
            Fanout.BROADCAST.encode(): self._broadcast,
            **{message: self._event(message, whats) for message, whats in EVENTS.items()},
            **{message: self._step(what) for message, what in STEPS.items()},
            **{message: self._publishing(action) for message, action in PUBLISHING.items()},
            **{message: self._applied(what) for message, what in APPLYING.items()},
        }
        """By message; each takes what follows the message's closing quote, and gives nothing when that is unusual."""

    def _places(self, keys: tuple[bytes, ...]) -> dict[bytes, int]:
        """Return where the value of each key is; an unusual list of keys has no places at all."""
        places: dict[bytes, int] = {}
        if not keys[-1] and len(set(keys)) == len(keys) and all(_KEY.fullmatch(key) for key in keys[:-1]):
            places = {key[1:-1]: 2 * at + 1 for at, key in enumerate(keys[:-1])}
        if len(self._shapes) < _SHAPES:
            self._shapes[keys] = places
        return places

    def _rest(
        self, key: tuple[object, ...], *, consumer: str = "", source: str = "", action: str = "", detail: str = ""
    ) -> int:
        number = self._hits.rest(("", consumer, source, action, False, detail))
        if len(self._rests) >= _SHAPES:
            self._rests.clear()
        self._rests[key] = number
        return number

    def rest_of(self, what: int, action: str = "") -> int:
        """Return the rest of a record that says nothing besides."""
        number = self._rests.get((what, action))
        return self._rest((what, action), action=action) if number is None else number

    def wish_rest(self, ce: bytes, consumer: str, source: bytes, action: str) -> int:
        """Return the rest of a record about a wish, whose event is its own."""
        return self._hits.rest((ce.decode(), consumer, source.decode(), action, False, ""))

    def event_rest(self, what: int, consumer: str, source: bytes, action: str) -> int:
        """Return the rest of a record about any other event."""
        key = (what, consumer, source, action)
        number = self._rests.get(key)
        if number is None:
            number = self._rest(key, consumer=consumer, source=source.decode(), action=action)
            if STAGE_OF[What(what)] in AGENT_STAGES and consumer:
                self.consumers.add(consumer)
        return number

    def broadcast_rest(self, kind: bytes, source: bytes, instance: bytes) -> int:
        """Return the rest of a record about a broadcast."""
        key = (What.BROADCAST, kind, source, instance)
        number = self._rests.get(key)
        if number is None:
            whose = instance.decode()
            action = "delete" if kind == b"StatusDelete" else "update"
            number = self._rest(key, source=source.decode(), action=action, detail=whose)
            if whose:
                self.instances.add(whose)
        return number

    def applied_rest(self, what: int, kind: bytes, namespace: bytes, name: bytes) -> int:
        """Return the rest of a record about an object."""
        key = (what, kind, namespace, name)
        number = self._rests.get(key)
        if number is None:
            number = self._rest(key, detail=f"{kind.decode()} {namespace.decode()}/{name.decode()}")
        return number

    def _step(self, what: int) -> Callable[[bytes], Fields | None]:
        ids, shapes, bare = self._ids, self._shapes, self.rest_of(what)

        def read(rest: bytes) -> Fields | None:
            parts = rest.split(b'"')
            keys = tuple(parts[::2])
            places = shapes.get(keys) or self._places(keys)
            if b"resourceID" not in places:
                return None
            op = ids[parts[places[b"op-id"]]] if b"op-id" in places else 0
            return what, ids[parts[places[b"resourceID"]]], -1, 0, op, 0, 0, bare

        return read

    def _bare(self, what: int) -> Callable[[bytes], Fields | None]:
        fields = (what, 0, -1, 0, 0, 0, 0, self.rest_of(what))
        return lambda _: fields

    def _publishing(self, action: str) -> Callable[[bytes], Fields | None]:
        ids, shapes = self._ids, self._shapes
        rest_number = self.rest_of(What.PUBLISHING, action)

        def read(rest: bytes) -> Fields | None:
            parts = rest.split(b'"')
            keys = tuple(parts[::2])
            places = shapes.get(keys) or self._places(keys)
            if b"resourceID" not in places or b"event" not in places:
                return None
            op = ids[parts[places[b"op-id"]]] if b"op-id" in places else 0
            resource, event = ids[parts[places[b"resourceID"]]], ids[parts[places[b"event"]]]
            return What.PUBLISHING, resource, -1, 0, op, event, 0, rest_number

        return read

    def _broadcast(self, rest: bytes) -> Fields | None:
        parts = rest.split(b'"')
        keys = tuple(parts[::2])
        places = self._shapes.get(keys) or self._places(keys)
        if b"resourceID" not in places or b"status_event" not in places or b"instanceID" not in places:
            return None
        kind = parts[places[b"statusEventType"]] if b"statusEventType" in places else b""
        source = parts[places[b"source"]] if b"source" in places else b""
        number = self.broadcast_rest(kind, source, parts[places[b"instanceID"]])
        ids = self._ids
        resource, event = ids[parts[places[b"resourceID"]]], ids[parts[places[b"status_event"]]]
        if not event:
            return None
        return What.BROADCAST, resource, -1, 0, 0, event, 0, number

    def _applied(self, what: int) -> Callable[[bytes], Fields | None]:
        ids, shapes = self._ids, self._shapes

        def read(rest: bytes) -> Fields | None:
            parts = rest.split(b'"')
            keys = tuple(parts[::2])
            places = shapes.get(keys) or self._places(keys)
            if b"gvr" not in places or b"resourceNamespace" not in places or b"resourceName" not in places:
                return None
            if b"manifestWorkName" in places:
                resource = parts[places[b"manifestWorkName"]]
            else:
                found = _APPLIED_WORK.fullmatch(parts[places.get(b"appliedManifestWorkName", 0)])
                resource = found.group(1) if found else b""
            number = self.applied_rest(what, *(parts[places[each]] for each in _OBJECT))
            op = ids[parts[places[b"op-id"]]] if b"op-id" in places else 0
            return what, ids[resource], -1, 0, op, 0, 0, number

        return read

    def _event(self, message: bytes, whats: Messages) -> Callable[[bytes], Fields | None]:
        ids, shapes = self._ids, self._shapes
        is_wish, is_sending = whats.spec == What.WISH, message == Deliver.SENDING.encode()

        def read(rest: bytes) -> Fields | None:
            fields, _, extensions = rest.partition(_EXTENSIONS)
            attributes = extensions.split(b'","')
            if extensions[-1:] != b"}" or len(attributes) < 6:
                return None
            consumer, tracing, metadata, _, identity, state, *_ = attributes
            parts = fields.split(b'"')
            keys = tuple(parts[::2])
            places = shapes.get(keys) or self._places(keys)
            kind = KINDS.get(parts[places.get(b"eventType", 0)])
            if kind is None or identity[:13] != b'resourceid":"' or metadata[:11] != b'metadata":"':
                return None
            what = whats.spec if kind[0] == "spec" else whats.status
            resource = identity[13:]
            version, _, sequence = state.removesuffix(b"}").partition(b',"sequenceid":"')
            name = _name(metadata, resource)
            if not what or name is None or version[:17] != b'resourceversion":' or b"\\" in consumer or not resource:
                return None
            if not version[17:].isdigit() or not (sequence or b"0").isdigit() or len(sequence) > 19:
                return None
            if int(version[17:]) >= LARGEST_VERSION or int(sequence or 0) >= LARGEST_SEQUENCE:
                return None
            op = ids[parts[places[b"op-id"]] if b"op-id" in places else _operation(tracing)]
            source = parts[places[b"eventSource"]] if b"eventSource" in places else b""
            if is_wish:
                ce = parts[places[b"eventID"]] if b"eventID" in places else b""
                number = self.wish_rest(ce, consumer.decode(), source, kind[1])
            else:
                number = self.event_rest(what, consumer.decode(), source, kind[1])
            has_event = is_sending and what == What.SENDING_SPEC and b"event" in places
            event = ids[parts[places[b"event"]]] if has_event else 0
            return what, ids[resource], int(version[17:]), int(sequence or 0), op, event, ids[name], number

        return read


def _operation(tracing: bytes) -> bytes:
    """Return the operation that an event itself tells."""
    start = tracing.find(_OPERATION) + len(_OPERATION)
    return tracing[start : tracing.find(b"\\", start)] if start >= len(_OPERATION) else b""


def _name(metadata: bytes, resource: bytes) -> bytes | None:
    """Return the work's name where it is not the resource's id; nothing where it is unclear."""
    start = metadata.find(rb"\"name\":\"")
    if start < 0 or b"deletion" in metadata:
        return None
    if metadata.find(b"{", 12, start) >= 0:
        # Labels stand before the name, and may have names of their own.
        text = metadata[11:].replace(b'\\"', b'"')
        if b"\\" in text:
            return None
        try:
            name = orjson.loads(text)["name"].encode()
        except (orjson.JSONDecodeError, KeyError, AttributeError, TypeError):
            return None
        return b"" if name == resource else name
    if metadata.startswith(resource, start + 11):
        return b""
    return metadata[start + 11 : metadata.find(b"\\", start + 11)]
