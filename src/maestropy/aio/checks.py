"""Run named checks with a time limit each, and write their results as text.

A check never raises: what fails or does not answer in time becomes a result that says so. The text of `verbose` has the
form of the Kubernetes API server's `/readyz?verbose`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, unique


@unique
class Outcome(Enum):
    """The result of a check; the value is for people and for JSON."""

    OK = "ok"
    WARNING = "warning"
    """It works, and somebody should look at it."""
    FAILED = "failed"
    NOT_SEEN = "not seen"
    """It could not be checked; the detail says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check."""

    name: str
    outcome: Outcome
    detail: str = ""
    """What was found."""
    remedy: str = ""
    """What to change; empty if there is nothing to do."""


def ok(name: str, detail: str = "") -> Check:
    """Return the result of a check that succeeded."""
    return Check(name=name, outcome=Outcome.OK, detail=detail)


def failed(name: str, detail: str, *, remedy: str = "") -> Check:
    """Return the result of a check that failed."""
    return Check(name=name, outcome=Outcome.FAILED, detail=detail, remedy=remedy)


def warning(name: str, detail: str, *, remedy: str = "") -> Check:
    """Return the result of a check that found something to look at."""
    return Check(name=name, outcome=Outcome.WARNING, detail=detail, remedy=remedy)


def not_seen(name: str, detail: str, *, remedy: str = "") -> Check:
    """Return the result of a check that could not be made."""
    return Check(name=name, outcome=Outcome.NOT_SEEN, detail=detail, remedy=remedy)


async def bounded(
    name: str, run: Callable[[], Awaitable[Sequence[Check]]], *, seconds: float, remedy: str = ""
) -> Sequence[Check]:
    """Run checks for at most `seconds`; one that does not answer, or fails unexpectedly, is a failed check `name`."""
    try:
        async with asyncio.timeout(seconds):
            return await run()
    except TimeoutError:
        return [failed(name, f"no answer within {seconds:g} s", remedy=remedy)]
    except Exception as error:  # noqa: BLE001 - one broken check must not hide the results of the others
        return [failed(name, f"{type(error).__name__}: {error}", remedy=remedy)]


def verbose(checks: Iterable[Check], *, title: str) -> str:
    """Return one line for each check and a last line with the verdict."""
    lines, is_failed = [], False
    for check in checks:
        is_failed = is_failed or check.outcome is Outcome.FAILED
        mark = {Outcome.OK: "+", Outcome.FAILED: "-"}.get(check.outcome, "!")
        detail = f": {check.detail}" if check.detail else ""
        lines.append(f"[{mark}]{check.name} {check.outcome.value}{detail}")
    return "\n".join([*lines, f"{title} check {'failed' if is_failed else 'passed'}", ""])


def has_failed(checks: Iterable[Check]) -> bool:
    """Return whether a check failed."""
    return any(check.outcome is Outcome.FAILED for check in checks)
