"""Draw one request while it happens: the growing waterfall on a terminal, otherwise one line per stage."""

import sys
from collections.abc import Iterable
from typing import Any

from maestropy.cli import lifecycle, screen
from maestropy.cli.trace.logs.follow import until
from maestropy.trace.follow import FollowedLogs, LiveRequest, LiveTarget, Poll, poll_logs
from maestropy.trace.logs.model import RequestVerdict, StageResult, StageState, Trace
from maestropy.trace.logs.read.log_writers import Environment
from maestropy.trace.logs.selection import exit_code
from maestropy.trace.output import Exit, printable
from maestropy.trace.report import waterfall
from maestropy.trace.report.formatting import clock, span
from maestropy.trace.report.json_model import pods
from maestropy.trace.stages import STAGES

_TOLD = frozenset({StageState.OK, StageState.FAILED})


def live(sources: FollowedLogs, target: LiveTarget) -> int:
    """Draw until the request is complete or has failed for good, or the time is up."""
    return lifecycle.run(lambda stop: _live(sources, target, stop=stop))


async def _live(sources: FollowedLogs, target: LiveTarget, *, stop: lifecycle.Stop) -> int:
    drawing = _Drawing() if screen.can_draw(sys.stdout) else _Lines()
    request = LiveRequest(target)
    is_waiting_told = False

    def on_poll(poll: Poll) -> bool:
        nonlocal is_waiting_told
        if request.trace is None and not is_waiting_told and not poll.is_history:
            is_waiting_told = True
            drawing.wait(", ".join(target.identifiers) or "a request")
        has_changed, environment = request.take(poll), poll.streams.environment
        if has_changed and request.trace is not None:
            drawing.show(request.trace, environment)
        if request.trace is not None and request.is_over(poll):
            drawing.finish(request.trace, environment)
            return True
        return poll.passed >= target.timeout

    with drawing:
        await until(stop, poll_logs(sources, target.options, on_poll=on_poll, notify=_notify))
    return _code(request.trace, target)


def _code(trace: Trace | None, target: LiveTarget) -> int:
    if trace is None:
        subject = ", ".join(target.identifiers) or "any request"
        screen.write_error(
            f"Error: no record of {subject} within {target.timeout:g} s; check the name, or give --timeout\n"
        )
        return Exit.NOT_FOUND
    if trace.verdict is RequestVerdict.PENDING:
        screen.write_error(f"{waterfall.outcome(trace)}; it is still under way\n")
    return exit_code([trace])


def _notify(text: str) -> None:
    screen.write_error(f"-- {text}\n")


class _Lines:
    """A line for each stage when it is seen."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return

    def wait(self, subject: str) -> None:
        """Show what is awaited."""
        _notify(f"waiting for {subject}")

    def show(self, trace: Trace, environment: Environment) -> None:
        """Write what is new."""
        if not self._told:
            screen.write(waterfall.headline(trace).splitlines()[0] + "\n")
        for stage in trace.stages:
            if stage.state in _TOLD:
                self._tell(stage, environment)
        sys.stdout.flush()

    def finish(self, trace: Trace, environment: Environment) -> None:
        """Write the states of the other stages, the verdict and the findings."""
        for stage in trace.stages:
            self._tell(stage, environment)
        screen.write(f"Verdict  {waterfall.outcome(trace)}\n" + _why(trace, environment))

    def _tell(self, stage: StageResult, environment: Environment) -> None:
        if stage.number in self._told:
            return
        self._told.add(stage.number)
        hop = f"+{span(stage.hop)}" if stage.hop is not None else ""
        line = (
            f"{clock(stage.first) or ' ' * 12}  {stage.number} {STAGES[stage.number][1]:<23}  {stage.state.value:<12}"
        )
        pod_names = ", ".join(pods(stage.records, environment))
        screen.write(f"{line}  {hop:>9}  {printable(pod_names)}  {printable(stage.note)}".rstrip() + "\n")


class _Drawing:
    """The waterfall, redrawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live: Any = Live(console=self._console, refresh_per_second=10, transient=False)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def wait(self, subject: str) -> None:
        """Show what is awaited."""
        self._draw(f"waiting for {subject}")

    def show(self, trace: Trace, environment: Environment) -> None:
        """Draw it anew."""
        self._draw("\n".join([waterfall.headline(trace), "", *waterfall.stages(trace, environment)]))

    def finish(self, trace: Trace, environment: Environment) -> None:
        """Draw it for the last time, with why."""
        text = "\n".join([waterfall.headline(trace), "", *waterfall.stages(trace, environment), ""])
        self._draw(text + "\n" + _why(trace, environment))

    def _draw(self, text: str) -> None:
        from rich.text import Text

        drawn = Text(text, no_wrap=True, overflow="ellipsis")
        drawn.highlight_regex(r"(?m)^Verdict  COMPLETE.*$", "bold green")
        drawn.highlight_regex(r"(?m)^Verdict  (FAILED|INCOMPLETE).*$", "bold red")
        drawn.highlight_regex(r"\b(FAILED|MISSING)\b", "red")
        drawn.highlight_regex(r"\bok\b", "green")
        drawn.highlight_regex(r"=+[|X]", "cyan")
        drawn.highlight_regex(r"\bpending\b", "dim")
        self._live.update(drawn, refresh=True)


def _why(trace: Trace, environment: Environment) -> str:
    lines: Iterable[str] = (
        line for finding in trace.findings for line in waterfall.finding_lines(finding, environment, trace)
    )
    return "".join(f"{line}\n" for line in lines)
