"""An adapter as a service: events in over HTTP, the answer is the acknowledgement."""

import json
from collections.abc import Iterator

import httpx
import pytest
from adapter_runs import EXAMPLES, GROUP, command, started

from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet

SPEC = {"release": "quay.io/ocp:4.14.0"}


@pytest.fixture
def service(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> Iterator[httpx.Client]:
    process = started(
        *("serve", str(EXAMPLES / "hosted_cluster.py"), "--host", "127.0.0.1", "--port", "0"),
        **fleet.environ,
        HYPERFLEET_API_URL=hyperfleet.url,
    )
    assert process.stdout
    port = process.stdout.readline().rpartition(" ")[2].strip()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        yield client
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_an_event_is_acknowledged_when_it_is_done(
    service: httpx.Client, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    told = hyperfleet.put("Cluster", "svc1", spec=SPEC)
    answer = service.post("/", json=told, headers={"Content-Type": "application/cloudevents+json"})
    assert answer.status_code == 204
    assert hypershift.get(GROUP, "HostedCluster", "svc1", namespace="clusters")
    assert hyperfleet.condition("svc1", "controlplane", "Applied")["status"] == "True"


def test_an_event_in_headers_is_the_same(
    service: httpx.Client, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    told = hyperfleet.put("Cluster", "svc2", spec=SPEC)
    headers = {f"ce-{name}": told[name] for name in ("specversion", "type", "source", "id")}
    assert service.post("/", content=json.dumps(told["data"]), headers=headers).status_code == 204
    assert hypershift.get(GROUP, "HostedCluster", "svc2", namespace="clusters")


def test_what_is_no_event_is_refused_for_good(service: httpx.Client) -> None:
    answer = service.post("/", json={"specversion": "1.0", "data": {"kind": "Cluster"}})
    assert answer.status_code == 400
    assert "id is missing, generation is missing" in answer.json()["error"]


def test_a_resource_that_is_gone_needs_nothing(service: httpx.Client, hyperfleet: FakeHyperFleet) -> None:
    assert service.post("/", json={"id": "never", "kind": "Cluster", "generation": 1}).status_code == 204
    assert hyperfleet.statuses == {}


def test_a_kind_that_is_not_ours_is_acknowledged(service: httpx.Client) -> None:
    assert service.post("/", json={"id": "x", "kind": "NodePool", "generation": 1}).status_code == 204


def test_probes(service: httpx.Client) -> None:
    assert [service.get(path).status_code for path in ("/healthz", "/readyz", "/nowhere")] == [200, 200, 404]


def test_a_port_that_is_taken_is_one_sentence(service: httpx.Client, fleet: RunningFleet) -> None:
    port = str(service.base_url.port)
    ran = command(
        *("serve", str(EXAMPLES / "hosted_cluster.py"), "--host", "127.0.0.1", "--port", port), **fleet.environ
    )
    assert ran.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr
    assert "Traceback" not in ran.stderr
