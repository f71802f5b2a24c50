"""Apply many works with a bounded number of requests at once, and say how far it is.

A work that cannot be applied does not end the others. A failure that every work would have, such as a server that is
unavailable or rejects the token, does: the remaining works are not begun, because each of them would only wait for its
own retries.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from maestropy.sdk import errors
from maestropy.sdk.work import Work

_COMMON_TO_ALL = (errors.ConfigError, errors.Unauthorized, errors.Unavailable, errors.Timeout)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of `apply`."""

    operation: Literal["created", "updated", "unchanged"]
    work: Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far `apply_many` is."""

    done: int
    """The works that were applied or have failed."""
    total: int
    failed: int
    last: Work
    """The work that was just applied, or has just failed."""


@dataclass(frozen=True, slots=True)
class FailedWork:
    """A work that was not applied, and why."""

    work: Work
    error: errors.MaestroError


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedMany:
    """The result of `apply_many`, each part in the order of the works."""

    applied: tuple[Applied, ...]
    failed: tuple[FailedWork, ...]
    not_begun: tuple[Work, ...]
    """Works that were not tried, because the failure of another one would have been theirs too."""

    @property
    def is_complete(self) -> bool:
        """Whether all works were applied."""
        return not self.failed and not self.not_begun

    def raise_for_failures(self) -> None:
        """Raise the first failure; the message says how many there are."""
        if not self.failed:
            return
        first = self.failed[0]
        remaining = f", {len(self.not_begun)} were not tried" if self.not_begun else ""
        count = len(self.failed) + len(self.applied) + len(self.not_begun)
        kind = type(first.error)
        # The count comes first: without `doing` no sentence about one work stands before it.
        raise kind(
            f"{len(self.failed)} of {count} works were not applied{remaining}; the first is "
            f"{first.work.consumer or '-'}/{first.work.name}: {first.error.reason}",
            advice=first.error.advice,
            operation_id=first.error.operation_id,
        ) from first.error


OnProgress = Callable[[Progress], object]


async def apply_many(
    works: Sequence[Work],
    apply: Callable[[Work], Awaitable[Applied]],
    *,
    concurrency: int,
    on_progress: OnProgress | None,
) -> AppliedMany:
    """Apply `works`, at most `concurrency` at once."""
    if not isinstance(concurrency, int) or concurrency < 1:
        raise errors.Invalid(f"concurrency is {concurrency}", advice="use 1 or more")
    run = _Run(works, apply, on_progress)
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(min(concurrency, len(works))):
                group.create_task(run.work(), name=f"apply-many-{number}")
    except BaseExceptionGroup as group_of_errors:
        # Failures of works are results: what is raised is the exception of the caller's own callback.
        raise group_of_errors.exceptions[0] from None
    return run.result()


class _Run:
    """The state that the tasks of one call share."""

    def __init__(
        self, works: Sequence[Work], apply: Callable[[Work], Awaitable[Applied]], on_progress: OnProgress | None
    ) -> None:
        self._works = works
        self._apply = apply
        self._on_progress = on_progress
        self._next: Iterator[tuple[int, Work]] = iter(enumerate(works))
        self._results: dict[int, Applied | FailedWork] = {}
        self._failed = 0
        self._is_ended = False

    async def work(self) -> None:
        """Apply works until none is left."""
        while not self._is_ended:
            numbered = next(self._next, None)
            if numbered is None:
                return
            number, work = numbered
            self._results[number] = await self._outcome(work)
            if self._on_progress is not None:
                done, total = len(self._results), len(self._works)
                self._on_progress(Progress(done=done, total=total, failed=self._failed, last=work))

    async def _outcome(self, work: Work) -> Applied | FailedWork:
        try:
            return await self._apply(work)
        except errors.MaestroError as error:
            self._failed += 1
            self._is_ended = self._is_ended or isinstance(error, _COMMON_TO_ALL)
            return FailedWork(work, error)

    def result(self) -> AppliedMany:
        """Return what was applied, in the order of the works."""
        ordered = [self._results[number] for number in sorted(self._results)]
        return AppliedMany(
            applied=tuple(item for item in ordered if isinstance(item, Applied)),
            failed=tuple(item for item in ordered if isinstance(item, FailedWork)),
            not_begun=tuple(work for number, work in enumerate(self._works) if number not in self._results),
        )
