"""The MCP inspector, the reference client of the protocol, in its command line mode against a real `maestro mcp`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.peers import npm_packages
from tests.unit.diagnose import archives

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(shutil.which("node") is None, reason="no node is installed; apt-get install nodejs npm"),
]
_PACKAGE = "@modelcontextprotocol/inspector@0.15.0"


def inspected(archive: Path, *flags: str) -> dict[str, Any]:
    """Return what the inspector prints about one request."""
    package = npm_packages.installed(_PACKAGE)
    if package is None:
        pytest.skip(f"npm cannot get {_PACKAGE}")
    program = package / ".bin" / "mcp-inspector"
    command = [str(program), "--cli", sys.executable, "-m", "maestropy", "mcp", "--archive", str(archive), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def test_inspector_lists_and_calls_the_tools(tmp_path: Path) -> None:
    rows = archives.lines(archives.row(1, applied="False", message="denied by a webhook"), archives.row(2))
    archive = archives.of_files(tmp_path / "incident.tar.zst", {"database/rows.jsonl": rows})
    tools = inspected(archive, "--method", "tools/list")["tools"]
    assert len(tools) == 12
    assert all(tool["annotations"]["readOnlyHint"] and tool["inputSchema"]["properties"] for tool in tools)
    call = ("--method", "tools/call", "--tool-name", "trace_work", "--tool-arg", "work=work-1")
    answer = json.loads(inspected(archive, *call)["content"][0]["text"])
    assert answer["code"] == "MW-005"
