"""Results for people: the table of a terminal, the section of the page, the picture. Everything comes from the JSON."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import figures

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "images" / "performance.png"
BEGIN, END = "<!-- figures: written by `make bench-peers` -->", "<!-- end of figures -->"

TITLES = {
    "creates": "Creating works",
    "sdk": "Creating works with the Go SDK",
    "lists": "Lists over REST",
    "deliveries": "From publish to the agent",
    "statuses": "Statuses",
    "resync": "Resync over gRPC",
    "reconnect": "All agents reconnect at once",
    "bursts": "Server and agent on a real API server",
    "agents": "The agents, each behind our server",
    "mosquitto": "Through Mosquitto",
    "mosquitto-resync": "Resync through Mosquitto",
}

PLOTTED = (
    ("creates", "create 3 KB, 64 clients, creates/s"),
    ("creates", "create 30 KB, 64 clients, creates/s"),
    ("creates", "create 3 KB, 64 clients, server CPU ms each"),
    ("deliveries", "publish to agent, p50 ms"),
    ("statuses", "statuses to 1 subscriber, told to all/s"),
    ("statuses", "statuses to 50 subscribers, told to all/s"),
    ("lists", "list 600 bundles, ms"),
    ("lists", "list 6,000 bundles, ms"),
    ("resync", "resync of 5,000 works, ms"),
    ("mosquitto-resync", "resync of 10,000 works through Mosquitto, ms"),
    ("reconnect", "reconnect of 1,000 agents, until all are in sync ms"),
    ("reconnect", "reconnect of 1,000 agents, server CPU ms each"),
    ("mosquitto", "through Mosquitto, 1 instance, works/s"),
    ("mosquitto", "through Mosquitto, 1 instance, publish to status of a work alone p50 ms"),
    ("bursts", "burst of 20, publish to first status p50 ms"),
    ("bursts", "burst of 50, publish to first status p50 ms"),
    ("bursts", "burst of 100, publish to first status p50 ms"),
    ("agents", "agent: change on the cluster to client, p50 ms"),
    ("creates", "server memory after these creates, MB"),
    ("bursts", "agent memory after these bursts, MB"),
)


def table(document: Mapping[str, Any]) -> Table:
    """Return everything as a table of a terminal."""
    made = Table(title="maestropy beside the Go Maestro on one machine", title_justify="left")
    made.add_column("measure", overflow="fold")
    for column in ("ours", "Go", "ours/Go", "ours is"):
        made.add_column(column, justify="right", no_wrap=True)
    for measure, runs in _in_order(document):
        for row in figures.rows(measure, runs):
            made.add_row(row.name, *_cells(row))
        made.add_section()
    return made


def _in_order(document: Mapping[str, Any]) -> list[tuple[str, figures.Runs]]:
    """Return the measures in the order of their titles, however a result was put together."""
    order = [*TITLES]
    found = document["measures"].items()
    return sorted(found, key=lambda item: order.index(item[0]) if item[0] in order else len(order))


def _cells(row: figures.Row) -> tuple[str, str, str, str]:
    return figures.shown(row.python), figures.shown(row.go), figures.shown(row.ratio), row.verdict


def section(document: Mapping[str, Any]) -> str:
    """Return the generated part of the page."""
    parts = [_conditions(document), "![how many times better ours is](images/performance.png)"]
    for measure, runs in _in_order(document):
        lines = [f"### {TITLES.get(measure, measure)}", ""]
        lines += ["| measure | ours | Go | ours/Go | ours is |", "|---|--:|--:|--:|---|"]
        lines += [f"| {row.name} | {' | '.join(_cells(row))} |" for row in figures.rows(measure, runs)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _conditions(document: Mapping[str, Any]) -> str:
    rounds = figures.rounds(document)
    runs = "one run each" if rounds == 1 else f"the middle of up to {rounds} runs, ours and Go's in turn"
    busy = f" Other work went on meanwhile (load {document['load']:.0f})." if document["load"] > 1 else ""
    return (
        f"Measured {document['when'][:10]} on {document['cores']} cores with Python {document['python']},\n"
        f"PostgreSQL {document['postgres']} and Go Maestro `{document['go_maestro']}`:\n{runs}.{busy}"
    )


def write_page(document: Mapping[str, Any], page: Path = PAGE) -> None:
    """Put the generated part between its markers; nothing else of the page is touched."""
    text = page.read_text()
    between = re.compile(re.escape(BEGIN) + r".*?" + re.escape(END), re.DOTALL)
    if not between.search(text):
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}; put them where the figures shall stand")
    page.write_text(between.sub(lambda _: f"{BEGIN}\n\n{section(document)}\n\n{END}", text))


def draw(document: Mapping[str, Any], picture: Path = PICTURE) -> bool:
    """Draw how many times better ours is; says whether it could."""
    try:
        import matplotlib as mpl  # noqa: PLC0415 -- only the picture needs it
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 -- after the choice of a backend without a screen

    rows = _plotted(document)
    if not rows:
        return False
    values = [row.advantage or 1 for row in rows]
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(rows) + 1.2), dpi=100)
    places = range(len(rows), 0, -1)
    bars = axes.barh(places, [value - 1 for value in values], left=1, height=0.62)
    for bar, value in zip(bars, values, strict=True):
        bar.set_color("#2f7d4f" if value >= 1 else "#b5483a")
    for place, row, value in zip(places, rows, values, strict=True):
        axes.text(max(value, 1) * 1.06, place, _label(row), va="center", fontsize=8, color="#333333")
    axes.set_yticks(list(places), [row.name for row in rows], fontsize=8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _place: f"{value:g}")
    axes.axvline(1, color="#333333", linewidth=0.8)
    axes.set_xlim(min(0.5, *values) * 0.8, max(values) * 12)
    axes.set_xlabel("times better than the Go Maestro (ours | Go)", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout()
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, metadata={"Software": ""})
    plt.close(figure)
    return True


def _plotted(document: Mapping[str, Any]) -> Sequence[figures.Row]:
    known = {(row.measure, row.name): row for row in figures.all_rows(document)}
    return [known[key] for key in PLOTTED if key in known and known[key].advantage is not None]


def _label(row: figures.Row) -> str:
    factor = row.advantage or 1
    shown = f"{factor:.1f}" if factor < 100 else f"{factor:,.0f}"
    return f"{shown} x   ({figures.shown(row.python)} | {figures.shown(row.go)})"
