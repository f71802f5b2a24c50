"""Decide what a resync sends, and encode resync requests.

Spec resync: after every connect an agent sends the resource versions of its works; the server sends the specs that are
newer or being deleted, and delete requests for works it does not have. Status resync: a server sends the status hashes
it has stored to its agents, and a source sends its hashes to a server; the receiver answers with the statuses whose
hashes differ. Resync repairs lost messages, restarts and changed ownership. Pure: nothing is fetched or sent here.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import msgspec

from maestropy.wire import errors, json_types
from maestropy.wire.events import event

BATCH_ITEMS = 1000
EVENT_MAX_BYTES = 524288
"""The maximum packet size that brokers commonly allow."""
ENVELOPE_BYTES = 4096
"""The share of the packet that is reserved for attributes and topic."""

ORPHANS_ALWAYS_ALLOWED = 10
"""So many orphans may be evicted if they are less than half of the works."""
HELD_NAMES = 2000
"""How many names of held works a spec resync request carries at most."""

_BODY_BYTES = len(b'{"statusHashes":[]}')


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The resource version of one resource in the database."""

    id: str
    version: int
    is_deleting: bool = False
    event_id: str = ""
    """The ID of the source's event that published this version; empty if it is not known."""
    created: str = ""
    """The creation time of a removed resource; empty if it is not known."""


