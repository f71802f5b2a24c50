"""The walk on the practice fleet: real server, real agent, real bundles, every scenario."""

from pathlib import Path

import pytest

from tests.stack.hcp_walks import TIMEOUT_SECONDS, walked

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("scenario", "hop", "code", "words"),
    [
        ("healthy", "node-pools", "HCP-000", "every hop is where it should be"),
        ("etcd", "hosted-cluster", "HCP-701", "etcd-1, etcd-2 are not ready"),
        ("undelivered", "maestro", "HCP-402", "has had no status"),
        ("deletion", "hosted-cluster", "HCP-705", "held by hypershift.openshift.io/finalizer"),
        ("contradiction", "hosted-cluster", "HCP-701", "EtcdWaitingForQuorum"),
    ],
)
def test_scenario(scenario: str, hop: str, code: str, words: str, tmp_path: Path) -> None:
    told = walked(tmp_path, scenario, *(["--watch"] if scenario == "healthy" else []))
    states = {each["name"]: (each["state"], each["reason"]) for each in told["hops"]}
    assert (told["verdict"]["hop"], told["verdict"]["code"]) == (hop, code), states
    assert words in told["verdict"]["reason"]
    assert told["code"] == (0 if scenario == "healthy" else 1)
    assert told["seconds"] < TIMEOUT_SECONDS, "no request waited for its timeout"
    if scenario == "contradiction":
        assert "HCP-013" in {contradiction["code"] for contradiction in told["verdict"]["contradictions"]}
    if scenario == "deletion":
        assert told["verdict"]["deleting"]
    if scenario == "etcd":
        assert states["agent"][0] == states["works"][0] == states["maestro"][0] == "ok"
