"""Follow the logs of files and pods while they are written, and judge the requests in them again and again."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import TaskOwner, wait_for_first
from maestropy.trace.access import pod_logs
from maestropy.trace.logs import file_tails
from maestropy.trace.logs.log_streams import GRACE, LogStreams, is_final
from maestropy.trace.logs.model import Options, RequestVerdict, StageState, Trace

_TICK: Final = 0.2
_QUIET: Final = 0.25
"""Seconds after which a record without continuation is complete."""
_FILE_HISTORY: Final = 0.8
_POD_HISTORY: Final = 2.0
"""Seconds in which files and pods deliver older records, and their last requests become final."""
_SINCE: Final = 300
_HANDLED: Final = 6
"""The index of the stage in which the server handles the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedLogs:
    """What is followed."""

    paths: Sequence[Path] = ()
    components: Sequence[pod_logs.ComponentPods] = ()

    def followers(self, sink: file_tails.Sink, *, notify: Callable[[str], None]) -> list[Coroutine[Any, Any, None]]:
        files = [file_tails.follow(self.paths, sink)] if self.paths else []
        return files + [
            pod_logs.follow(component, sink, notify=notify, since_seconds=_SINCE) for component in self.components
        ]

    @property
    def history_seconds(self) -> float:
        """Seconds until older records are read."""
        return _POD_HISTORY if self.components else _FILE_HISTORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One poll of the followed logs."""

    streams: LogStreams
    passed: float
    """Seconds since the start."""
    is_history: bool


async def poll_logs(
    sources: FollowedLogs, options: Options, *, on_poll: Callable[[Poll], bool], notify: Callable[[str], None]
) -> None:
    """Poll the logs until `on_poll` returns true; raise the error of a failed source."""
    clock = Clock()
    streams = LogStreams(options=options)
    began = clock.monotonic()

    def sink(name: str, data: bytes) -> None:
        streams.feed(name, data, now=clock.monotonic(), moment=clock.epoch())

    async with AsyncExitStack() as stack:
        task_owner = TaskOwner()
        stack.push_async_callback(task_owner.stop)
        for work in sources.followers(sink, notify=notify):
            task_owner.start("follow", work)
        is_first = True
        while True:
            await wait_for_first([task_owner.wait(), asyncio.sleep(_TICK)])
            task_owner.check()
            now = clock.monotonic()
            # What was there before is whole already: nothing of it waits for another line.
            streams.settle(now=now, timeout=0.0 if is_first else _QUIET)
            passed = now - began
            poll = Poll(streams=streams, passed=passed, is_history=is_first or passed < sources.history_seconds)
            if on_poll(poll):
                return
            streams.drop_settled(keep=4 * options.stage_timeout)
            is_first = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTarget:
    """Which request is followed, and for how long."""

    identifiers: tuple[str, ...] = ()
    """None: the newest of all."""
    is_next: bool = False
    """Only a request that starts from now on."""
    timeout: float = 60.0
    options: Options = field(default_factory=Options)

    def fits(self, trace: Trace) -> bool:
        key = trace.key
        names = {key.resource, key.work_name, key.op_id, key.cloudevent_id}
        return all(identifier in names for identifier in self.identifiers)


class LiveRequest:
    """One request as the logs show it so far."""

    def __init__(self, target: LiveTarget) -> None:
        self._target = target
        self._past = 0.0
        self.trace: Trace | None = None
        """The request, once any record of it was seen."""

    def take(self, poll: Poll) -> bool:
        """Look at new records; return whether they tell more of the request."""
        is_past = poll.is_history and self._target.is_next
        if is_past:
            self._past = poll.streams.environment.end
        fitting = [trace for trace in poll.streams.changed() if self._is_it(trace)]
        if not fitting or is_past:
            return False
        self.trace = max(fitting, key=lambda trace: trace.start)
        return True

    def _is_it(self, trace: Trace) -> bool:
        return self._target.fits(trace) and trace.start > self._past and (
            self.trace is None or _is_same(trace, self.trace)
        )  # fmt: skip

    def is_over(self, poll: Poll) -> bool:
        """Say whether no more records are expected: a failure that the server knows is not waited for."""
        trace = self.trace
        if trace is None:
            return False
        is_reported = trace.verdict is RequestVerdict.FAILED and trace.stages[_HANDLED].state is StageState.OK
        timeout = GRACE if is_reported else self._target.options.stage_timeout
        return is_final(trace, end=poll.streams.environment.end, timeout=timeout)


def _is_same(trace: Trace, before: Trace) -> bool:
    """Say whether it is the request seen before; its key may grow, its start does not change."""
    one, other = trace.key, before.key
    return one.resource == other.resource and one.action == other.action and trace.start <= before.start
