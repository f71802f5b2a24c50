"""Runs a real OpenTelemetry collector (built from collector/main.go) for tests.

It receives OTLP over HTTP, and its file exporter writes JSON lines.
"""

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers import go_build
from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

RECIPE = go_build.Recipe(
    title="the OpenTelemetry collector",
    duration="several minutes",
    module=Path(__file__).parent / "collector",
    packages=(".",),
    place="collector",
)
CONFIG = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  file:
    path: {export}
    flush_interval: 100ms
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      exporters: [file]
"""


@dataclass(frozen=True, kw_only=True)
class Collector:
    port: int
    export: Path

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables that a chart passes to a process."""
        return {
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }

    def spans(self) -> list[dict[str, Any]]:
        """Return what was exported so far; each span has the name of its service."""
        lines = self.export.read_text().splitlines() if self.export.exists() else []
        return [
            {**span, "service": attributes_of(group["resource"])["service.name"], "facts": attributes_of(span)}
            for line in lines
            # The last line may be half written.
            if line.endswith("]}")
            for group in json.loads(line)["resourceSpans"]
            for scope in group["scopeSpans"]
            for span in scope["spans"]
        ]


def attributes_of(described: dict[str, Any]) -> dict[str, str]:
    return {entry["key"]: str(next(iter(entry["value"].values()), "")) for entry in described.get("attributes", [])}


@contextlib.contextmanager
def collector(folder: Path) -> Iterator[Collector]:
    """Run a collector; skips the test where it cannot be built."""
    try:
        built = go_build.built(RECIPE, print)
    except go_build.Unavailable as reason:
        pytest.skip(str(reason))
    folder.mkdir(parents=True, exist_ok=True)
    running = Collector(port=free_ports(1)[0], export=folder / "traces.json")
    config, log = folder / "collector.yaml", folder / "collector.log"
    config.write_text(CONFIG.format(port=running.port, export=running.export))
    with log.open("wb") as output:
        command = [*mortal(), str(built / "collector"), "--config", str(config)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def listens() -> bool:
        assert process.poll() is None, f"the collector ended:\n{tail(log)}"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", running.port), timeout=1):
            return True
        return False

    try:
        wait_for(listens, what="the collector to listen")
        yield running
    finally:
        end(process)
