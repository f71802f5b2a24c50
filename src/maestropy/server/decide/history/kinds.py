"""The kinds of history entries, and the JSON of their details.

Pure. The kinds of works are literals in the statements that change works (`store/queries`).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

WORK_CREATED: Final = "work.created"
WORK_UPDATED: Final = "work.updated"
WORK_DELETION_REQUESTED: Final = "work.deletion-requested"
WORK_DELETED: Final = "work.deleted"
WORK_STATUS: Final = "work.status"
WORK_RESENT: Final = "work.resent"
WORK_RELEASED: Final = "work.released"
AGENT_CONNECTED: Final = "agent.connected"
AGENT_DISCONNECTED: Final = "agent.disconnected"
CONSUMER_CREATED: Final = "consumer.created"
CONSUMER_LABELED: Final = "consumer.labeled"
CONSUMER_DELETED: Final = "consumer.deleted"
CONSUMER_ADOPTED: Final = "consumer.adopted"
CONSUMER_PAUSED: Final = "consumer.paused"
CONSUMER_RESUMED: Final = "consumer.resumed"
CONSUMER_RESYNCED: Final = "consumer.resynced"
CONSUMER_RETIRED: Final = "consumer.retired"
DATABASE_SWEPT: Final = "database.swept"
REQUEST_REFUSED: Final = "request.refused"
HISTORY_LEFT_OUT: Final = "history.left-out"
HISTORY_DROPPED: Final = "history.dropped"

ALL: Final = (
    *(WORK_CREATED, WORK_UPDATED, WORK_DELETION_REQUESTED, WORK_DELETED, WORK_STATUS, WORK_RESENT, WORK_RELEASED),
    *(AGENT_CONNECTED, AGENT_DISCONNECTED),
    *(CONSUMER_CREATED, CONSUMER_LABELED, CONSUMER_DELETED, CONSUMER_ADOPTED),
    *(CONSUMER_PAUSED, CONSUMER_RESUMED, CONSUMER_RESYNCED, CONSUMER_RETIRED, DATABASE_SWEPT),
    *(REQUEST_REFUSED, HISTORY_LEFT_OUT, HISTORY_DROPPED),
)
FAMILIES: Final = tuple(dict.fromkeys(kind.partition(".")[0] for kind in ALL))

Result = Literal["denied", "conflict", "not-found", "invalid"]

TEXT_CHARACTERS: Final = 256
"""Of a name, an ID or a reason in an entry; longer ones are cut."""

MAX_DETAIL_BYTES: Final = 4096
_LISTED_CHARACTERS: Final = 120

_encode = msgspec.json.Encoder().encode


def detail(members: Mapping[str, object]) -> str:
    """Return the JSON of a detail, of a bounded size; members without a value are left out."""
    encoded = _encode({name: value for name, value in members.items() if value})
    return (encoded if len(encoded) <= MAX_DETAIL_BYTES else _bounded(members)).decode()


def _bounded(members: Mapping[str, object]) -> bytes:
    """Return a detail that is too large with shorter texts, and with as much of its lists as there is room for."""
    kept = {name: _shortened(value) for name, value in members.items() if value} | {"truncated": True}
    encoded = _encode(kept)
    while len(encoded) > MAX_DETAIL_BYTES:
        longest = max((value for value in kept.values() if isinstance(value, list)), key=len, default=[])
        if not longest:
            return b'{"truncated":true}'
        kept = {name: value[: len(value) // 2] if value is longest else value for name, value in kept.items()}
        encoded = _encode({name: value for name, value in kept.items() if value})
    return encoded


def _shortened(value: Any) -> Any:
    match value:
        case str():
            return short(value, limit=_LISTED_CHARACTERS)
        case list():
            return [_shortened(each) for each in value]
        case dict():
            return {name: _shortened(each) for name, each in value.items()}
    return value


def short(text: str, *, limit: int = TEXT_CHARACTERS) -> str:
    """Return a text from outside as PostgreSQL can hold it: bounded, without NUL and without lone surrogates."""
    if text.isascii() and len(text) <= limit and "\0" not in text:
        return text
    cut = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return cut.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
