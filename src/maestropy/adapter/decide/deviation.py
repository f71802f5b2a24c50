"""Compare what two runs of an adapter change and report: the recorded one, and its replay. Pure.

Reads are not compared: a replay gets the recorded results, whatever it asks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.adapter.decide.effects import Apply, CallApi, Delete, Effect, PutStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What one effect changes or reports."""

    summary: str
    """As it reads after "the run": `creates work cluster1/hello`."""
    digest: str
    """Of the content, which may be a Secret."""


def write_of(effect: Effect) -> Write | None:
    """Return what an effect changes or reports; None if it only reads."""
    match effect:
        case Apply():
            verb = "creates" if effect.patch is None else "patches"
            work = effect.work.manifest_work
            content = [dict(work.labels), dict(work.annotations), dict(work.spec)]
            return _write(f"{verb} work {effect.consumer}/{effect.work.name}", content)
        case Delete():
            return _write(f"deletes work {effect.consumer}/{effect.name}", None)
        case PutStatus(status=status):
            shown = ", ".join(f"{condition.type}={condition.status}" for condition in status.conditions)
            texts = [(condition.type, condition.reason, condition.message) for condition in status.conditions]
            return _write(f"reports generation {status.generation} ({shown})", [texts, dict(status.data)])
        case CallApi() if effect.method != "GET":
            return _write(f"calls {effect.method} {effect.url}", dict(effect.body or {}))
    return None


def deviations(recorded: Sequence[Write], repeated: Sequence[Write]) -> list[str]:
    """Return how the second run deviates from the first, one sentence for each write."""
    common = min(len(recorded), len(repeated))
    return [
        *(_difference(before, now) for before, now in zip(recorded, repeated, strict=False) if before != now),
        *(f"the recorded run {before.summary}, this one does not" for before in recorded[common:]),
        *(f"only this run {now.summary}" for now in repeated[common:]),
    ]


def _difference(before: Write, now: Write) -> str:
    if before.summary == now.summary:
        return f"this run {now.summary}, with another content than the recorded one"
    return f"the recorded run {before.summary}, this one {now.summary}"


def _write(summary: str, content: Any) -> Write:
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return Write(summary=summary, digest=hashlib.sha256(text).hexdigest())
