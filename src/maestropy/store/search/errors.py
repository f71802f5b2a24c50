"""The one error of this package: a search or an order that we refuse, with the sentence for its author."""

BAD_REQUEST = 21
"""Error id of the REST API for everything refused here (HTTP 400)."""

_SHOWN = 80
"""Characters of a value repeated in a reason: enough to recognise it, too few to flood a log."""


class SearchError(Exception):
    """A list parameter cannot be turned into SQL; `reason` tells the caller what to change."""

    def __init__(self, reason: str, *, code: int = BAD_REQUEST) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def shown(value: object) -> str:
    """Return `value` as the author wrote it, cut to a length that fits in a sentence."""
    text = str(value)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…'"
