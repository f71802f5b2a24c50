"""Read from an archive what its logs need not show: which consumers exist, and whose agents have left."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from maestropy.diagnose import works_of
from maestropy.trace.logs.model import Options

_CONSUMERS: Final = ("database/consumers.jsonl", "server/consumers.jsonl")
_HISTORIES: Final = ("database/history.jsonl", "server/history.jsonl")
_CONNECTIONS: Final = frozenset({"agent.connected", "agent.disconnected"})
"""Only servers that agents connect to, with the gRPC broker, write these."""


def options(folder: Path) -> Options:
    """Return how to judge the requests of an unpacked archive."""
    consumers = {str(document.get("name") or "") for name in _CONSUMERS for document in _documents(folder / name)}
    return Options(consumers=frozenset(consumers - {""}), departures=tuple(sorted(_departures(folder).items())))


def _departures(folder: Path) -> dict[str, float]:
    """Return the consumers whose last connection has ended, and when."""
    last: dict[str, tuple[float, str]] = {}
    for name in _HISTORIES:
        for document in _documents(folder / name):
            kind, consumer, at = str(document.get("kind")), document.get("consumer_name"), _moment(document.get("time"))
            if kind in _CONNECTIONS and isinstance(consumer, str) and at:
                last[consumer] = max(last.get(consumer, (0.0, "")), (at, kind))
    return {consumer: at for consumer, (at, kind) in last.items() if kind == "agent.disconnected"}


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
