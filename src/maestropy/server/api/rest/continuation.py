"""Encode where a list continues as the token of the `continue` parameter.

Pure. A token holds the values of the last item, a fingerprint of `search` and `orderBy`, and the total. It is not
secret and not signed: its values are parameters of a query that the caller may ask for anyway.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from maestropy.store.lists.keyset import Position, Value
from maestropy.store.search import ColumnType, OrderKey, SearchError

HEADER: Final = "X-Maestro-Continue"
"""The token for the next page; absent on the last page, and in responses of Go servers."""
TOTAL_HEADER: Final = "X-Maestro-Total"
"""`estimate` if the total was not counted."""

_VERSION: Final = 1
_MAX_TOKEN: Final = 8192
_INT64: Final = range(-(2**63), 2**63)
_RESTART: Final = "leave the parameter out to read the list from its beginning"


class _Token(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    fingerprint: str
    page: int
    seen: int
    total: int
    is_exact: bool
    """Not read; servers of before expect it, and one list may be read from both during a rolling update."""
    values: list[str | int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuation:
    """The page that a token asks for."""

    page: int
    position: Position


def encode(continuation: Continuation, *, fingerprint: str) -> str:
    """Return the token."""
    position = continuation.position
    token = _Token(
        version=_VERSION,
        fingerprint=fingerprint,
        page=continuation.page,
        seen=position.seen,
        total=position.total,
        is_exact=False,
        values=[value.isoformat() if isinstance(value, datetime) else value for value in position.values],
    )
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def decode(text: str, *, fingerprint: str, keys: Sequence[OrderKey]) -> Continuation:
    """Return what a token asks for; reject one that the server did not make for this search and order."""
    # A longer one is cut, and then is no token.
    padded = text[:_MAX_TOKEN] + "=" * (-len(text[:_MAX_TOKEN]) % 4)
    try:
        raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        token = msgspec.json.decode(raw, type=_Token)
    except (ValueError, binascii.Error, msgspec.MsgspecError, RecursionError):
        raise SearchError(f"continue is not a token of this server; {_RESTART}") from None
    if token.version != _VERSION or token.fingerprint != fingerprint or len(token.values) != len(keys):
        raise SearchError(f"continue belongs to a list with another search or orderBy; {_RESTART}")
    values = tuple(_value(value, key) for value, key in zip(token.values, keys, strict=True))
    if not all(number in range(2**53) for number in (token.page, token.seen, token.total)):
        raise SearchError(f"continue is not a token of this server; {_RESTART}")
    position = Position(values=values, seen=token.seen, total=token.total)
    return Continuation(page=token.page, position=position)


def fingerprint(search: str, order_by: str) -> str:
    """Return a short text that differs for another search or order."""
    return hashlib.sha256(f"{search.strip()}\0{order_by.strip()}".encode("utf-8", "replace")).hexdigest()[:16]


def _value(value: str | int | None, key: OrderKey) -> Value:
    match key.column.type, value:
        case _, None:
            return None
        case ColumnType.TEXT, str() if "\0" not in value:
            return value
        case ColumnType.BIGINT, int() if value in _INT64:
            return value
        case ColumnType.TIMESTAMPTZ, str():
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                moment = None
            if moment is not None and moment.tzinfo is not None:
                return moment
    raise SearchError(f"continue holds no value of {key.column.name}; {_RESTART}")
