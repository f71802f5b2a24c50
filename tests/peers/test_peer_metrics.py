"""Dashboards and alerts made for the Go server find it all on ours: the same metrics, kinds and labels."""

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.parser import text_string_to_metric_families

from maestropy.server.telemetry.metrics import Metrics
from tests.peers import peer_build, peer_postgres
from tests.peers.peer_clients import Agent, WorkClient, rest
from tests.peers.peer_servers import RunningServer, go_server, python_server
from tests.peers.test_peer_work_client import config_map_work, wait_available, wait_gone

# Those that an older Go server lacks, or shows only with a message broker.
OF_NEWER_GO = {
    *("spec_controller_undelivered_resources_republished", "spec_controller_stale_delete_events_reconciled"),
    *("cloudevents_received", "cloudevents_sent", "cloudevents_client_reconnected"),
    *("resource_first_status_latency_seconds", "resources_spec_resync_duration_seconds"),
    *("resource_status_event_processing_latency_seconds", "spec_controller_event_oldest_unreconciled_age_seconds"),
    "postgres_notification_queue_usage",
}
PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

# What a Go program says about its language and its library; the page of differences names them.
OF_THE_LANGUAGE = ("go_", "promhttp_", "process_network_", "process_virtual_memory_max_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a query depends on."""

    kind: str
    labels: frozenset[str]


def families(server: RunningServer) -> Mapping[str, Family]:
    with urllib.request.urlopen(server.metrics_url, timeout=10) as answer:
        text = answer.read().decode()
    return {
        family.name: Family(
            kind=family.type,
            labels=frozenset(label for sample in family.samples for label in sample.labels) - {"le", "quantile"},
        )
        for family in text_string_to_metric_families(text)
        if not family.name.startswith(OF_THE_LANGUAGE)
    }


def after_a_life(server: RunningServer, programs: peer_build.Programs, folder: Path) -> Mapping[str, Family]:
    """Return the metrics of a server on which a work has lived and died."""
    rest(server, "POST", "/consumers", {"name": "c1"})
    with (
        WorkClient(programs, server, source="s", log=folder / "client.log") as client,
        Agent(programs, server, cluster="c1", log=folder / "agent.log"),
    ):
        client.create("c1", config_map_work("w"))
        wait_available(client, "c1", "w", generation=1)
        client.delete("c1", "w")
        wait_gone(client, "c1", "w")
        return families(server)


def declared_by_us() -> list[Metric]:
    registry = CollectorRegistry()
    Metrics(registry)
    return list(registry.collect())


def test_every_metric_of_the_go_server_is_there(
    programs: peer_build.Programs, newest_maestro: Path, postgres: peer_postgres.Cluster, tmp_path: Path
) -> None:
    found = {}
    for kind in ("go", "python"):
        folder = tmp_path / kind
        folder.mkdir()
        database = postgres.create(f"metrics_{kind}")
        running = (
            go_server(programs, database=database, folder=folder, program=newest_maestro)
            if kind == "go"
            else python_server(database=database, folder=folder)
        )
        with running as server:
            found[kind] = after_a_life(server, programs, folder)
    assert found["go"], "the Go server tells nothing"
    different = {
        name: (wanted, found["python"].get(name))
        for name, wanted in found["go"].items()
        if found["python"].get(name) != wanted
    }
    assert not different, "\n".join(f"{name}: {pair}" for name, pair in different.items())
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith("| metrics of the server |")]
    named = {name.removesuffix("_total") for name in re.findall(r"`(\w+)`", line)}
    # Delete recovery is of September 2026.
    ours = {name for name in found["python"] if not name.startswith("delete_recovery_")}
    assert ours - set(found["go"]) - OF_NEWER_GO <= named
    declared = {family.name for family in declared_by_us()}
    assert named <= declared, "the page names metrics that do not exist"
