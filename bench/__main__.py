"""`python -m bench`: run the measures against both servers and print them side by side.

The load comes from one Go program for both (tests/peers/go/cmd/load), so the generator weighs the same on each; server,
generator and PostgreSQL share this machine. Each server gets a fresh database with fsync on. A figure is one run:
repeat before believing a small difference.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

for folder in ("tests/peers", "tests"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / folder))

import peer_build
import peer_postgres
import peer_servers

from bench import agents, measures

NAMES = (*measures.ALL, "agents")

RESULTS = Path(__file__).resolve().parent / "results"


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", default="", help=f"comma separated: {', '.join(NAMES)}")
    parser.add_argument("--server", default="python,go", help="which servers, comma separated: python, go")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the load; 0.2 for a quick look")
    given = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    try:
        programs = peer_build.programs(console.print)
    except Exception as error:  # whatever is missing here, the person should read it and not a traceback
        console.print(f"bench needs Go for its load generator and for the peer: {error}")
        return 1
    wanted = [name for name in given.only.split(",") if name] or list(NAMES)
    found: dict[str, dict[str, float]] = {}
    for kind in given.server.split(","):
        for name in wanted:
            with console.status(f"{kind}: {name}"):
                for measure, value in _measure(programs, kind, name, scale=given.scale).items():
                    found.setdefault(measure, {})[kind] = value
    Console(width=None if sys.stdout.isatty() else 120).print(_table(found))
    _write(found)
    return 0


def _measure(programs: peer_build.Programs, kind: str, name: str, *, scale: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="pymaestro-bench-") as folder:
        place = Path(folder)
        with peer_postgres.cluster(place, durable=True) as cluster:
            database = cluster.create("bench")
            if kind == "go" and name != "agents":
                serving = peer_servers.go_server(programs, database=database, folder=place, flags=["--v=1"])
            else:
                serving = peer_servers.python_server(database=database, folder=place, flags=["-v=1"])
            with serving as server:
                if name == "agents":
                    return agents.run(programs, kind, server=server, folder=place, scale=scale)
                return measures.ALL[name](measures.Bench(programs=programs, server=server, folder=place, scale=scale))


def _table(found: dict[str, dict[str, float]]) -> Table:
    table = Table(title="pymaestro and the Go Maestro on one machine", title_justify="left")
    table.add_column("measure")
    table.add_column("python", justify="right")
    table.add_column("go", justify="right")
    table.add_column("python is", justify="right")
    for measure, by_kind in found.items():
        python, go = by_kind.get("python"), by_kind.get("go")
        table.add_row(measure, _figure(python), _figure(go), _ratio(measure, python, go))
    return table


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def _ratio(measure: str, python: float | None, go: float | None) -> str:
    if not python or not go:
        return "-"
    is_rate = measure.endswith("/s")
    factor = python / go if is_rate else go / python
    word = (
        ("faster" if factor >= 1 else "slower") if not measure.endswith("MB") else ("less" if factor >= 1 else "more")
    )
    return f"{max(factor, 1 / factor):.1f} x {word}"


def _write(found: dict[str, dict[str, float]]) -> None:
    RESULTS.mkdir(exist_ok=True)
    document = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "go_maestro": peer_build.maestro_version(),
        "measures": found,
    }
    path = RESULTS / f"{document['when'].replace(':', '')}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    sys.stderr.write(f"written to {path}\n")


if __name__ == "__main__":
    sys.exit(main())
