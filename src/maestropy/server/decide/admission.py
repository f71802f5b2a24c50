"""Decide what a spec request (create, update or delete) of a source changes.

Requests arrive twice, late, and from sources that do not own the resource. Pure: no I/O, no clock.
`maestropy.server.controllers.spec.spec_writer` carries the verdict out.
"""

from dataclasses import dataclass, field

import msgspec

from maestropy.server.decide import rejection
from maestropy.store import rows
from maestropy.wire import errors
from maestropy.wire.events import event, stored_event
from maestropy.wire.events.log_tracing import operation_id as operation_id

# Set by the server or by client libraries; a change of these fields is no change of the desired state.
_VOLATILE_METADATA = frozenset(("resourceVersion", "generation", "creationTimestamp", "managedFields", "uid"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecRequest:
    """One create, update or delete request of a source."""

    action: event.EventAction
    id: str
    source: str
    consumer: str
    version: int
    event_id: str
    operation_id: str
    parts: stored_event.StoredParts
    is_from_operator: bool = False
    operator_sources: frozenset[str] | None = None
    """Sent over REST: an authenticated operator may delete the resources of every source."""
    requester: rows.Requester = rows.UNKNOWN_REQUESTER
    problem: str = ""
    """Why the manifests are invalid, or an empty string; a rejection only if they would be stored."""
    arrival_span: int = 0
    """The ID of the span that accepts it; 0 without tracing."""

    @property
    def size(self) -> int:
        """Approximate memory of the request, in bytes."""
        return len(self.parts.data) + len(self.parts.metadata) + 512


@dataclass(frozen=True, slots=True)
class Create:
    """The resource is new and gets this version."""

    version: int


@dataclass(frozen=True, slots=True)
class Update:
    """The resource gets a new spec and this version."""

    version: int


@dataclass(frozen=True, slots=True)
class MarkDeleting:
    """The resource is marked for deletion."""

    stored: rows.StoredSpec | None = field(default=None, compare=False, repr=False)
    """What is deleted, for its trace."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The stored resource already is as requested."""

    reason: str


Verdict = Create | Update | MarkDeleting | Unchanged | rejection.Rejection


def read_spec_request(
    received: event.CloudEvent, action: event.EventAction, *, requester: rows.Requester = rows.UNKNOWN_REQUESTER
) -> SpecRequest:
    """Read a create, update or delete request; raises `WireError` that names the wrong attribute."""
    request = SpecRequest(
        action=action,
        id=_checked_name(received, event.RESOURCE_ID),
        version=received.integer(event.RESOURCE_VERSION),
        consumer=_checked_name(received, event.CLUSTER_NAME),
        source=received.source,
        event_id=received.id,
        operation_id=operation_id(received),
        parts=stored_event.to_parts(received),
        requester=requester,
    )
    if action == event.EventAction.CREATE_REQUEST and not _is_path_segment(request.id):
        raise errors.MalformedMessage(
            "failed to get resourceid extension: it has a slash, or is a dot or two; REST and agents use it as a name"
        )
    if request.version < 0:
        raise errors.MalformedMessage(
            "failed to get resourceversion extension: it is negative; send 0 or the stored version"
        )
    # The value is stored and sent on; an agent that cannot parse it would drop the whole event.
    received.timestamp(event.DELETION_TIMESTAMP)
    return request


def decide_create(request: SpecRequest) -> Create | rejection.Rejection:
    """Decide on a create request as if its ID were free; the insert finds out whether it is."""
    if request.problem:
        return rejection.invalid(f"the manifest bundle in the resource is invalid, {request.problem}", verb="create")
    return Create(request.version or 1)


def decide_failed_create(
    request: SpecRequest, stored: rows.StoredSpec | None, *, is_removed: bool = False
) -> Unchanged | rejection.Rejection:
    """Decide on a create request that inserted no row: the ID exists, the consumer does not, or it is a late copy.

    `is_removed` tells that the same event created the resource before, and that it was removed since.
    """
    if stored is None and is_removed:
        # Not acknowledged: nothing would be stored. Whoever sent it first has its answer.
        return rejection.conflict(
            f"event {request.event_id[:256]} has created this resource before, which was deleted since; "
            "to create it again, publish an event with another ID",
            verb="create",
        )
    if stored is None:
        return rejection.unknown_consumer(request.consumer)
    if _is_same_event(request, stored):
        return Unchanged("this event has created the resource before")
    return rejection.conflict("This Resource already exists", verb="create")


def decide_change(request: SpecRequest, stored: rows.StoredSpec | None) -> Verdict:
    """Decide on an update or delete request."""
    if request.action == event.EventAction.DELETE_REQUEST:
        return _decide_deletion(request, stored)
    if stored is None:
        return rejection.not_found(request.id)
    return _reject_foreign(request, stored, verb="update") or _decide_update(request, stored)


def _decide_update(request: SpecRequest, stored: rows.StoredSpec) -> Update | Unchanged | rejection.Rejection:
    if stored.is_deleting:
        return rejection.conflict(f"the resource is under deletion, id: {request.id}", verb="update")
    if _is_same_event(request, stored):
        return Unchanged("this event has updated the resource before")
    if request.version not in (0, stored.version):
        latest = f"the resource version is not the latest, the latest version: {stored.version}"
        return rejection.conflict(latest, verb="update")
    if is_same_spec(request.parts, stored.parts) and not stored.is_held_back:
        return Unchanged("the spec is unchanged")
    if request.problem:
        return rejection.invalid(
            f"the new manifest bundle in the resource is invalid, {request.problem}", verb="update"
        )
    if stored.version >= event.INT32_MAX:
        return rejection.conflict("the resource version cannot grow any more; delete and create it anew", verb="update")
    return Update(stored.version + 1)


def _decide_deletion(request: SpecRequest, stored: rows.StoredSpec | None) -> Verdict:
    if stored is None:
        return Unchanged("there is no such resource")
    foreign = _reject_foreign(request, stored, verb="delete")
    if foreign is not None:
        return foreign
    if stored.is_deleting:
        return Unchanged("the resource is being deleted already")
    return MarkDeleting(stored)


def _reject_foreign(
    request: SpecRequest, stored: rows.StoredSpec, *, verb: rejection.Verb
) -> rejection.Rejection | None:
    if request.is_from_operator:
        return _reject_operator(request, stored, verb=verb)
    if request.source != stored.source:
        return rejection.forbidden(
            f"the resource {request.id} belongs to another source than {request.source}", verb=verb
        )
    if request.consumer != stored.consumer:
        moved = (
            f"clustername {request.consumer} is not the consumer of resource {request.id}; delete it and create it anew"
        )
        return rejection.invalid(moved, verb=verb)
    return None


def _reject_operator(
    request: SpecRequest, stored: rows.StoredSpec, *, verb: rejection.Verb
) -> rejection.Rejection | None:
    if request.operator_sources is None or stored.source in request.operator_sources:
        return None
    return rejection.forbidden(f"the resource {request.id} belongs to a source that the token does not name", verb=verb)


def is_same_spec(left: stored_event.StoredParts, right: stored_event.StoredParts) -> bool:
    """Return whether two specs mean the same; key order and volatile metadata do not count."""
    if not _is_same_json(left.data, right.data):
        return False
    try:
        return _sorted(_desired_metadata(left)) == _sorted(_desired_metadata(right))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False  # the stored metadata is damaged: a valid spec may replace it


def _is_same_json(left: bytes, right: bytes) -> bool:
    if left == right:
        return True
    if not left or not right:
        return False
    try:
        return _sorted(msgspec.json.decode(left)) == _sorted(msgspec.json.decode(right))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _sorted(value: object) -> bytes:
    """Return JSON with sorted keys. Specs are compared as text: in Python 1, 1.0 and True are equal."""
    return msgspec.json.encode(value, order="sorted")


def _desired_metadata(parts: stored_event.StoredParts) -> dict[str, object]:
    if not parts.metadata:
        return {}
    metadata: object = msgspec.json.decode(parts.metadata)
    if not isinstance(metadata, dict):
        return {}
    desired = {key: value for key, value in metadata.items() if key not in _VOLATILE_METADATA}
    annotations = desired.get("annotations")
    if isinstance(annotations, dict):
        desired["annotations"] = {key: value for key, value in annotations.items() if key != event.OPERATION_ID_KEY}
    return {key: value for key, value in desired.items() if value}


def _is_same_event(request: SpecRequest, stored: rows.StoredSpec) -> bool:
    """Return whether this event wrote the stored spec: the source retries after a lost response."""
    if not request.event_id or stored.is_deleting or request.source != stored.source:
        return False
    try:
        stored_request = stored_event.from_parts(stored.parts)
    except errors.WireError:
        return False  # the stored spec is damaged: a new spec may replace it
    return stored_request.id == request.event_id and _is_same_json(request.parts.data, stored.parts.data)


def _is_path_segment(resource_id: str) -> bool:
    return "/" not in resource_id and resource_id not in (".", "..")


def _checked_name(received: event.CloudEvent, extension: str) -> str:
    value = received.text(extension)
    event.check_name(value, label=f"failed to get {extension} extension: it")
    return value
