"""Start a real `maestro mcp` and ask it with the client of the official SDK."""

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from maestropy.mcp import answers
from maestropy.sandbox.fleet import Fleet

PROMISED = 4_000


def environment(running: Fleet, home: Path) -> dict[str, str]:
    """Write a configuration with everything that the fleet has, and return the variables that select it."""
    clusters = ",".join(f"{consumer}={path}" for consumer, path in running.kubeconfigs.items())
    values = {
        "rest-url": running.api_url,
        "db-dsn": str(running.dsn),
        "mgmt-kubeconfig": clusters,
        "logs": str(running.folder),
    }
    return configured(home, values)


def configured(home: Path, values: Mapping[str, str]) -> dict[str, str]:
    """Write a configuration with one environment, and return the variables that select it."""
    folder = home / "config" / "maestropy"
    folder.mkdir(parents=True, exist_ok=True)
    document = {"current": "test", "environments": {"test": dict(values)}}
    (folder / "config.yaml").write_text(json.dumps(document), encoding="utf-8")
    known = {name: value for name, value in os.environ.items() if not name.startswith("MAESTRO_")}
    return {**known, "XDG_CONFIG_HOME": str(home / "config")}


class Asking:
    """A session with a server; every answer is checked to be bounded."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def right(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a tool."""
        answer, is_error = await self.ask(name, arguments)
        assert not is_error, answer
        return answer

    async def wrong(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a tool, which has a remedy."""
        answer, is_error = await self.ask(name, arguments)
        assert is_error, answer
        assert answer["remedy"], answer
        return answer

    async def ask(self, name: str, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return what a tool says, and whether it is an error."""
        result = await self.client.call_tool(name, arguments)
        (content,) = result.content
        text = content.text  # type: ignore[union-attr]
        assert answers.tokens(text) < PROMISED
        assert "Traceback" not in text
        return json.loads(text), bool(result.is_error)


@asynccontextmanager
async def stdio(*flags: str, environ: Mapping[str, str]) -> AsyncIterator[Asking]:
    """Start a server on standard input and output."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "maestropy", "mcp", *flags], env=dict(environ))
    async with Client(command) as client:
        yield Asking(client)
