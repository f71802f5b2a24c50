"""Draw the hops as a diagram: Mermaid for Markdown, an HTML page with SVG for a browser. Pure."""

from collections.abc import Iterator
from html import escape

from maestropy.journal import redact
from maestropy.trace.hcp.model import HcpVerdict, HopReport, HopState, Walk, since_text
from maestropy.trace.output import printable

_COLOURS = {HopState.OK: "#2e7d32", HopState.BEHIND: "#b26a00", HopState.BAD: "#c62828", HopState.UNKNOWN: "#757575"}
_ARROWS = (
    ("frontend", "backend"),
    ("backend", "clusters-service"),
    ("clusters-service", "shard"),
    ("clusters-service", "maestro"),
    ("maestro", "agent"),
    ("agent", "works"),
    ("works", "hosted-cluster"),
    ("works", "managed-cluster"),
    ("hosted-cluster", "control-plane"),
    ("hosted-cluster", "node-pools"),
)
_GRID = {
    "frontend": (0, 0),
    "backend": (1, 0),
    "clusters-service": (2, 0),
    "shard": (3, 1),
    "maestro": (3, 0),
    "agent": (4, 0),
    "works": (5, 0),
    "hosted-cluster": (6, 0),
    "managed-cluster": (6, 1),
    "control-plane": (7, 0),
    "node-pools": (7, 1),
}
_WIDTH, _HEIGHT, _GAP = 130, 44, 24


def mermaid(walk: Walk) -> str:
    """Return a flowchart, each hop in the colour of its state."""
    shown = {hop.name: hop for hop in walk.hops}
    lines = ["flowchart LR"]
    lines += [f'  {_id(name)}["{name}<br/>{hop.state.value}"]:::{hop.state.value}' for name, hop in shown.items()]
    lines += [f"  {_id(one)} --> {_id(other)}" for one, other in _ARROWS if one in shown and other in shown]
    lines += [
        f"  classDef {state.value} fill:{colour},color:#fff,stroke:{colour}" for state, colour in _COLOURS.items()
    ]
    if walk.verdict.hop in shown and walk.verdict.state is not HopState.OK:
        lines.append(f"  style {_id(walk.verdict.hop)} stroke:#000,stroke-width:4px")
    return "\n".join(lines) + "\n"


def reasons(verdict: HcpVerdict) -> Iterator[tuple[str, str, list[str]]]:
    """Yield what a verdict rests on: a heading, a short label, and an entry for each reason."""
    yield "Evidence", "evidence", [f"{evidence.where}: {evidence.says}" for evidence in verdict.evidence]
    yield "Contradictions", "contradicts", [f"{conflict.code} {conflict.says}" for conflict in verdict.contradictions]
    recreations = [
        f"{recreation.who}: {recreation.what}, because {recreation.because}" for recreation in verdict.recreations
    ]
    yield "Who would re-create what", "re-creates", recreations


def page(walk: Walk) -> str:
    """Return a page that needs nothing else: the picture, the verdict, and every hop to unfold."""
    verdict = walk.verdict
    title = escape(walk.context.known.arm.name if walk.context.known.arm else walk.context.known.cid)
    parts = [f"<p class=verdict style='border-color:{_COLOURS[verdict.state]}'>"]
    parts += [f"<b>{verdict.state.value} at {escape(verdict.hop)} {verdict.code}</b><br>{_text(verdict.reason)}</p>"]
    for name, _, entries in (*reasons(verdict), ("Next", "next", verdict.next)):
        if entries:
            parts.append(f"<h2>{name}</h2><ul>{''.join(f'<li>{_text(entry)}</li>' for entry in entries)}</ul>")
    parts += [_details(walk, hop) for hop in walk.hops]
    style = (
        "body{font:14px system-ui;margin:2em;max-width:1300px}table{border-collapse:collapse}"
        "td,th{border-bottom:1px solid #ccc;padding:2px 8px;text-align:left;vertical-align:top}"
        ".verdict{border-left:6px solid;padding-left:1em;font-size:16px}summary{cursor:pointer;padding:3px}"
    )
    head = f"<!doctype html><html lang=en><meta charset=utf-8><title>HCP {title}</title><style>{style}</style>"
    return f"{head}<h1>HCP {title}</h1>{svg(walk)}{''.join(parts)}</html>\n"


def svg(walk: Walk) -> str:
    """Return the flow as SVG."""
    shown = {hop.name: hop for hop in walk.hops if hop.name in _GRID}
    width, height = 8 * (_WIDTH + _GAP), 2 * (_HEIGHT + _GAP)
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="100%" role="img" aria-label="flow of the hosted control plane">'
    ]
    parts += [_line(one, other) for one, other in _ARROWS if one in shown and other in shown]
    parts += [_box(hop, is_blocking=hop.name == walk.verdict.hop) for hop in shown.values()]
    return "".join(parts) + "</svg>"


def _box(report: HopReport, *, is_blocking: bool) -> str:
    x, y = _corner(report.name)
    edge = ' stroke="#000" stroke-width="3"' if is_blocking and report.state is not HopState.OK else ""
    return (
        f'<g><title>{_text(report.reason)}</title><rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{_COLOURS[report.state]}"{edge}/><text x="{x + _WIDTH / 2}" y="{y + 19}" fill="#fff" font-size="13" '
        f'text-anchor="middle">{report.name}</text><text x="{x + _WIDTH / 2}" y="{y + 35}" fill="#fff" font-size="11" '
        f'text-anchor="middle">{report.state.value}{", waits" if report.waits else ""}</text></g>'
    )


def _line(one: str, other: str) -> str:
    (x1, y1), (x2, y2) = _corner(one), _corner(other)
    middle = _HEIGHT / 2
    return f'<line x1="{x1 + _WIDTH}" y1="{y1 + middle}" x2="{x2}" y2="{y2 + middle}" stroke="#555" stroke-width="2"/>'


def _corner(name: str) -> tuple[int, int]:
    column, row = _GRID[name]
    return 4 + column * (_WIDTH + _GAP), 4 + row * (_HEIGHT + _GAP)


def _details(walk: Walk, report: HopReport) -> str:
    rows = "".join(
        f"<tr><td>{_text(fact.name)}<td>{_text(fact.value)}<td>{since_text(walk.context.age(fact.since)) or '-'}"
        f"<td>{_text(fact.where)}"
        for fact in report.facts
    )
    notes = "".join(f"<p>{_text(note)}</p>" for note in report.notes)
    table = f"<table><tr><th>fact<th>value<th>age<th>source{rows}</table>" if rows else ""
    label = f"<b style='color:{_COLOURS[report.state]}'>{report.state.value}</b> {report.name}: {_text(report.reason)}"
    return f"<details><summary>{label}</summary>{table}{notes}</details>"


def _text(value: str) -> str:
    return escape(printable(redact.text(value)))


def _id(name: str) -> str:
    return name.replace("-", "_")
