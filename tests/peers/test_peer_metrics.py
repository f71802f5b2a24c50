"""Dashboards and alerts made for the Go server find it all on ours: the same metrics, kinds and labels."""

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import peer_build
import peer_postgres
import pytest
from peer_clients import Agent, WorkClient, rest
from peer_servers import RunningServer, go_server, python_server
from prometheus_client.parser import text_string_to_metric_families
from test_peer_work_client import config_map_work, wait_available, wait_gone

pytestmark = [pytest.mark.peers, pytest.mark.timeout(180)]

# What a Go program says about itself.
OF_THE_LANGUAGE = ("go_", "process_", "promhttp_")


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


def test_every_metric_of_the_go_server_is_there(
    programs: peer_build.Programs, postgres: peer_postgres.Cluster, tmp_path: Path
) -> None:
    found = {}
    for kind in ("go", "python"):
        folder = tmp_path / kind
        folder.mkdir()
        database = postgres.create(f"metrics_{kind}")
        running = (
            go_server(programs, database=database, folder=folder)
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
