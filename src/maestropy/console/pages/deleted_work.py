"""Describe a work that was deleted or released and has no row any more, by what the history keeps of it. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from maestropy.console.pages import hops
from maestropy.console.rows import shortened
from maestropy.sdk.history import HistoryEntry
from maestropy.trace.findings.codes import CODES
from maestropy.trace.work import parse

CODE: Final = "MW-102"
_RELEASED_CODE: Final = "MW-124"
_DELETED: Final = "work.deleted"
_RELEASED: Final = "work.released"
_ENDS: Final = (_DELETED, _RELEASED)
_REQUESTED: Final = "work.deletion-requested"


def deletion(history: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """Return the newest entry that ended a work; None if the history has none, or the work was created again."""
    ends = [entry for entry in history if entry.kind in (*_ENDS, "work.created")]
    last = max(ends, key=lambda entry: (entry.time, entry.kind in _ENDS), default=None)
    return last if last is not None and last.kind in _ENDS else None


def headline(model: dict[str, Any], work_id: str, history: Sequence[HistoryEntry], ended: HistoryEntry) -> None:
    """Put the end of a work into its model: when it ended, who asked for it, its name and its ID."""
    is_released = ended.kind == _RELEASED
    code = _RELEASED_CODE if is_released else CODE
    entry = CODES[code]
    asked = None if is_released else _asked(history)
    by = f" by {_who(ended)}; its objects stay on the cluster" if is_released else ""
    requested = f", requested by {_who(asked)} at {asked.time}" if asked is not None else ""
    evidence = [_evidence(one) for one in (asked, ended) if one is not None]
    finding: dict[str, Any] = {
        "code": code,
        "severity": entry.severity,
        "title": entry.title if is_released else "The work was deleted.",
        "detail": "",
        "advice": [],
    }
    model |= {
        "code": code,
        "verdict": entry.name,
        "summary": f"{'Released' if is_released else 'Deleted'} at {ended.time}{by}{requested}.",
        "workName": model.get("workName") or _name(history),
        "resourceId": work_id,
        "consumer": model.get("consumer") or ended.consumer or next((one.consumer for one in history), ""),
        "findings": [{**finding, "evidence": evidence}],
        "isDeleted": True,
    }


def strip(history: Sequence[HistoryEntry], ended: HistoryEntry) -> list[dict[str, Any]]:
    """Return the hops of a deleted work: none is broken, and nothing is left to be told by the later ones."""
    asked = _asked(history)
    known = hops.Known(
        code=CODE,
        summary="",
        source=asked.source if asked else "",
        operation_id=asked.operation_id if asked else "",
        requested=_seconds(asked.time) if asked else 0.0,
        stored=_seconds(ended.time),
    )
    shown = hops.strip(known)
    for hop in shown:
        if hop["hop"] == "database":
            hop["says"] = "released" if ended.kind == _RELEASED else "deleted"
        elif hop["hop"] == "status":
            hop["says"] = ""
    return shown


def _asked(history: Sequence[HistoryEntry]) -> HistoryEntry | None:
    return max((entry for entry in history if entry.kind == _REQUESTED), key=lambda entry: entry.time, default=None)


def _who(entry: HistoryEntry) -> str:
    where = f"from {entry.address}" if entry.address else ""
    return shortened(" ".join(filter(None, (entry.requester, where)))) or "somebody without login"


def _evidence(entry: HistoryEntry) -> dict[str, str]:
    who = f" by {_who(entry)}" if entry.kind in (_REQUESTED, _RELEASED) else ""
    return {"where": "history", "says": f"{entry.time} {entry.kind}{who}"}


def _name(history: Sequence[HistoryEntry]) -> str:
    names = (entry.detail.get("name") for entry in history if entry.kind.startswith("work."))
    return shortened(next((name for name in names if isinstance(name, str) and name), ""))


def _seconds(text: str) -> float:
    moment = parse.moment(text)
    return moment.timestamp() if moment is not None else 0.0
