"""Write into docs/mcp.md what the tools answer in a session with a real `maestro mcp` and a real fleet.

    python scripts/record_mcp.py

The page holds the session between `<!-- session -->` and `<!-- end of session -->`. `tests/stack/test_docs_mcp.py`
fails when the tools answer something else.
"""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from maestropy import Work
from maestropy.testing import RunningFleet, running_fleet
from maestropy.trace.output import yaml_text

PAGE = Path(__file__).parents[1] / "docs" / "mcp.md"
_SESSION = re.compile(r"(?<=<!-- session -->\n).*?(?=<!-- end of session -->)", re.DOTALL)
_SHOWN_ITEMS = 1
_MOST_TRIES = 300
TEAPOT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Teapot",
    "metadata": {"name": "pot", "namespace": "default"},
}


def shown(page: str) -> str:
    """Return the session that the page shows."""
    found = _SESSION.search(page)
    return found[0] if found else ""


def session() -> str:
    """Run a fleet with a work that its cluster rejects, and return the session about it."""
    with running_fleet("cluster1") as fleet, fleet.maestro("shop") as maestro:
        maestro.works("cluster1").apply(Work("teapot").add(TEAPOT))
        return asyncio.run(_session(fleet))


async def _session(fleet: RunningFleet) -> str:
    flags = ["--rest-url", fleet.api_url, "--logs", str(fleet.folder)]
    command = StdioServerParameters(command=sys.executable, args=["-m", "maestropy", "mcp", *flags])
    async with Client(command) as client:
        stuck = await _until(client, "stuck", {}, "groups")
        identifier = {"identifier": "teapot"}
        traced = await _until(client, "trace_request", identifier, "failed")
        failed = next(stage for stage in traced["items"][0]["stages"] if stage["state"] == "failed")
        record = failed["evidence"][0]
        parts = [_turn("stuck", {}, stuck)]
        parts.append(_turn("trace_request", identifier, traced))
        around = {"evidence": record, "before": 0, "after": 0}
        parts.append(_turn("logs_around", around, await _answer(client, "logs_around", around)))
        absent = {"work": "no-such-work"}
        parts.append(_turn("trace_work", absent, await _answer(client, "trace_work", absent)))
    return "\n".join(parts).replace(fleet.api_url, "http://127.0.0.1:8000").replace(str(fleet.folder), "$LOGS")


async def _until(client: Client, name: str, arguments: dict[str, Any], state: str) -> dict[str, Any]:
    """Ask until something is wrong: the agent needs a moment to try, and to report."""
    for _ in range(_MOST_TRIES):
        answer = await _answer(client, name, arguments)
        if answer.get(state) or state in answer.get("verdicts", ()):
            return answer
        await asyncio.sleep(0.1)
    raise TimeoutError(f"{name} does not show {state}")


async def _answer(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    text = result.content[0].text  # type: ignore[union-attr]
    answer: dict[str, Any] = json.loads(text)
    return answer


def _turn(name: str, arguments: Mapping[str, Any], answer: dict[str, Any]) -> str:
    """Return one call and its answer, of which the page shows the first items only."""
    items = answer.get("items", [])
    model = {key: value for key, value in answer.items() if key != "notice"}
    if len(items) > _SHOWN_ITEMS:
        model["items"] = items[:_SHOWN_ITEMS]
    call = ", ".join(f"{key}={json.dumps(value)}" for key, value in arguments.items())
    return f"`{name}({call})`\n\n```yaml\n{yaml_text(model)}```\n"


def main() -> None:
    """Record the page."""
    page = PAGE.read_text(encoding="utf-8")
    text = session()
    PAGE.write_text(_SESSION.sub(lambda _: f"\n{text}\n", page), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")


if __name__ == "__main__":
    main()
