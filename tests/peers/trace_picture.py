"""Draws a trace as a picture for the documentation: one bar for each span, as trace viewers show it."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.peers.browser import browser

COLOURS = {"maestro-client": "#8250df", "maestro": "#0969da", "maestro-agent": "#1a7f37"}
BRIDGE = "#bf8700"
PAGE = """<!doctype html><html data-ready><meta charset="utf-8"><style>
body {{ font: 14px system-ui, sans-serif; margin: 24px; color: #1f2328; background: #fff }}
h1 {{ font-size: 16px; margin: 0 0 4px }} p {{ color: #59636e; margin: 0 0 16px }}
.row {{ display: grid; grid-template-columns: 330px 120px 1fr 80px; align-items: center; height: 30px;
        border-top: 1px solid #d1d9e0 }}
.bar {{ height: 14px; border-radius: 3px; min-width: 2px }} .ms {{ text-align: right; color: #59636e }}
</style><h1>{title}</h1><p>{subtitle}</p>{rows}"""


def page(spans: Sequence[dict[str, Any]]) -> str:
    """Return the page of a chain of spans, in their order."""
    begin = min(int(span["startTimeUnixNano"]) for span in spans)
    length = max(int(span["endTimeUnixNano"]) for span in spans) - begin
    rows = []
    for depth, span in enumerate(spans):
        start, end = int(span["startTimeUnixNano"]) - begin, int(span["endTimeUnixNano"]) - begin
        colour = BRIDGE if span["name"] == "agent without traces" else COLOURS[span["service"]]
        bar = f"margin-left:{100 * start / length:.2f}%;width:{100 * (end - start) / length:.2f}%;background:{colour}"
        rows.append(
            f'<div class="row"><span style="padding-left:{depth * 14}px">{html.escape(span["name"])}</span>'
            f"<span>{html.escape(span['service'])}</span><div><div class=bar style='{bar}'></div></div>"
            f'<span class="ms">{(end - start) / 1e6:.1f} ms</span></div>'
        )
    subtitle = f"{len(spans)} spans, {length / 1e6:.0f} ms, op-id {spans[0]['facts']['op-id']}"
    title = f"Trace {spans[0]['traceId']}"
    return PAGE.format(title=title, subtitle=html.escape(subtitle), rows="".join(rows))


async def draw(spans: Sequence[dict[str, Any]], folder: Path, picture: Path) -> None:
    """Write the picture of a chain of spans."""
    shown = folder / "trace.html"
    shown.write_text(page(spans))
    profile = folder / "browser"
    profile.mkdir()
    async with browser(profile, width=1160, height=120 + 31 * len(spans)) as tab:
        await tab.open(shown)
        await tab.picture(picture)
