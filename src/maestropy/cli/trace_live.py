"""Draw one request while it happens: on a terminal the waterfall as it grows, elsewhere a line per stage."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from maestropy.cli import running, trace_selection
from maestropy.cli.trace_follow import Sources, Turn, turns, until
from maestropy.trace.output import Exit, printable
from maestropy.trace.request import waterfall
from maestropy.trace.request.codes import STAGES
from maestropy.trace.request.document import pods
from maestropy.trace.request.inputs import Environment
from maestropy.trace.request.model import Options, Stage, State, Trace, Verdict
from maestropy.trace.request.stream import GRACE, is_final
from maestropy.trace.request.words import clock, span

_TOLD = frozenset({State.OK, State.FAILED})
_HANDLED = 6
"""The place of the stage in which the server takes the status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which request, and for how long."""

    identifiers: tuple[str, ...] = ()
    """None: the newest of all."""
    is_next: bool = False
    """Only one that comes after now."""
    timeout: float = 60.0
    options: Options = field(default_factory=Options)


def live(sources: Sources, wanted: Wanted) -> int:
    """Draw until the request is complete or has failed for good, or the time is up."""
    return running.run(lambda stop: _live(sources, wanted, stop=stop))


async def _live(sources: Sources, wanted: Wanted, *, stop: running.Stop) -> int:
    drawing = _Drawing() if sys.stdout.isatty() else _Lines()
    seen: Trace | None = None
    past = 0.0
    is_waiting_told = False

    def on_turn(turn: Turn) -> bool:
        nonlocal seen, past, is_waiting_told
        known = turn.streams.known
        if turn.is_history and wanted.is_next:
            past = known.end
        elif seen is None and not is_waiting_told and not turn.is_history:
            is_waiting_told = True
            drawing.wait(", ".join(wanted.identifiers) or "a request")
        fitting = [
            each
            for each in turn.streams.changed()
            if _fits(each, wanted) and each.start > past and (seen is None or _is_same(each, seen))
        ]
        if fitting and not (turn.is_history and wanted.is_next):
            seen = max(fitting, key=lambda each: each.start)
            drawing.show(seen, known)
        if seen is not None and _is_over(seen, end=known.end, options=wanted.options):
            drawing.finish(seen, known)
            return True
        return turn.passed >= wanted.timeout

    with drawing:
        await until(stop, turns(sources, wanted.options, on_turn=on_turn, tell=_tell))
    return _code(seen, wanted)


def _is_over(seen: Trace, *, end: float, options: Options) -> bool:
    """Say whether nothing more is to come: a failure that the server was told of is not waited out."""
    is_reported = seen.verdict is Verdict.FAILED and seen.stages[_HANDLED].state is State.OK
    return is_final(seen, end=end, patience=GRACE if is_reported else options.stage_timeout)


def _code(seen: Trace | None, wanted: Wanted) -> int:
    if seen is None:
        what = ", ".join(wanted.identifiers) or "any request"
        sys.stderr.write(f"Error: no record of {what} within {wanted.timeout:g} s; check the name, or give --timeout\n")
        return Exit.NOT_FOUND
    if seen.verdict is Verdict.PENDING:
        sys.stderr.write(f"{waterfall.outcome(seen)}; it is still under way\n")
    return trace_selection.exit_code([seen])


def _tell(text: str) -> None:
    sys.stderr.write(f"-- {text}\n")


def _fits(trace: Trace, wanted: Wanted) -> bool:
    key = trace.key
    names = {key.resource, key.work_name, key.op, key.ce}
    return not wanted.identifiers or all(each in names for each in wanted.identifiers)


def _is_same(trace: Trace, seen: Trace) -> bool:
    """Say whether it is the request that is drawn; what is known of it grows, where it begins stays."""
    one, other = trace.key, seen.key
    return one.resource == other.resource and one.action == other.action and trace.start <= seen.start


class _Lines:
    """A line for each stage when it is seen."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        return

    def wait(self, what: str) -> None:
        """Say what is waited for."""
        _tell(f"waiting for {what}")

    def show(self, trace: Trace, known: Environment) -> None:
        """Write what is new."""
        if not self._told:
            sys.stdout.write(waterfall.headline(trace).splitlines()[0] + "\n")
        for stage in trace.stages:
            if stage.state in _TOLD:
                self._tell(stage, known)
        sys.stdout.flush()

    def finish(self, trace: Trace, known: Environment) -> None:
        """Write what became of the other stages, the verdict, and why."""
        for stage in trace.stages:
            self._tell(stage, known)
        sys.stdout.write(f"Verdict  {waterfall.outcome(trace)}\n" + _why(trace, known))

    def _tell(self, stage: Stage, known: Environment) -> None:
        if stage.number in self._told:
            return
        self._told.add(stage.number)
        hop = f"+{span(stage.hop)}" if stage.hop is not None else ""
        said = (
            f"{clock(stage.first) or ' ' * 12}  {stage.number} {STAGES[stage.number][1]:<23}  {stage.state.value:<12}"
        )
        where = ", ".join(pods(stage.hits, known))
        sys.stdout.write(f"{said}  {hop:>9}  {printable(where)}  {printable(stage.note)}".rstrip() + "\n")


class _Drawing:
    """The waterfall, redrawn in its place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live: Any = Live(console=self._console, refresh_per_second=10, transient=False)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def wait(self, what: str) -> None:
        """Say what is waited for."""
        self._draw(f"waiting for {what}")

    def show(self, trace: Trace, known: Environment) -> None:
        """Draw it anew."""
        self._draw("\n".join([waterfall.headline(trace), "", *waterfall.stages(trace, known)]))

    def finish(self, trace: Trace, known: Environment) -> None:
        """Draw it for the last time, with why."""
        text = "\n".join([waterfall.headline(trace), "", *waterfall.stages(trace, known), ""])
        self._draw(text + "\n" + _why(trace, known))

    def _draw(self, text: str) -> None:
        from rich.text import Text

        drawn = Text(text, no_wrap=True, overflow="ellipsis")
        drawn.highlight_regex(r"(?m)^Verdict  COMPLETE.*$", "bold green")
        drawn.highlight_regex(r"(?m)^Verdict  (FAILED|STOPPED).*$", "bold red")
        drawn.highlight_regex(r"\b(FAILED|MISSING)\b", "red")
        drawn.highlight_regex(r"\bok\b", "green")
        drawn.highlight_regex(r"=+[|X]", "cyan")
        drawn.highlight_regex(r"\bpending\b", "dim")
        self._live.update(drawn, refresh=True)


def _why(trace: Trace, known: Environment) -> str:
    lines: Iterable[str] = (line for each in trace.findings for line in waterfall.finding_lines(each, known, trace))
    return "".join(f"{line}\n" for line in lines)
