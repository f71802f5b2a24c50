"""Writes what a full run of the matrix found as a page for people; pure but for reading versions."""

import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from tests.peers import go_build, kube_build, mosquitto, peer_build, pubsub_emulator
from tests.peers.matrix import combination
from tests.peers.matrix.matrix_report import PASSED, Row
from tests.upstream import results

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"

HEAD = """# Compatibility with the Go Maestro

At the end of this page you know which clients, servers, agents and brokers of both kinds were run together.
Every client on every server with every agent over gRPC and MQTT, and every server with every agent over Pub/Sub: twenty
combinations on one PostgreSQL, one real Kubernetes API server, one Mosquitto and one Pub/Sub emulator (Google's
`pstest`), each through the same scenario. `make compatibility` runs them and writes this page; `make test-peers` runs
them without writing. What differs on purpose is listed in [differences.md](differences.md).
"""

WHY_THESE = """Why these versions:

- Go Maestro: the Go module proxy serves this version and refuses all later ones and the list of versions ("This module
  version is not available"). A checkout of a newer one in the cache is used where there is one; the suites below were
  run with it.
- Kubernetes: the tests are pinned to v1.36.3, the newest version that the proxy serves (`tests/peers/kube/go.mod`); the
  table has the version of the last whole run.
- OCM's suite below is v1.2.1, the version that the newest checkout of Maestro requires. The proxy also serves v1.3.1,
  but Go's checksum database does not know it, so that Go rejects it; and its suite has no MQTT any more.
"""

TITLES = {"grpc": "gRPC", "mqtt": "MQTT (Mosquitto)", "pubsub": "Google Pub/Sub (emulator)"}

NOTES = """## How it is run

- Sources prove themselves by certificate and are reviewed by Kubernetes (mTLS, `/sources/<source>`); agents and servers
  prove themselves by certificate to each other or to Mosquitto. REST is plain.
- *agent down and back*: one work is updated, one deleted and one created meanwhile. *server down and back*: an object
  on the cluster changes meanwhile. *certificate rotated*: an expired certificate is refused, then replaced without a
  restart.
- Over MQTT a Go server does not get what a Go agent reported while the server was away: it asks for statuses on the
  topic of the consumer's ID, and the agent listens on that of its name. There the object changes once more afterwards.
- The Go programs wait 5 s before they reconnect, then up to two minutes. In these runs they reconnect at once (one
  variable of the Go SDK is set); nothing else about them is changed.
- A deletion that meets a status on its way is lost by the Go agent; the scenario deletes when that agent is quiet. Our
  server sends such deletions again until they end.

## What else is shown

| question | where |
|---|---|
| Maestro's own end-to-end cases, on both servers and both agents | `tests/peers/matrix/test_e2e_cases.py` |
| an upgrade from Go to Python part by part, and back, over either broker | `tests/peers/matrix/test_upgrade.py` |
| agents that take over from each other twice without touching what runs | `tests/peers/test_agent_takeover.py` |
| one Go and one Python server on one database and broker, under load | `tests/peers/test_mixed_replicas.py` |
| the same requests to both servers, compared field by field | `tests/peers/differential` |
| deletions that a Go agent forgets, behind our server, either broker | `tests/peers/matrix/test_lost_deletions.py` |
| the tracer on logs that Go programs wrote | `tests/peers/matrix/test_trace_requests_real.py` |
"""


def page(rows: Sequence[Row], *, versions: Mapping[str, str]) -> str:
    """Return the page for these rows."""
    steps = list(rows[0].outcomes)
    notes = list(dict.fromkeys(text for row in rows for text in row.outcomes.values() if text != PASSED))
    return "\n".join(
        [
            HEAD,
            "## Versions\n",
            "| part | version |",
            "|---|---|",
            *(f"| {name} | {version} |" for name, version in versions.items()),
            "",
            WHY_THESE,
            *_table(rows, steps, notes=notes),
            *(f"{number}. {text}" for number, text in enumerate(notes, 1)),
            "",
            NOTES.rstrip(),
            "",
        ]
    )


def _table(rows: Sequence[Row], steps: Sequence[str], *, notes: Sequence[str]) -> list[str]:
    lines = []
    for broker in combination.BROKERS:
        chosen = [row for row in rows if row.players.broker == broker]
        heads = [f"{row.players.client}<br>{row.players.server}<br>{row.players.agent}" for row in chosen]
        lines += [
            f"## Over {TITLES[broker]}\n",
            f"| client<br>server<br>agent | {' | '.join(heads)} |",
            f"|---{'|---' * len(chosen)}|",
        ]
        for step in steps:
            cells = [_cell(row.outcomes[step], notes=notes) for row in chosen]
            lines.append(f"| {step} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _cell(outcome: str, *, notes: Sequence[str]) -> str:
    return "yes" if outcome == PASSED else f"{outcome.partition(':')[0]} ({notes.index(outcome) + 1})"


def versions(*, postgres: Path) -> dict[str, str]:
    """Return the versions of all parts."""
    return {
        "maestropy": f"{metadata.version('maestropy')}, Python {platform.python_version()}",
        "Go Maestro": peer_build.maestro_version(),
        "its sdk-go": go_build.pinned_version(peer_build.MODULE, "open-cluster-management.io/sdk-go"),
        "its work agent (ocm)": go_build.pinned_version(peer_build.MODULE, "open-cluster-management.io/ocm"),
        "kube-apiserver": kube_build.VERSION,
        "PostgreSQL": told_by([str(postgres), "--version"]).rpartition(" ")[2],
        "Pub/Sub emulator": go_build.pinned_version(pubsub_emulator.RECIPE.module, "cloud.google.com/go/pubsub/v2"),
        "Mosquitto": told_by([mosquitto.program(), "-h"]).rpartition(" ")[2],
    }


def told_by(command: list[str]) -> str:
    """Return the first line a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).splitlines()[0].strip()


def write(rows: Sequence[Row], *, postgres: Path) -> None:
    """Write the page, if the run was a whole one."""
    newest = {row.players: row for row in rows}
    missing = [str(each) for each in combination.ALL if each not in newest]
    assert not missing, f"docs/compatibility.md is written by whole runs only; missing: {missing}"
    text = page([newest[each] for each in combination.ALL], versions=versions(postgres=postgres))
    suites = results.section_of(PAGE.read_text())
    PAGE.write_text(results.put_section(text, suites) if suites else text)