class StatusMark(NamedTuple):
    """What a status resync request says about the status of one resource."""

    id: str
    hash: str
    """Empty if there is no status."""
    sequence_id: str = ""
    """The stored sequence ID, above which our agents continue; Go agents ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEvictions:
    """Works that an agent evicts after its grace period, because the server does not have them."""

    count: int
    works: tuple[str, ...] = ()
    """Names of the works, at most `HELD_NAMES`."""
    since: str = ""
    """When the first grace period began; empty while none has."""
    deadline: str = ""
    """When the first of them may be evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedHold:
    """A data-safety hold of an agent: works that it keeps although the server does not ask for them."""

    id: str
    reason: str
    message: str
    database: str
    """The database that the works came from; empty if it is not known."""
    count: int
    works: tuple[str, ...]
    """Names of the works, at most `HELD_NAMES`."""
    pending: PendingEvictions | None = None
    """Works that are not held and will be evicted; with no hold beside them, they are the works of this one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecResyncRequest:
    """A spec resync request. Only our agents send more than versions."""

    versions: Mapping[str, int]
    event_ids: Mapping[str, str]
    """The event that published the version of a work, by resource ID; two specs of one version differ in it."""
    marker: str = ""
    """The ID of a work that does not exist, whose deletion the agent awaits as the end of the answer."""
    states_hold: bool = False
    """Whether the agent says if it holds works."""
    hold: ReportedHold | None = None

    @property
    def has_versions_only(self) -> bool:
        """Whether the agent sent nothing else, as Go agents do."""
        return not (self.event_ids or self.marker or self.states_hold)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecResyncResponse:
    """What the server sends in response to a spec resync request."""

    send: tuple[str, ...]
    """IDs of the resources whose current spec is sent."""
    orphans: Mapping[str, int]
    """Works that the server does not have, with the version that the agent reported; the agent must delete them."""


def spec_resync_response(
    rows: Iterable[StoredVersion], reported: Mapping[str, int], *, event_ids: Mapping[str, str] | None = None
) -> SpecResyncResponse:
    """Compare all resources of a consumer with the versions that its agent reported, by resource ID.

    An agent that reports event IDs is also sent a version that is older than its own, and another spec of the same
    version: the database has then been restored. Other agents would ignore both.
    """
    orphans = dict(reported)
    send = []
    for row in rows:
        reported_version = orphans.pop(row.id, 0)
        is_newer = row.is_deleting or row.version > reported_version or row.version == 0
        if is_newer or _is_other_spec(row, reported_version, (event_ids or {}).get(row.id, "")):
            send.append(row.id)
    return SpecResyncResponse(send=tuple(send), orphans=orphans)


def are_too_many_orphans(orphans: int, works: int, *, limit_percent: int) -> bool:
    """Return whether so many works of an agent are missing in the database that nobody can have meant it.

    A resource is normally removed only after its agent has confirmed the deletion, so orphans are never routine. More
    than a few of many works are too many, and so is half of the works of a small cluster.
    """
    if orphans * 100 <= works * limit_percent:
        return False
    return orphans > ORPHANS_ALWAYS_ALLOWED or orphans * 2 >= works


def _is_other_spec(row: StoredVersion, reported_version: int, reported_event: str) -> bool:
    if not reported_event:
        return False
    return row.version != reported_version or bool(row.event_id and row.event_id != reported_event)


def status_resync_response(current: Iterable[tuple[str, str]], requested: Mapping[str, str]) -> list[str]:
    """Return the resource IDs whose status is sent, given (ID, hash) of the current statuses and the requested hashes.

    A request without hashes asks for every status. Otherwise a resource that the request does not name is not sent, so
    a request can be split into batches. Agents answer servers, and servers answer sources, by this same rule.
    """
    if not requested:
        return [resource_id for resource_id, _ in current]
    return [
        resource_id for resource_id, status_hash in current if requested.get(resource_id, status_hash) != status_hash
    ]


def status_hash_batches(
    hashes: Iterable[StatusMark | tuple[str, str]],
    *,
    max_items: int = BATCH_ITEMS,
    max_bytes: int = EVENT_MAX_BYTES - ENVELOPE_BYTES,
) -> Iterator[bytes]:
    """Yield the data of status resync requests; at least one, because an empty one asks for every status."""
    batch: list[bytes] = []
    size = _BODY_BYTES
    is_first = True
    for mark in itertools.starmap(StatusMark, hashes):
        resource_id = mark.id
        item = msgspec.json.encode(_StatusHash(mark.id, mark.hash, mark.sequence_id or msgspec.UNSET))
        if len(item) + _BODY_BYTES > max_bytes:
            raise errors.InvalidContent(
                f"resourceID {resource_id[:64]!r} is too long for a resync of {max_bytes} bytes"
            )
        if batch and (len(batch) == max_items or size + len(item) > max_bytes):
            yield _body(batch)
            batch, size, is_first = [], _BODY_BYTES, False
        batch.append(item)
        size += len(item) + 1
    if batch or is_first:
        yield _body(batch)


def encode_versions(versions: Mapping[str, int]) -> bytes:
    """Return the data of a spec resync request with versions only, as a Go agent sends it."""
    return msgspec.json.encode(_Versions([_ResourceVersion(*item) for item in versions.items()]))


def encode_request(request: SpecResyncRequest) -> bytes:
    """Return the data of a spec resync request; a Go server ignores what it does not know."""
    items = [
        _ResourceVersion(work_id, version, request.event_ids.get(work_id) or msgspec.UNSET)
        for work_id, version in request.versions.items()
    ]
    hold: _Hold | msgspec.UnsetType = msgspec.UNSET
    if request.hold is not None:
        pending = request.hold.pending
        hold = _Hold(
            **{name: getattr(request.hold, name) for name in _HOLD_FIELDS},
            pending=msgspec.UNSET if pending is None else _Pending(**_members(pending)),
        )
    elif request.states_hold:
        hold = _Hold()
    return msgspec.json.encode(_Versions(items, hold))


def decode_request(body: bytes) -> SpecResyncRequest:
    """Parse the data of a spec resync request; of a resource ID named twice the later version counts."""
    request = _decode_versions(body)
    items, hold = request.items or (), request.hold or None
    return SpecResyncRequest(
        versions={item.id: item.version for item in items},
        event_ids={item.id: item.event_id for item in items if item.event_id},
        marker=request.marker or "",
        states_hold=hold is not None,
        hold=_reported_hold(hold) if hold and hold.id else None,
    )


def decode_versions(body: bytes) -> dict[str, int]:
    """Parse the versions of a spec resync request."""
    return dict(decode_request(body).versions)


def with_marker(body: bytes, work_id: str) -> bytes:
    """Return a spec resync request that also names a work that does not exist: its orphan deletion ends the answer."""
    request = _decode_versions(body)
    items = [item for item in request.items or () if item.id != work_id]
    return msgspec.json.encode(_Versions([*items, _ResourceVersion(work_id)], request.hold, work_id))


def split_request(body: bytes, *, count: int) -> list[bytes]:
    """Split a spec resync request into about `count` smaller ones; the first also carries the hold.

    All carry the marker, and one names its work: its answer is the end.
    """
    request = _decode_versions(body)
    items = request.items or []
    size = max(1, len(items) // max(1, count) - 1)
    parts = [items[start : start + size] for start in range(0, len(items), size)]
    return [
        msgspec.json.encode(
            _Versions(
                part,
                request.hold if number == 0 else msgspec.UNSET,
                request.marker,
            )
        )
        for number, part in enumerate(parts)
    ]


def encode_hashes(hashes: Mapping[str, str]) -> bytes:
    """Return the data of one status resync request."""
    return _body([msgspec.json.encode(_StatusHash(*item)) for item in hashes.items()])


def decode_hashes(body: bytes) -> dict[str, str]:
    """Parse the hashes of a status resync request; of a resource ID named twice the later hash counts."""
    return {mark.id: mark.hash for mark in decode_status_marks(body)}


def decode_status_marks(body: bytes) -> list[StatusMark]:
    """Parse the data of a status resync request."""
    try:
        request = _hashes.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong_body(error, body, field="statusHashes", subresource="status") from error
    items = request.items if request else None
    return [StatusMark(item.id, item.hash, item.sequence_id or "") for item in items or ()]


_Version = Annotated[int, msgspec.Meta(ge=event.INT32_MIN, le=event.INT32_MAX)]


_Text = Annotated[str, msgspec.Meta(max_length=1024)]
_HOLD_FIELDS = tuple(name for name in ReportedHold.__slots__ if name != "pending")


class _ResourceVersion(msgspec.Struct, gc=False):
    id: str = msgspec.field(name="resourceID")
    version: _Version = msgspec.field(name="resourceVersion", default=0)
    event_id: _Text | msgspec.UnsetType = msgspec.field(name="eventID", default=msgspec.UNSET)


class _Pending(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=0, le=event.INT32_MAX)] = 0
    works: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=HELD_NAMES)] = ()
    since: _Text = ""
    deadline: _Text = ""


class _Hold(msgspec.Struct):
    id: _Text = ""
    reason: _Text = ""
    message: _Text = ""
    database: _Text = ""
    count: Annotated[int, msgspec.Meta(ge=0, le=event.INT32_MAX)] = 0
    works: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=HELD_NAMES)] = ()
    pending: _Pending | msgspec.UnsetType = msgspec.UNSET


class _Versions(msgspec.Struct):
    items: list[_ResourceVersion] | None = msgspec.field(name="resourceVersions", default=None)
    hold: _Hold | msgspec.UnsetType | None = msgspec.UNSET
    marker: _Text | msgspec.UnsetType = msgspec.UNSET


class _StatusHash(msgspec.Struct, gc=False):
    id: str = msgspec.field(name="resourceID")
    hash: str = msgspec.field(name="statusHash", default="")
    sequence_id: str | msgspec.UnsetType = msgspec.field(name="sequenceID", default=msgspec.UNSET)


class _Hashes(msgspec.Struct):
    items: list[_StatusHash] | None = msgspec.field(name="statusHashes", default=None)


_versions = msgspec.json.Decoder(_Versions | None)
_hashes = msgspec.json.Decoder(_Hashes | None)


def _members(pending: PendingEvictions | _Pending) -> dict[str, Any]:
    return {name: getattr(pending, name) for name in PendingEvictions.__slots__}


def _reported_hold(hold: _Hold) -> ReportedHold:
    pending = PendingEvictions(**_members(hold.pending)) if hold.pending else None
    return ReportedHold(**{name: getattr(hold, name) for name in _HOLD_FIELDS}, pending=pending)


def _decode_versions(body: bytes) -> _Versions:
    try:
        return (_versions.decode(body) if body else None) or _Versions()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong_body(error, body, field="resourceVersions", subresource="spec") from error


def _body(items: list[bytes]) -> bytes:
    return b'{"statusHashes":[' + b",".join(items) + b"]}"


def _wrong_body(error: Exception, body: bytes, *, field: str, subresource: str) -> errors.MalformedMessage:
    return errors.MalformedMessage(
        f"failed to unmarshal {subresource} resync request payload ({field}): {json_types.decode_problem(error, body)}"
    )
