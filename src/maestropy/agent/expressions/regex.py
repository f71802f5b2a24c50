"""Search regular expressions from works in linear time, with RE2.

Python's engine backtracks, so a pattern from a work could keep the agent busy for years. RE2 is the engine that
Kubernetes' CEL and gojq use in Go (package `regexp`): same syntax, no back-references, no look-around, and time bounded
by pattern size times text length. Every search is charged to the caller's budget before it runs.
"""

from collections.abc import Iterator
from functools import lru_cache

import re2

from maestropy.agent.expressions.budget import Budget, text_steps

MAX_PATTERN = 2048
"""Characters of a pattern. Compiling takes at most 5 ms for that many."""

_MEMORY_BYTES = 1 << 18
"""For one compiled pattern with its cached states; up to `_CACHED_PATTERNS` of them stay in memory."""

_CACHED_PATTERNS = 128
_SEARCH_STEPS = 10
_REJECTED_STEPS = 2000
"""Steps to find out that a pattern is too large or wrong."""


class RegexError(ValueError):
    """The pattern cannot be used; the text says why, in the words of Go's `regexp`."""


def search(pattern: str, text: str, *, budget: Budget) -> tuple[int, int] | None:
    """Return the span of the first match of `pattern` in `text`."""
    return next(search_all(pattern, text, budget=budget), None)


def search_all(pattern: str, text: str, *, budget: Budget) -> Iterator[tuple[int, int]]:
    """Yield the spans of all matches from left to right, without overlap."""
    if len(pattern) > MAX_PATTERN:
        raise RegexError(f"error parsing regexp: expression exceeds {MAX_PATTERN} characters")
    budget.spend(_SEARCH_STEPS + text_steps(len(pattern) + len(text)))
    compiled = _compiled(pattern)
    if isinstance(compiled, RegexError):
        budget.spend(_REJECTED_STEPS)
        raise compiled.with_traceback(None)
    # The cache keeps the pattern at least for the rest of the expression.
    budget.spend_once(pattern, compiled.programsize + len(pattern))
    # Bytes are encoded once; the module would encode a string again for every match.
    encoded = text.encode()
    start, last_end = 0, -1
    start_character = counted_to = 0
    while start <= len(encoded):
        # RE2 visits at most every instruction at every byte; usually it does far less.
        budget.spend(_SEARCH_STEPS + (len(encoded) - start) * compiled.programsize // 100)
        match = compiled.search(encoded, start)
        if match is None:
            return
        first, last = match.span()
        # As in Go, an empty match right behind the previous match does not count.
        if first != last or first != last_end:
            start_character += _characters(encoded, counted_to, first)
            end_character = start_character + _characters(encoded, first, last)
            yield start_character, end_character
            start_character, counted_to = end_character, last
        last_end = last
        start = last if last > first else _after(encoded, last)


def _characters(encoded: bytes, start: int, end: int) -> int:
    return len(encoded[start:end].decode())


def _after(encoded: bytes, position: int) -> int:
    """Return the position behind the character at `position`."""
    position += 1
    while position < len(encoded) and encoded[position] & 0xC0 == 0x80:
        position += 1
    return position


@lru_cache(maxsize=_CACHED_PATTERNS)
def _compiled(pattern: str) -> "re2._Regexp | RegexError":
    """Compile; an error is a result, so that it is cached, too."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        return RegexError(f"error parsing regexp: {text}")
