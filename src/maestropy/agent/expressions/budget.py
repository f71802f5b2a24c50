"""Bound what the expressions of a work may cost.

CEL, jq, JSONPath and regular expressions are charged in steps, by the size of the values they read, compare or build,
and before they do so. A step stands for at most about a microsecond and a few hundred bytes, so that a limit on steps
bounds time and memory. Limits are nested: an expression has its own and takes from that of its manifest, which takes
from that of its work. Nothing here reads a clock: the same expression on the same object always costs the same.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Self

from maestropy.wire.works import status_hash

STEPS_PER_EXPRESSION: Final = 25_000
"""Expressions written by hand take hundreds."""
STEPS_PER_MANIFEST: Final = 40_000
"""One manifest is evaluated without a pause, so this is also the longest time for which the event loop is held."""
STEPS_PER_WORK: Final = 1_000_000
"""Steps of all manifests of a work in one reconcile."""
RESULT_BYTES_PER_VALUE: Final = 2 * 1024 * 1024
"""Bytes of one message or feedback value in the status, as JSON: enough for every JsonRaw of the Go agent."""
RESULT_BYTES_PER_MANIFEST: Final = 3 * 1024 * 1024
RESULT_BYTES_PER_WORK: Final = 3584 * 1024
"""The same of one status; with the rest of it they must fit into the 4 MiB that servers accept."""

_EXPRESSION_STEPS: Final = 10
"""What each expression costs, however simple it is."""
_RESULT_BYTES_PER_STEP: Final = 400
"""Bytes of a result that are counted, hashed and sent in the time of a step."""
_ESCAPED_BYTES_PER_STEP: Final = 100
"""Bytes by which a text grows when it is encoded, in the time of a step: these characters are written one by one."""
_RESULT_BYTES: Final = 64
"""What each result takes in the status beside its text."""
_PAID_MAX: Final = 64
_LINEAR_SEARCH_MIN: Final = 30_000
"""Length of text from which Python searches in linear time whatever the parts are."""


class Limit(StrEnum):
    """The limit that an evaluation exceeded; the values are labels of a metric."""

    EXPRESSION = "expression"
    MANIFEST = "manifest"
    WORK = "work"
    RESULTS = "results"
    MANIFEST_RESULTS = "manifest_results"
    VALUE = "value"


_LIMITS: Final = {
    Limit.EXPRESSION: f"the expression takes more than {STEPS_PER_EXPRESSION} steps: make it shorter, or let it read "
    "a smaller part of the object",
    Limit.MANIFEST: f"the expressions of the manifest take more than {STEPS_PER_MANIFEST} steps together: use fewer or "
    "simpler ones",
    Limit.WORK: f"the expressions of the work take more than {STEPS_PER_WORK} steps together: use fewer or simpler "
    "ones, or split the work",
    Limit.RESULTS: f"messages and feedback values of the work take more than {RESULT_BYTES_PER_WORK} bytes of the "
    "status: request fewer or smaller values, or split the work",
    Limit.MANIFEST_RESULTS: f"messages and feedback values of the manifest take more than {RESULT_BYTES_PER_MANIFEST} "
    "bytes of the status: request fewer or smaller values",
    Limit.VALUE: f"the value takes more than {RESULT_BYTES_PER_VALUE} bytes of the status: request a part of it",
}


class BudgetExceeded(Exception):
    """An evaluation exceeded a limit; the text names the limit and the remedy."""

    def __init__(self, limit: Limit) -> None:
        super().__init__(_LIMITS[limit])
        self.limit = limit


class Budget:
    """Steps that may still be taken, under one limit."""

    __slots__ = ("_exceeded", "_limit", "_manifest_results", "_paid", "_results", "_steps", "_whole", "steps_left")

    def __init__(self, steps: int = STEPS_PER_WORK, *, limit: Limit = Limit.WORK) -> None:
        self._steps = steps
        self.steps_left = steps
        self._limit = limit
        self._exceeded: list[Limit] = []
        self._paid: set[str] = set()
        self._whole: Budget | None = None
        self._results = [RESULT_BYTES_PER_WORK]
        self._manifest_results = [RESULT_BYTES_PER_MANIFEST]

    @property
    def steps_taken(self) -> int:
        """The steps taken so far."""
        return self._steps - max(self.steps_left, 0)

    @property
    def exceeded(self) -> frozenset[Limit]:
        """The limits that this budget or a part of it exceeded."""
        return frozenset(self._exceeded)

    def spend(self, steps: int) -> None:
        """Charge steps; raise if the limit is reached."""
        self.steps_left -= steps
        if self.steps_left < 0:
            raise self._exceed(self._limit)

    def spend_once(self, name: str, steps: int) -> None:
        """Charge something that is cached for a while, such as a compiled pattern."""
        if name in self._paid:
            return
        if len(self._paid) >= _PAID_MAX:
            self._paid.clear()
        self._paid.add(name)
        self.spend(steps)

    def keep(self, text: str, *, name: str = "") -> str:
        """Charge a result that stays in the status, with its name, and return it.

        Its size is that of the encoded text, which may be six times as long.
        """
        self.spend(text_steps(len(text) + len(name)))
        size = _RESULT_BYTES + status_hash.escaped_length(text) + status_hash.escaped_length(name)
        escaping = (size - len(text)) // _ESCAPED_BYTES_PER_STEP
        self.spend(escaping)
        if size > RESULT_BYTES_PER_VALUE:
            # The others are kept, and what was spent is counted: no pause has to follow.
            raise BudgetExceeded(Limit.VALUE)
        if size > self._manifest_results[0]:
            raise self._exceed(Limit.MANIFEST_RESULTS)
        if size > self._results[0]:
            raise self._exceed(Limit.RESULTS)
        self.spend(size // _RESULT_BYTES_PER_STEP + escaping)
        self._manifest_results[0] -= size
        self._results[0] -= size
        return text

    def manifest(self) -> "Budget":
        """Return the budget of one manifest, to be used in a `with` block."""
        part = self._part(STEPS_PER_MANIFEST, Limit.MANIFEST)
        part._manifest_results = [RESULT_BYTES_PER_MANIFEST]
        return part

    def expression(self) -> "Budget":
        """Return the budget of one expression, to be used in a `with` block."""
        part = self._part(STEPS_PER_EXPRESSION, Limit.EXPRESSION)
        part.steps_left -= _EXPRESSION_STEPS
        return part

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Charge what was spent to the budget that this one is a part of."""
        if self._whole is not None:
            self._whole.steps_left -= self.steps_taken

    def _part(self, steps: int, limit: Limit) -> "Budget":
        part = Budget(steps, limit=limit) if steps <= self.steps_left else Budget(self.steps_left, limit=self._limit)
        part._whole, part._exceeded, part._results = self, self._exceeded, self._results
        part._manifest_results = self._manifest_results
        return part

    def _exceed(self, limit: Limit) -> BudgetExceeded:
        self._exceeded.append(limit)
        return BudgetExceeded(limit)


def text_steps(length: int) -> int:
    """Return the steps to copy, compare or scan a string of this length."""
    return length // 256


def slow_text_steps(length: int) -> int:
    """Return the steps to convert a string of this length character by character."""
    return length // 8


def search_steps(text: str, part: str) -> int:
    """Return the steps to search `text` for `part`."""
    length = len(text)
    if length >= _LINEAR_SEARCH_MIN:
        return text_steps(length + len(part))
    # Python compares short strings part by part, which is slow for periodic ones.
    return text_steps(length) + length * min(len(part), 100) // 500


def spend_value(value: Any, budget: Budget) -> None:
    """Charge every node of a value, before it is walked in full."""
    pending = [value]
    while pending:
        budget.spend(1)
        current = pending.pop()
        if isinstance(current, str):
            budget.spend(text_steps(len(current)))
        elif isinstance(current, Mapping):
            budget.spend(len(current) // 4)
            pending.extend(current.values())
        elif isinstance(current, list):
            budget.spend(len(current) // 4)
            pending.extend(current)
