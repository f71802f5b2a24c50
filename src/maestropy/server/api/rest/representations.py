"""Render rows as the JSON of the REST API.

Pure: bytes in, bytes out. Content of sources and agents is inserted as stored, without parsing it. Keys are in
alphabetical order. There are no additional keys, because the Go client rejects items with unknown keys; who wants
`executor` asks for it.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime
from types import MappingProxyType
from typing import Final

import msgspec
from starlette.responses import Response

from maestropy.store import consumers
from maestropy.store.lists import resource_lists

BASE: Final = "/api/maestro/v1"
HEADERS: Final = {"Content-Type": "application/json", "Vary": "Authorization"}

_NEVER: Final = b'"0001-01-01T00:00:00Z"'
_ABSENT: Final = msgspec.Raw(b"null")
_EMPTY_LIST: Final = msgspec.Raw(b"[]")
_EMPTY_OBJECT: Final = msgspec.Raw(b"{}")
_encode = msgspec.json.Encoder().encode


class _Spec(msgspec.Struct, rename="camel"):
    manifests: msgspec.Raw = _EMPTY_LIST
    manifest_configs: msgspec.Raw = _EMPTY_LIST
    delete_option: msgspec.Raw = _EMPTY_OBJECT
    executer: msgspec.Raw = _EMPTY_OBJECT


class _StatusData(msgspec.Struct, rename="camel"):
    conditions: msgspec.Raw = _ABSENT
    resource_status: msgspec.Raw = _ABSENT


class _StatusEvent(msgspec.Struct):
    resourceversion: int | str | None = None
    sequenceid: int | str | None = None
    data: _StatusData | None = None
    data_base64: bytes = b""
    """In place of `data`: how a Go server behind Pub/Sub stores it."""


_decode_spec = msgspec.json.Decoder(_Spec).decode
_decode_status_data = msgspec.json.Decoder(_StatusData).decode
_decode_status = msgspec.json.Decoder(_StatusEvent).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def resource_bundle(row: resource_lists.ResourceRow, keys: Set[str]) -> bytes:
    """Return the JSON of a resource bundle with these keys."""
    parts: list[tuple[str, bytes | msgspec.Raw]] = [
        ("consumer_name", _encode(row.consumer_name or "")),
        ("created_at", timestamp(row.created_at)),
    ]
    spec = _spec(row.data) if row.data else _Spec()
    parts.append(("delete_option", _value_or(spec.delete_option, _EMPTY_OBJECT)))
    if row.deleted_at is not None:
        parts.append(("deleted_at", timestamp(row.deleted_at)))
    if spec.executer not in (_ABSENT, _EMPTY_OBJECT):
        parts.append(("executor", spec.executer))
    parts += [
        ("href", _encode(f"{BASE}/resource-bundles/{row.id}")),
        ("id", _encode(row.id)),
        ("kind", b'"ResourceBundle"'),
        ("manifest_configs", _value_or(spec.manifest_configs, _EMPTY_LIST)),
        ("manifests", _value_or(spec.manifests, _EMPTY_LIST)),
        ("metadata", metadata(row)),
        ("name", _encode(row.name or "")),
    ]
    status = resource_bundle_status(row.status) if row.status else None
    if status is not None:
        parts.append(("status", status))
    parts += [("updated_at", timestamp(row.updated_at)), ("version", b"%d" % row.version)]
    return _object(parts, keys)


def consumer(row: consumers.ConsumerRow, keys: Set[str]) -> bytes:
    """Return the JSON of a consumer with these keys; `labels` is absent if there are none."""
    parts: list[tuple[str, bytes | msgspec.Raw]] = [
        ("created_at", timestamp(row.created_at)),
        ("href", _encode(f"{BASE}/consumers/{row.id}")),
        ("id", _encode(row.id)),
        ("kind", b'"Consumer"'),
    ]
    if row.labels:
        parts.append(("labels", row.labels))
    parts += [("name", _encode(row.name)), ("updated_at", timestamp(row.updated_at))]
    return _object(parts, keys)


def response(body: bytes, *, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    """Return a response with a JSON body."""
    return Response(body, status, headers={**HEADERS, **headers})


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of a JSON response and these, as ASGI sends them."""
    return [(name.lower().encode(), value.encode()) for name, value in {**HEADERS, **headers}.items()]


