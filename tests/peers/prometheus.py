"""Runs Prometheus and promtool for tests: on a loopback port of its own, with its data in the test's folder.

Where the programs are missing and we may install them, Debian's package is taken; its service is not started.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.peers.peer_processes import end, free_ports, mortal, tail
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "rules" / "maestropy.rules.yaml"
_EVERY = "500ms"


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`; skips the test when there is none."""
    found = shutil.which(name) or _installed(name)
    if found is None:
        pytest.skip(f"{name} is needed: `apt-get install prometheus`, or put the program on the PATH")
    return found


def _installed(name: str) -> str | None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    # RUNLEVEL=1 keeps the package from starting its service.
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    command = ["apt-get", "install", "-y", "--no-install-recommends", "prometheus"]
    subprocess.run(command, env=quiet, capture_output=True, check=False, timeout=120)
    return shutil.which(name)


def promtool(*arguments: str | Path) -> str:
    """Run promtool and return its output; fails the test if it fails."""
    command = [program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something to scrape."""

    job: str
    address: str
    secure: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Prometheus:
    """A running Prometheus."""

    url: str
    log: Path

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression yields now."""
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=10)
        body = answer.json()
        assert body["status"] == "success", f"{expression}: {body}"
        return list(body["data"]["result"])

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that fire."""
        listed = httpx.get(f"{self.url}/api/v1/alerts", timeout=10).json()["data"]["alerts"]
        return [alert for alert in listed if alert["state"] == "firing"]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self.alerts()}

    def targets_up(self) -> int:
        """Return how many targets answer."""
        return len(self.query("up == 1"))


def impatient(rules: str, folder: Path, *, changes: Mapping[str, tuple[str, str]] | None = None) -> Path:
    """Write a copy of rules whose alerts fire at once; `changes` replaces a text in the expression of an alert."""
    document = yaml.safe_load(rules)
    pending = dict(changes or {})
    for group in document["groups"]:
        for rule in group["rules"]:
            rule["for"] = "1s"
            before, after = pending.pop(rule["alert"], ("", ""))
            assert before in rule["expr"]
            rule["expr"] = rule["expr"].replace(before, after) if before else rule["expr"]
    assert not pending, f"no such alerts: {pending}"
    path = folder / f"impatient-{len(list(folder.glob('impatient-*')))}.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@contextlib.contextmanager
def prometheus(folder: Path, targets: Sequence[Target], rules: Sequence[Path] = ()) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes and evaluates twice a second."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    config = {
        "global": {"scrape_interval": _EVERY, "scrape_timeout": _EVERY, "evaluation_interval": _EVERY},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [
            {
                "job_name": f"{target.job}-{number}",
                "scheme": "https" if target.secure else "http",
                "tls_config": {"insecure_skip_verify": True},
                "static_configs": [{"targets": [target.address], "labels": dict(target.labels)}],
            }
            for number, target in enumerate(targets)
        ],
    }
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    log = folder / "prometheus.log"
    command = [
        *(*mortal(), program("prometheus"), f"--config.file={folder / 'prometheus.yaml'}"),
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    running = Prometheus(url=f"http://127.0.0.1:{port}", log=log)

    def answers() -> bool:
        assert process.poll() is None, f"Prometheus ended:\n{tail(log)}"
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{running.url}/-/ready", timeout=2).status_code == 200
        return False

    try:
        wait_for(answers, what="Prometheus to be ready")
        yield running
    finally:
        end(process)
