"""Rows as the JSON that clients read.

Pure: bytes in, bytes out. What a source or an agent sent is spliced in as it lies in the database, never parsed and
written again. Keys are in alphabetical order and never more than clients know, because the Go client refuses a list
whose items have a key it has not heard of.
"""

from collections.abc import Iterable, Sequence, Set
from datetime import datetime
from typing import Final

import msgspec
from starlette.responses import Response

from maestropy.store import consumers, listing

BASE: Final = "/api/maestro/v1"
HEADERS: Final = {"Content-Type": "application/json", "Vary": "Authorization"}
RAW_HEADERS: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

_NEVER: Final = b'"0001-01-01T00:00:00Z"'
_ABSENT: Final = msgspec.Raw(b"null")
_EMPTY_LIST: Final = msgspec.Raw(b"[]")
_EMPTY_OBJECT: Final = msgspec.Raw(b"{}")
_encode = msgspec.json.Encoder().encode


class _Spec(msgspec.Struct, rename="camel"):
    manifests: msgspec.Raw = _EMPTY_LIST
    manifest_configs: msgspec.Raw = _EMPTY_LIST
    delete_option: msgspec.Raw = _EMPTY_OBJECT


class _Report(msgspec.Struct, rename="camel"):
    conditions: msgspec.Raw = _ABSENT
    resource_status: msgspec.Raw = _ABSENT


class _StatusEvent(msgspec.Struct):
    resourceversion: int | str | None = None
    sequenceid: int | str | None = None
    data: _Report | None = None


_decode_spec = msgspec.json.Decoder(_Spec).decode
_decode_status = msgspec.json.Decoder(_StatusEvent).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def bundle(row: listing.BundleRow, shown: Set[str]) -> bytes:
    """Return the JSON of a bundle with the keys `shown`."""
    parts: list[tuple[str, bytes | msgspec.Raw]] = [
        ("consumer_name", _encode(row.consumer_name or "")),
        ("created_at", moment(row.created_at)),
    ]
    spec = _spec(row.data) if row.data else _Spec()
    parts.append(("delete_option", _or(spec.delete_option, _EMPTY_OBJECT)))
    if row.deleted_at is not None:
        parts.append(("deleted_at", moment(row.deleted_at)))
    parts += [
        ("href", _encode(f"{BASE}/resource-bundles/{row.id}")),
        ("id", _encode(row.id)),
        ("kind", b'"ResourceBundle"'),
        ("manifest_configs", _or(spec.manifest_configs, _EMPTY_LIST)),
        ("manifests", _or(spec.manifests, _EMPTY_LIST)),
        ("metadata", metadata(row)),
        ("name", _encode(row.name or "")),
    ]
    status = bundle_status(row.status) if row.status else None
    if status is not None:
        parts.append(("status", status))
    parts += [("updated_at", moment(row.updated_at)), ("version", b"%d" % row.version)]
    return _object(parts, shown)


def consumer(row: consumers.ConsumerRow, shown: Set[str]) -> bytes:
    """Return the JSON of a consumer with the keys `shown`; one without labels has no such key."""
    parts: list[tuple[str, bytes | msgspec.Raw]] = [
        ("created_at", moment(row.created_at)),
        ("href", _encode(f"{BASE}/consumers/{row.id}")),
        ("id", _encode(row.id)),
        ("kind", b'"Consumer"'),
    ]
    if row.labels:
        parts.append(("labels", row.labels))
    parts += [("name", _encode(row.name)), ("updated_at", moment(row.updated_at))]
    return _object(parts, shown)


def response(body: bytes, *, status: int = 200) -> Response:
    """Return an answer with a body of JSON."""
    return Response(body, status, headers=HEADERS)


def list_head() -> bytes:
    """Return what stands before the items of a list."""
    return b'{"items":['


def list_tail(kind: str, *, page: int, size: int, total: int) -> bytes:
    """Return what stands after the items of a list."""
    return b'],"kind":"%s","page":%d,"size":%d,"total":%d}' % (kind.encode(), page, size, total)


def whole_list(items: Sequence[bytes], *, kind: str, page: int, total: int) -> bytes:
    """Return a list that is small enough to be held at once."""
    tail = list_tail(kind, page=page, size=len(items), total=total)
    return b"".join((list_head(), b",".join(items), tail))


def moment(value: datetime | None) -> bytes:
    """Return a time as Go writes it: RFC 3339 in UTC, without trailing zeros in the fraction."""
    if value is None:
        return _NEVER
    # The driver gives every timestamptz in UTC: 2026-08-20T10:00:41[.123456]+00:00.
    text = value.isoformat()
    return f'"{text[:19]}{text[19:-6].rstrip("0")}Z"'.encode()


def metadata(row: listing.BundleRow) -> bytes:
    """Return the work's ObjectMeta with the times that only the server knows; without one, `{}`."""
    members = _members(row.metadata) if row.metadata else {}
    if not members:
        return b"{}"
    members["creationTimestamp"] = _seconds(row.created_at)
    if row.deleted_at is not None:
        members["deletionTimestamp"] = _seconds(row.deleted_at)
    return _encode(dict(sorted(members.items())))


def bundle_status(stored: bytes) -> bytes | None:
    """Return what a stored status event says, in the words of the REST API; None when it says nothing."""
    if stored in (b"null", b"{}"):
        return None
    try:
        event = _decode_status(stored)
    except msgspec.DecodeError:
        # Not an event that any agent of ours sent; the bundle is worth showing all the same.
        return None
    report = event.data or _Report()
    pieces = [b'{"ObservedVersion":%d,"SequenceID":' % _whole(event.resourceversion)]
    pieces.append(_encode(str(event.sequenceid or "")))
    # A list that the agent did not send is left out, as in the reference.
    if report.conditions != _ABSENT:
        pieces += (b',"conditions":', report.conditions)
    if report.resource_status != _ABSENT:
        pieces += (b',"resourceStatus":', report.resource_status)
    pieces.append(b"}")
    return b"".join(pieces)


def _spec(data: bytes) -> _Spec:
    try:
        return _decode_spec(data)
    except msgspec.DecodeError:
        # `data` that is no bundle (null, a number) is what the reference shows as an empty one.
        return _Spec()


def _members(text: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _decode_members(text)
    except msgspec.DecodeError:
        return {}


def _seconds(value: datetime | None) -> msgspec.Raw:
    text = moment(value)
    return msgspec.Raw(text[:20] + b'Z"')


def _whole(value: int | str | None) -> int:
    try:
        return int(value or 0)
    except ValueError:
        return 0


def _or(value: msgspec.Raw, otherwise: msgspec.Raw) -> msgspec.Raw:
    return otherwise if value == _ABSENT else value


def _object(parts: Iterable[tuple[str, bytes | msgspec.Raw]], shown: Set[str]) -> bytes:
    pieces: list[bytes | msgspec.Raw] = []
    for key, value in parts:
        if key in shown:
            pieces += (b',"', key.encode(), b'":', value)
    if not pieces:
        return b"{}"
    pieces[0] = b'{"'
    pieces.append(b"}")
    return b"".join(pieces)
