"""Judge what a source asks for against what the store holds.

Requests arrive twice, late and from sources that do not own the bundle. This module answers one question: what, if
anything, does this wish change? `maestropy.server.accept` carries the verdict out.
"""

from dataclasses import dataclass

import msgspec

from maestropy.server.decide import refusal
from maestropy.store import rows
from maestropy.wire import errors, event, record

# What the client knows of the stored object, and who asked when: none of it is what the user wants.
_VOLATILE_METADATA = frozenset(("resourceVersion", "generation", "creationTimestamp", "managedFields", "uid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one event of a source asks for."""

    action: event.Action
    id: str
    source: str
    consumer: str
    version: int
    event_id: str
    operation_id: str
    parts: record.Parts
    by_operator: bool = False
    """Asked over REST: whoever may call that may delete any bundle."""
    problem: str = ""
    """What is wrong with the manifests, if anything; told only when they would be stored."""

    @property
    def size(self) -> int:
        """How many bytes the wish keeps in memory, roughly."""
        return len(self.parts.data) + len(self.parts.metadata) + 512


@dataclass(frozen=True, slots=True)
class Create:
    """The bundle is new."""

    version: int


@dataclass(frozen=True, slots=True)
class Update:
    """The bundle gets a new spec."""

    version: int


@dataclass(frozen=True, slots=True)
class MarkDeleting:
    """The bundle shall go."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The store already is as the wish wants it."""

    reason: str


Refuse = refusal.Refusal
Verdict = Create | Update | MarkDeleting | Nothing | Refuse


def read_wish(received: event.Event, action: event.Action) -> Wish:
    """Read a create, update or delete request; raises `WireError` naming the attribute that is wrong."""
    wish = Wish(
        action=action,
        id=_name(received, event.RESOURCE_ID),
        version=received.integer(event.RESOURCE_VERSION),
        consumer=_name(received, event.CLUSTER_NAME),
        source=received.source,
        event_id=received.id,
        operation_id=operation_id(received),
        parts=record.to_parts(received),
    )
    if wish.version < 0:
        raise errors.Malformed("failed to get resourceversion extension: it is negative; send 0 or the stored version")
    # It is stored and sent on; an agent that cannot read it would drop the whole event.
    received.timestamp(event.DELETION_TIMESTAMP)
    return wish


def operation_id(received: event.Event) -> str:
    """Return the id under which the caller follows this request, or an empty string."""
    text = received.optional_text(event.LOG_TRACING)
    if event.OPERATION_ID_KEY not in text:
        return ""
    try:
        found = msgspec.json.decode(text, type=dict[str, str]).get(event.OPERATION_ID_KEY, "")
    except msgspec.DecodeError:
        return ""
    return found[:128]


def judge_new(wish: Wish) -> Create | Refuse:
    """Judge a creation as if its id were free; the insert finds out whether it is."""
    if wish.problem:
        return refusal.invalid(f"the manifest bundle in the resource is invalid, {wish.problem}", verb="create")
    return Create(wish.version or 1)


def judge_collision(wish: Wish, held: rows.Held | None) -> Nothing | Refuse:
    """Judge a creation that did not go in: either the id is taken or the consumer is unknown."""
    if held is None:
        return refusal.unknown_consumer(wish.consumer)
    if _is_same_event(wish, held):
        return Nothing("this event has created the resource before")
    return refusal.conflict("This Resource already exists", verb="create")


def judge_change(wish: Wish, held: rows.Held | None) -> Verdict:
    """Judge an update or a deletion."""
    if wish.action == event.Action.DELETE_REQUEST:
        return _judge_deletion(wish, held)
    if held is None:
        return refusal.not_found(wish.id)
    return _refuse_foreign(wish, held, verb="update") or _judge_update(wish, held)


def _judge_update(wish: Wish, held: rows.Held) -> Update | Nothing | Refuse:
    if held.deleting:
        return refusal.conflict(f"the resource is under deletion, id: {wish.id}", verb="update")
    if _is_same_event(wish, held):
        return Nothing("this event has updated the resource before")
    if wish.version not in (0, held.version):
        latest = f"the resource version is not the latest, the latest version: {held.version}"
        return refusal.conflict(latest, verb="update")
    if is_same_spec(wish.parts, held.parts):
        return Nothing("the spec is unchanged")
    if wish.problem:
        return refusal.invalid(f"the new manifest bundle in the resource is invalid, {wish.problem}", verb="update")
    if held.version >= event.INT32_MAX:
        return refusal.conflict("the resource version cannot grow any more; delete and create it anew", verb="update")
    return Update(held.version + 1)


def _judge_deletion(wish: Wish, held: rows.Held | None) -> Verdict:
    if held is None:
        return Nothing("there is no such resource")
    foreign = _refuse_foreign(wish, held, verb="delete")
    if foreign is not None:
        return foreign
    if held.deleting:
        return Nothing("the resource is being deleted already")
    return MarkDeleting()


def _refuse_foreign(wish: Wish, held: rows.Held, *, verb: refusal.Verb) -> Refuse | None:
    if wish.by_operator:
        return None
    if wish.source != held.source:
        return refusal.forbidden(f"the resource {wish.id} belongs to another source than {wish.source}", verb=verb)
    if wish.consumer != held.consumer:
        moved = f"clustername {wish.consumer} is not the consumer of resource {wish.id}; delete it and create it anew"
        return refusal.invalid(moved, verb=verb)
    return None


def is_same_spec(one: record.Parts, other: record.Parts) -> bool:
    """Say whether two specs mean the same; who sent them when, and in which key order, does not count."""
    if not _is_same_json(one.data, other.data):
        return False
    try:
        return _sorted(_wanted_metadata(one)) == _sorted(_wanted_metadata(other))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # what is stored is damaged: whatever is sound may replace it


def _is_same_json(one: bytes, other: bytes) -> bool:
    if one == other:
        return True
    if not one or not other:
        return False
    try:
        return _sorted(msgspec.json.decode(one)) == _sorted(msgspec.json.decode(other))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _sorted(value: object) -> bytes:
    """Write JSON in one order of keys. Compared as text, since to Python 1, 1.0 and true are equal."""
    return msgspec.json.encode(value, order="sorted")


def _wanted_metadata(parts: record.Parts) -> dict[str, object]:
    if not parts.metadata:
        return {}
    metadata: object = msgspec.json.decode(parts.metadata)
    if not isinstance(metadata, dict):
        return {}
    wanted = {key: value for key, value in metadata.items() if key not in _VOLATILE_METADATA}
    annotations = wanted.get("annotations")
    if isinstance(annotations, dict):
        wanted["annotations"] = {key: value for key, value in annotations.items() if key != event.OPERATION_ID_KEY}
    return {key: value for key, value in wanted.items() if value}


def _is_same_event(wish: Wish, held: rows.Held) -> bool:
    """Say whether the stored spec came with this very event: a retry after a lost answer."""
    if not wish.event_id or held.deleting or wish.source != held.source:
        return False
    try:
        stored = record.from_parts(held.parts)
    except errors.WireError:
        return False  # whoever wrote that, a new spec may replace it
    return stored.id == wish.event_id and _is_same_json(wish.parts.data, held.parts.data)


def _name(received: event.Event, extension: str) -> str:
    value = received.text(extension)
    event.check_name(value, what=f"failed to get {extension} extension: it")
    return value
