"""How large must servers and agents be: the table of docs/sizing.md, computed from the published measurements.

    python -m bench.sizing

writes it; a test fails when the page shows something else than what `bench/peers.json` and `bench/storm.json` say.
"""

import math
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench import figures

FOLDER = Path(__file__).parent
PAGE = FOLDER.parent / "docs" / "sizing.md"
BEGIN, END = "<!-- sizes: written by `python -m bench.sizing` -->", "<!-- end of sizes -->"
HEARTBEAT_SECONDS = 10.0
"""The default of --heartbeat-check-interval, at which a connected agent costs something."""
COLUMNS = (
    "agents",
    "works of each",
    "resources",
    "changes a second",
    "cores of all servers",
    "processes",
    "memory of each, MB",
    "memory of an agent, MB",
    "all agents back, s",
)
USED = 0.5
"""The part of a core that a process may use in the busiest second: the rest is for bursts and for a lost instance."""
CONNECTIONS = 10_000
"""The default of --grpc-max-connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A measured cost of one thing, and where it comes from."""

    what: str
    value: float
    unit: str
    figure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What an installation has to carry."""

    agents: int
    works: int
    """Of each agent."""
    changes: float
    """Changed works in the busiest second; each has `statuses` status updates."""
    statuses: int = 3


FLEETS = (
    Fleet(agents=10, works=100, changes=1),
    Fleet(agents=100, works=500, changes=15),
    Fleet(agents=200, works=1_000, changes=60),
    Fleet(agents=1_000, works=200, changes=60),
    Fleet(agents=1_000, works=1_000, changes=300),
    Fleet(agents=10_000, works=100, changes=300),
)


def units() -> dict[str, Unit]:
    """Return the measured costs by name."""
    peers, storm = (figures.read(FOLDER / name)["measures"] for name in ("peers.json", "storm.json"))

    def of_peers(measure: str, figure: str, what: str, unit: str) -> Unit:
        value = statistics.median(peers[measure][figure]["python"])
        return Unit(what=what, value=value, unit=unit, figure=f"`peers.json`: {figure}")

    def of_storm(figure: str, what: str, unit: str) -> Unit:
        value = storm[figure]["1000"]["python"]
        return Unit(what=what, value=value, unit=unit, figure=f"`storm.json`: {figure}")

    return {
        "change": of_peers(
            "deliveries", "create and deliver, server CPU ms each", "a change, stored and delivered", "ms of CPU"
        ),
        "status": of_peers(
            "statuses", "statuses to 1 subscriber, server CPU ms each", "a status, stored and sent", "ms of CPU"
        ),
        "heartbeat": of_storm("connected, server CPU us for a heartbeat", "a heartbeat to an agent", "µs of CPU"),
        "return": of_storm(
            "one server is killed, server CPU ms each", "an agent that comes back in a storm", "ms of CPU"
        ),
        "idle": of_peers("creates", "server memory idle, MB", "a server process without load", "MB"),
        "connected": of_storm("memory of a server per agent, KB", "a connected agent", "KB of the server"),
        "storm": of_storm(
            "one server is killed, memory gained per agent KB", "an agent more, in a storm", "KB of the server"
        ),
        "agent": of_peers("bursts", "agent memory after these bursts, MB", "an agent with a few works", "MB"),
        "agent1000": of_peers(
            "agents", "agent: memory with 1000 works of 3 to 30 KB, MB", "an agent with 1,000 works", "MB"
        ),
        "apply": of_peers(
            "agents", "agent: 120 works of 3 KB, agent CPU ms each", "a work, applied and reported", "ms of the agent"
        ),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a fleet needs."""

    cores: float
    """Of all servers together, in the busiest second."""
    processes: int
    server_mb: float
    """Of each process, when it takes the agents of one that was lost."""
    agent_mb: float
    back_seconds: float
    """Until all agents are back after all servers were away, by CPU alone."""


def size(fleet: Fleet, cost: Mapping[str, Unit]) -> Size:
    """Return what a fleet needs by the formulas of the page."""
    per_change = cost["change"].value + fleet.statuses * cost["status"].value
    beats = fleet.agents / HEARTBEAT_SECONDS * cost["heartbeat"].value / 1000
    cores = (fleet.changes * per_change + beats) / 1000
    working = max(1, math.ceil(cores / USED), math.ceil(fleet.agents / CONNECTIONS))
    agents_each = fleet.agents / working
    per_agent = cost["connected"].value + cost["storm"].value
    works_mb = (cost["agent1000"].value - cost["agent"].value) * fleet.works / 1000
    return Size(
        cores=cores,
        processes=working + 1,
        server_mb=cost["idle"].value + agents_each * per_agent / 1000,
        agent_mb=cost["agent"].value + works_mb,
        back_seconds=fleet.agents * cost["return"].value / 1000 / (working + 1),
    )


def section() -> str:
    """Return the two tables of the page."""
    cost = units()
    lines = ["| cost | measured | figure |", "|---|--:|---|"]
    lines += [f"| {each.what} | {figures.shown(each.value)} {each.unit} | {each.figure} |" for each in cost.values()]
    lines += [
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'--:|' * len(COLUMNS)}",
    ]
    for fleet in FLEETS:
        needs = size(fleet, cost)
        cells = (
            f"{fleet.agents:,}",
            f"{fleet.works:,}",
            f"{fleet.agents * fleet.works:,}",
            f"{fleet.changes:g}",
            f"{needs.cores:.2f}",
            f"{needs.processes}",
            f"{needs.server_mb:.0f}",
            f"{needs.agent_mb:.0f}",
            f"{needs.back_seconds:.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def written(page: str) -> str:
    """Return the page with the tables of now."""
    begin, end = re.escape(BEGIN), re.escape(END)
    return re.sub(f"{begin}.*?{end}", lambda _: f"{BEGIN}\n\n{section()}\n\n{END}", page, flags=re.DOTALL)


def main() -> None:
    """Write the tables into the page."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
