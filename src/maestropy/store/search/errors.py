"""The error for a rejected `search` or `orderBy` parameter, with the reason for the client."""

BAD_REQUEST = 21
"""Error ID of the REST API for a rejected parameter (HTTP 400)."""

_SHOWN = 80
"""Characters of a value repeated in a reason: enough to recognise it, too few to flood a log."""


class SearchError(Exception):
    """A list parameter cannot be compiled to SQL; `reason` tells the client what to change."""

    def __init__(self, reason: str, *, code: int = BAD_REQUEST) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def shown(value: object) -> str:
    """Return `value` in quotes, shortened for an error text."""
    text = str(value)
    return f"'{text}'" if len(text) <= _SHOWN else f"'{text[:_SHOWN]}…'"
