"""Read from an archive what its logs need not show: which consumers exist, and whose agents have left."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from maestropy.diagnose import works_of
from maestropy.trace import connections
from maestropy.trace.connections import Connections
from maestropy.trace.logs.model import Options

_CONSUMERS: Final = ("database/consumers.jsonl", "server/consumers.jsonl")
_HISTORIES: Final = ("database/history.jsonl", "server/history.jsonl")


def options(folder: Path) -> Options:
    """Return how to judge the requests of an unpacked archive."""
    consumers = {str(document.get("name") or "") for name in _CONSUMERS for document in _documents(folder / name)}
    return Options(consumers=frozenset(consumers - {""}), departures=tuple(sorted(_departures(folder).items())))


def _departures(folder: Path) -> dict[str, float]:
    """Return the consumers whose connections have ended, and when."""
    known: dict[str, Connections] = {}
    for consumer, at, kind, seen in sorted(_connections(folder)):
        known[consumer] = known.get(consumer, Connections()).after(kind, at, seen=seen)
    return {consumer: found.ended for consumer, found in known.items() if not found.is_connected}


def _connections(folder: Path) -> set[tuple[str, float, str, float]]:
    """Return consumer, time, kind and when the agent was last seen; database and server may both have written one."""
    return {
        (consumer, at, kind, connections.last_seen(document.get("detail")))
        for name in _HISTORIES
        for document in _documents(folder / name)
        if (kind := str(document.get("kind"))) in connections.KINDS
        and isinstance(consumer := document.get("consumer_name"), str)
        and (at := _moment(document.get("time")))
    }


def _moment(value: object) -> float:
    try:
        at = datetime.fromisoformat(str(value))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _documents(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what can be read; other parts of the analysis say what cannot."""
    for _, document in works_of.documents(path, problems=[]):
        yield document
