"""Given what they have and what we have: what to send.

After every reconnect the two ends compare (id, version) or (id, status hash) and send what the other missed. Lost
messages, restarts and moves of ownership all end here. The functions compare; they fetch and send nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from maestropy.wire import errors, event

BATCH_ITEMS = 1000
EVENT_MAX_BYTES = 524288
"""The packet size brokers commonly allow."""
ENVELOPE_BYTES = 4096
"""What attributes and topic may take of it."""

_BODY_BYTES = len(b'{"statusHashes":[]}')


@dataclass(frozen=True, slots=True)
class Row:
    """What the server knows of one bundle."""

    id: str
    version: int
    is_deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecAnswer:
    """What an agent must be sent."""

    send: tuple[str, ...]
    """Bundles to send as they are now."""
    orphans: Mapping[str, int]
    """Works the server does not have, with the version the agent reported: to be deleted."""


def spec_answer(rows: Iterable[Row], reported: Mapping[str, int]) -> SpecAnswer:
    """Compare all bundles of a consumer with what its agent reported (id to version)."""
    orphans = dict(reported)
    send = []
    for row in rows:
        known = orphans.pop(row.id, 0)
        if row.is_deleting or row.version > known or row.version == 0:
            send.append(row.id)
    return SpecAnswer(send=tuple(send), orphans=orphans)


def status_answer(current: Iterable[tuple[str, str]], known: Mapping[str, str]) -> list[str]:
    """Return the ids whose status the asker misses, given (id, hash) of ours and what the asker knows.

    An asker that knows nothing gets everything; otherwise what it does not name is not its concern, which is what
    makes asking in batches safe. Agents answer servers and servers answer sources by this one rule.
    """
    if not known:
        return [resource_id for resource_id, _ in current]
    return [resource_id for resource_id, found in current if known.get(resource_id, found) != found]


def status_hash_batches(
    hashes: Iterable[tuple[str, str]],
    *,
    max_items: int = BATCH_ITEMS,
    max_bytes: int = EVENT_MAX_BYTES - ENVELOPE_BYTES,
) -> Iterator[bytes]:
    """Yield the bodies of status resync requests; at least one, because an empty one asks for everything."""
    batch: list[bytes] = []
    size = _BODY_BYTES
    is_first = True
    for resource_id, found in hashes:
        item = msgspec.json.encode(_StatusHash(resource_id, found))
        if len(item) + _BODY_BYTES > max_bytes:
            raise errors.Invalid(f"resourceID {resource_id[:64]!r} is too long for a resync of {max_bytes} bytes")
        if batch and (len(batch) == max_items or size + len(item) > max_bytes):
            yield _body(batch)
            batch, size, is_first = [], _BODY_BYTES, False
        batch.append(item)
        size += len(item) + 1
    if batch or is_first:
        yield _body(batch)


def encode_versions(versions: Mapping[str, int]) -> bytes:
    """Return the body of a spec resync request."""
    return msgspec.json.encode(_Versions([_ResourceVersion(*item) for item in versions.items()]))


def decode_versions(body: bytes) -> dict[str, int]:
    """Read the body of a spec resync request; of an id named twice the later version counts."""
    try:
        found = _versions.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong_body(error, field="resourceVersions", what="spec") from error
    items = found.items if found else None
    return {item.id: item.version for item in items or ()}


def encode_hashes(hashes: Mapping[str, str]) -> bytes:
    """Return the body of one status resync request."""
    return _body([msgspec.json.encode(_StatusHash(*item)) for item in hashes.items()])


def decode_hashes(body: bytes) -> dict[str, str]:
    """Read the body of a status resync request; of an id named twice the later hash counts."""
    try:
        found = _hashes.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _wrong_body(error, field="statusHashes", what="status") from error
    items = found.items if found else None
    return {item.id: item.hash for item in items or ()}


_Version = Annotated[int, msgspec.Meta(ge=event.INT32_MIN, le=event.INT32_MAX)]


class _ResourceVersion(msgspec.Struct, gc=False):
    id: str = msgspec.field(name="resourceID")
    version: _Version = msgspec.field(name="resourceVersion", default=0)


class _Versions(msgspec.Struct):
    items: list[_ResourceVersion] | None = msgspec.field(name="resourceVersions", default=None)


class _StatusHash(msgspec.Struct, gc=False):
    id: str = msgspec.field(name="resourceID")
    hash: str = msgspec.field(name="statusHash", default="")


class _Hashes(msgspec.Struct):
    items: list[_StatusHash] | None = msgspec.field(name="statusHashes", default=None)


_versions = msgspec.json.Decoder(_Versions | None)
_hashes = msgspec.json.Decoder(_Hashes | None)


def _body(items: list[bytes]) -> bytes:
    return b'{"statusHashes":[' + b",".join(items) + b"]}"


def _wrong_body(error: Exception, *, field: str, what: str) -> errors.Malformed:
    return errors.Malformed(f"failed to unmarshal {what} resync request payload ({field}): {str(error)[:200]}")