def list_head() -> bytes:
    """Return the JSON before the items of a list."""
    return b'{"items":['


def list_tail(kind: str, *, page: int, size: int, total: int) -> bytes:
    """Return the JSON after the items of a list."""
    return b'],"kind":"%s","page":%d,"size":%d,"total":%d}' % (kind.encode(), page, size, total)


def whole_list(items: Sequence[bytes], *, kind: str, page: int, total: int) -> bytes:
    """Return a complete list."""
    tail = list_tail(kind, page=page, size=len(items), total=total)
    return b"".join((list_head(), b",".join(items), tail))


def timestamp(value: datetime | None) -> bytes:
    """Return a time in the format of Go: RFC 3339 in UTC, without trailing zeros in the fraction."""
    if value is None:
        return _NEVER
    # The driver returns every timestamptz in UTC: 2026-08-20T10:00:41[.123456]+00:00.
    text = value.isoformat()
    return f'"{text[:19]}{text[19:-6].rstrip("0")}Z"'.encode()


def metadata(row: resource_lists.ResourceRow) -> bytes:
    """Return the ObjectMeta of the work with the creation and deletion times of the server; `{}` without one."""
    members = _members(row.metadata) if row.metadata else {}
    if not members:
        return b"{}"
    members["creationTimestamp"] = _seconds(row.created_at)
    if row.deleted_at is not None:
        members["deletionTimestamp"] = _seconds(row.deleted_at)
    return _encode(dict(sorted(members.items())))


def resource_bundle_status(stored: bytes) -> bytes | None:
    """Return the status of the REST API for a stored status event; None if there is none."""
    if stored in (b"null", b"{}"):
        return None
    try:
        event = _decode_status(stored)
        status_data = event.data or (_decode_status_data(event.data_base64) if event.data_base64 else _StatusData())
    except msgspec.DecodeError:
        # A damaged status must not hide the resource bundle.
        return None
    pieces = [b'{"ObservedVersion":%d,"SequenceID":' % _integer(event.resourceversion)]
    pieces.append(_encode(str(event.sequenceid or "")))
    # A list that the agent did not send is omitted, as in the Go server.
    if status_data.conditions != _ABSENT:
        pieces += (b',"conditions":', status_data.conditions)
    if status_data.resource_status != _ABSENT:
        pieces += (b',"resourceStatus":', status_data.resource_status)
    pieces.append(b"}")
    return b"".join(pieces)


def _spec(data: bytes) -> _Spec:
    try:
        return _decode_spec(data)
    except msgspec.DecodeError:
        # The Go server renders `data` that is not an object as an empty manifest bundle.
        return _Spec()


def _members(text: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _decode_members(text)
    except msgspec.DecodeError:
        return {}


def _seconds(value: datetime | None) -> msgspec.Raw:
    text = timestamp(value)
    return msgspec.Raw(text[:20] + b'Z"')


def _integer(value: int | str | None) -> int:
    try:
        return int(value or 0)
    except ValueError:
        return 0


def _value_or(value: msgspec.Raw, default: msgspec.Raw) -> msgspec.Raw:
    return default if value == _ABSENT else value


def _object(parts: Iterable[tuple[str, bytes | msgspec.Raw]], keys: Set[str]) -> bytes:
    pieces: list[bytes | msgspec.Raw] = []
    for key, value in parts:
        if key in keys:
            pieces += (b',"', key.encode(), b'":', value)
    if not pieces:
        return b"{}"
    pieces[0] = b'{"'
    pieces.append(b"}")
    return b"".join(pieces)
