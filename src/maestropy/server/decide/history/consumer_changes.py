"""Summarise a change of a consumer: the names of its labels, no values. Pure."""

from typing import Final

import msgspec

from maestropy.server.decide.history import kinds

_MAX_LABELS: Final = 24
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def detail(labels: bytes | None) -> str:
    """Return the detail of a consumer with these labels, which are JSON."""
    try:
        names = sorted(_decode(labels)) if labels else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        names = []
    shown = [kinds.short(name, limit=63) for name in names[:_MAX_LABELS]]
    return kinds.detail({"labels": shown, "truncated": len(names) > _MAX_LABELS})
