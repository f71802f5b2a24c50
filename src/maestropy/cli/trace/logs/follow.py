"""Follow logs while they are written (files and pods) and print verdicts when they become final."""

import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.aio.tasks import TaskOwner
from maestropy.cli import lifecycle, screen
from maestropy.trace.follow import FollowedLogs, Poll, poll_logs
from maestropy.trace.logs.model import Options, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.logs.selection import RequestFilter
from maestropy.trace.output import Exit
from maestropy.trace.report import json_model, verdict_changes

_SUMMARY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How followed requests are selected and reported."""

    select: RequestFilter
    options: Options
    is_json: bool = False
    seconds: float = 0.0
    """0: until Ctrl-C."""


def requests(sources: FollowedLogs, options: Following) -> int:
    """Print every request when its verdict becomes final, until the time is up or Ctrl-C; then the summary."""
    return lifecycle.run(lambda stop: _requests(sources, options, stop=stop))


async def _requests(sources: FollowedLogs, options: Following, *, stop: lifecycle.Stop) -> int:
    changes = verdict_changes.VerdictChanges(timeout=options.options.stage_timeout)
    screen = _Screen()
    is_past_told = False
    environment = Environment(writers=(), broker="unknown", subscription="unknown", instances=0)

    def notify(trace: Trace) -> None:
        screen.line(_json(trace, environment) if options.is_json else verdict_changes.line(trace))

    def on_poll(poll: Poll) -> bool:
        nonlocal is_past_told, environment
        traces = [trace for trace in poll.streams.changed() if options.select.matches(trace)]
        environment = poll.streams.environment
        past = changes.summary()
        fresh = changes.take(traces, end=environment.end)
        if not poll.is_history and not is_past_told:
            is_past_told = True
            screen.note(f"before: {past}")
        for trace in () if poll.is_history else fresh:
            notify(trace)
        screen.status(changes.summary(), passed=poll.passed)
        return bool(options.seconds) and poll.passed >= options.seconds

    with screen:
        await until(stop, poll_logs(sources, options.options, on_poll=on_poll, notify=screen.note))
    for failed in changes.remaining_failures():
        notify(failed)
    screen.note(changes.summary())
    return Exit.PROBLEM if changes.has_problems else Exit.HEALTHY


async def until(stop: lifecycle.Stop, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends or a stop is requested; raise its error unchanged."""
    task_owner = TaskOwner()
    try:
        task_owner.start("follow logs", work)
        task_owner.start("wait for the end", stop.wait())
        await task_owner.wait()
    finally:
        await task_owner.stop()


def _json(trace: Trace, environment: Environment) -> str:
    return orjson.dumps(json_model.trace_model(trace, environment)).decode()


class _Screen:
    """Lines on standard output, notes on standard error; on a terminal with a running summary below them."""

    def __init__(self) -> None:
        self._console: Any = None
        self._status: Any = None
        self._last = 0.0
        self._parsed = ""

    def __enter__(self) -> None:
        if screen.can_draw(sys.stderr) and screen.can_draw(sys.stdout):
            from rich.console import Console

            self._console = Console(highlight=False, markup=False, soft_wrap=True)
            self._status = self._console.status("waiting for requests")
            self._status.start()

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def line(self, text: str) -> None:
        if self._status is not None:
            self._console.print(text)
            return
        screen.write(f"{text}\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        if self._status is not None:
            self._console.print(f"-- {text}", style="dim")
            return
        screen.write_error(f"-- {text}\n")

    def status(self, text: str, *, passed: float) -> None:
        if self._status is not None:
            self._status.update(text)
        elif passed - self._last >= _SUMMARY_SECONDS and text != self._parsed:
            self._last, self._parsed = passed, text
            self.note(text)
