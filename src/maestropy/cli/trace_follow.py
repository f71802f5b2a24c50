"""Follow logs while they are written: files that grow, pods that write; tell verdicts as they become final."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from maestropy.aio.clock import Clock
from maestropy.aio.tasks import Crew, first
from maestropy.cli import running, trace_inputs, trace_pods
from maestropy.cli.trace_selection import is_selected
from maestropy.trace.access import podlogs
from maestropy.trace.output import Exit
from maestropy.trace.request import document, news, tails
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Options, Trace
from maestropy.trace.request.stream import Streams

_TICK = 0.2
_QUIET = 0.25
"""Seconds after which a record that nobody continues is whole."""
_FILE_HISTORY, _POD_HISTORY = 0.8, 2.0
"""Seconds in which files and pods bring what they wrote before, and its last requests become final."""
_SINCE = 300
_SUMMARY_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What is followed."""

    paths: tuple[Path, ...] = ()
    pods: trace_pods.Pods = field(default_factory=trace_pods.Pods)

    def works(self, sink: tails.Sink, *, tell: Callable[[str], None]) -> list[Coroutine[Any, Any, None]]:
        """Return what reads them; clusters that cannot be named raise NoAccess at once."""
        found = [tails.follow(self.paths, sink)] if self.paths else []
        if not self.paths or self.pods.is_given:
            places = trace_pods.places(self.pods, environ=os.environ, home=Path.home())
            found += [podlogs.follow(each, sink, tell=tell, since_seconds=_SINCE) for each in places]
        return found

    @property
    def history_seconds(self) -> float:
        """How long what was written before takes to come."""
        return _FILE_HISTORY if self.paths and not self.pods.is_given else _POD_HISTORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One look at everything that was said so far."""

    streams: Streams
    passed: float
    """Seconds since the beginning."""
    is_history: bool


async def turns(
    sources: Sources, options: Options, *, on_turn: Callable[[Turn], bool], tell: Callable[[str], None]
) -> None:
    """Look again and again, until `on_turn` has seen enough; raises what a source failed with."""
    clock = Clock()
    streams = Streams(options=options)
    began = clock.monotonic()

    def sink(name: str, data: bytes) -> None:
        streams.feed(name, data, now=clock.monotonic(), moment=clock.epoch())

    async with AsyncExitStack() as stack:
        crew = Crew()
        stack.push_async_callback(crew.stop)
        for work in sources.works(sink, tell=tell):
            crew.start("follow", work)
        is_first = True
        while True:
            await first([crew.wait(), asyncio.sleep(_TICK)])
            crew.check()
            now = clock.monotonic()
            # What was there before is whole already: nothing of it waits for another line.
            streams.quiet(now=now, patience=0.0 if is_first else _QUIET)
            passed = now - began
            turn = Turn(streams=streams, passed=passed, is_history=is_first or passed < sources.history_seconds)
            if on_turn(turn):
                return
            streams.forget(keep=4 * options.stage_timeout)
            is_first = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """How to tell what is followed."""

    select: trace_inputs.Selection
    options: Options
    is_json: bool = False
    seconds: float = 0.0
    """0: until somebody asks for the end."""


def requests(sources: Sources, asked: Following) -> int:
    """Tell every request as its verdict becomes final, until the time is up or Ctrl-C; then the summary."""
    return running.run(lambda stop: _requests(sources, asked, stop=stop))


async def _requests(sources: Sources, asked: Following, *, stop: running.Stop) -> int:
    told = news.News(patience=asked.options.stage_timeout)
    screen = _Screen()
    is_past_told = False
    known = Environment(writers=(), broker="unknown", subscription="unknown", instances=0)

    def tell(trace: Trace) -> None:
        screen.line(_json(trace, known) if asked.is_json else news.line(trace))

    def on_turn(turn: Turn) -> bool:
        nonlocal is_past_told, known
        traces = [each for each in turn.streams.changed() if is_selected(each, asked.select)]
        known = turn.streams.known
        past = told.summary()
        fresh = told.take(traces, end=known.end)
        if not turn.is_history and not is_past_told:
            is_past_told = True
            screen.note(f"before: {past}")
        for each in () if turn.is_history else fresh:
            tell(each)
        screen.status(told.summary(), passed=turn.passed)
        return bool(asked.seconds) and turn.passed >= asked.seconds

    with screen:
        await until(stop, turns(sources, asked.options, on_turn=on_turn, tell=screen.note))
    for each in told.last():
        tell(each)
    screen.note(told.summary())
    return Exit.PROBLEM if told.has_problems else Exit.HEALTHY


async def until(stop: running.Stop, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` to its end, or until the end is asked for; raises what it failed with, as it is."""
    crew = Crew()
    try:
        crew.start("follow logs", work)
        crew.start("wait for the end", stop.wait())
        await crew.wait()
    finally:
        await crew.stop()


def _json(trace: Trace, known: Environment) -> str:
    return orjson.dumps(document.trace_model(trace, known)).decode()


class _Screen:
    """Lines on standard output, notes on standard error; on a terminal with a running summary below them."""

    def __init__(self) -> None:
        self._console: Any = None
        self._status: Any = None
        self._last = 0.0
        self._said = ""

    def __enter__(self) -> None:
        if sys.stderr.isatty() and sys.stdout.isatty():
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
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        if self._status is not None:
            self._console.print(f"-- {text}", style="dim")
            return
        sys.stderr.write(f"-- {text}\n")

    def status(self, text: str, *, passed: float) -> None:
        if self._status is not None:
            self._status.update(text)
        elif passed - self._last >= _SUMMARY_SECONDS and text != self._said:
            self._last, self._said = passed, text
            self.note(text)
