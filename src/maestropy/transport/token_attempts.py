"""Limit the token reviews that clients without a valid token can cause.

Every unknown token costs a request to the Kubernetes API. The failed ones of each client address are limited. Tokens
that were valid at their last review are not, so that clients behind the same address go on.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from maestropy.transport.peer_limits import AttemptLimit

FAILED_AT_ONCE: Final = 20
"""Failed reviews of one client address at once."""

FAILED_SECONDS: Final = 5.0
"""Then one failed review in this time."""

_VALID_TOKENS: Final = 4096


def digest(token: str) -> bytes:
    """Return the key of a token: no memory dump has the token itself."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


class TokenAttempts:
    """Token reviews by client address. For one event loop; tokens are given as digests."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._failures = AttemptLimit(burst=FAILED_AT_ONCE, seconds=FAILED_SECONDS, clock=clock)
        self._valid: OrderedDict[bytes, None] = OrderedDict()

    def may_start(self, token: bytes, *, address: str) -> bool:
        """Count a review that starts; return False if it must not."""
        # Counted before its result: otherwise all tokens that arrive during one review would be reviewed.
        return token in self._valid or self._failures.take(address)

    def accepted(self, token: bytes, *, address: str) -> None:
        """Note that the token is valid."""
        self.unanswered(token, address=address)
        self._valid[token] = None
        self._valid.move_to_end(token)
        if len(self._valid) > _VALID_TOKENS:
            self._valid.popitem(last=False)

    def rejected(self, token: bytes) -> None:
        """Note that the token is not valid."""
        self._valid.pop(token, None)

    def unanswered(self, token: bytes, *, address: str) -> None:
        """Note that the review had no result: the client is not to blame."""
        if token not in self._valid:
            self._failures.give_back(address)
