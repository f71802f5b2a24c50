"""An adapter as a service: events arrive over HTTP, the response is the acknowledgement."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests import waiting
from tests.adapter.runs import EXAMPLES, GROUP, command, started

SPEC = {"release": "quay.io/ocp:4.14.0"}
HOSTED = str(EXAMPLES / "hosted_cluster.py")


class Service:
    """A running `maestro adapter serve`, and a client of its two ports."""

    def __init__(self, *arguments: str, adapter: str = HOSTED, **environ: str) -> None:
        self.process: subprocess.Popen[str] = started(
            "serve", adapter, "--port", "0", "--metrics-port", "0", *arguments, **environ
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        ports = re.search(r"events on port (\d+), metrics are on port (\d+)", line)
        assert ports, line + self.process.stdout.read()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{ports[1]}", timeout=30)
        self.metrics_url = f"http://127.0.0.1:{ports[2]}/metrics"

    def metric(self, name: str) -> dict[str, str]:
        """The samples of a metric: the value by the labels that vary."""
        text = httpx.get(self.metrics_url).text
        return dict(re.findall(rf"^{name}\{{.*?adapter_name=\"controlplane\",(.*?)\}} (\S+)$", text, re.MULTILINE))

    def close(self) -> None:
        self.client.close()
        self.process.terminate()
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out


@pytest.fixture
def running(fleet: RunningFleet, hyperfleet: FakeHyperFleet) -> Iterator[Service]:
    service = Service(**fleet.environ, HYPERFLEET_API_URL=hyperfleet.url)
    yield service
    service.close()


@pytest.fixture
def service(running: Service) -> httpx.Client:
    return running.client


def test_event_is_acknowledged_after_it_was_handled(
    service: httpx.Client, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    event_document = hyperfleet.put("Cluster", "svc1", spec=SPEC)
    response = service.post("/", json=event_document, headers={"Content-Type": "application/cloudevents+json"})
    assert response.status_code == 204
    assert hypershift.get(GROUP, "HostedCluster", "svc1", namespace="clusters")
    assert hyperfleet.condition("svc1", "controlplane", "Applied")["status"] == "True"


def test_event_in_http_headers_is_accepted(
    service: httpx.Client, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    event_document = hyperfleet.put("Cluster", "svc2", spec=SPEC)
    headers = {f"ce-{name}": event_document[name] for name in ("specversion", "type", "source", "id")}
    assert service.post("/", content=json.dumps(event_document["data"]), headers=headers).status_code == 204
    assert hypershift.get(GROUP, "HostedCluster", "svc2", namespace="clusters")


def test_malformed_event_is_rejected(service: httpx.Client) -> None:
    response = service.post("/", json={"specversion": "1.0", "data": {"kind": "Cluster"}})
    assert response.status_code == 400
    assert "id is missing, generation is missing" in response.json()["error"]


def test_event_for_a_missing_resource_is_acknowledged(service: httpx.Client, hyperfleet: FakeHyperFleet) -> None:
    assert service.post("/", json={"id": "never", "kind": "Cluster", "generation": 1}).status_code == 204
    assert hyperfleet.statuses == {}


def test_event_of_another_kind_is_acknowledged(service: httpx.Client) -> None:
    assert service.post("/", json={"id": "x", "kind": "NodePool", "generation": 1}).status_code == 204


def test_health_and_readiness_probes(service: httpx.Client) -> None:
    assert [service.get(path).status_code for path in ("/healthz", "/readyz", "/nowhere")] == [200, 200, 404]


def test_port_in_use_is_a_one_line_error(service: httpx.Client, fleet: RunningFleet) -> None:
    port = str(service.base_url.port)
    ran = command("serve", HOSTED, "--port", port, **fleet.environ)
    assert ran.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_metrics_have_the_names_of_the_framework(
    running: Service, hypershift: Cluster, hyperfleet: FakeHyperFleet
) -> None:
    running.client.post("/", json=hyperfleet.put("Cluster", "met1", spec=SPEC))
    running.client.post("/", json={"id": "gone", "kind": "Cluster", "generation": 1})
    running.client.post("/", json={"id": 7})
    running.client.post("/", json=hyperfleet.delete("met1"))
    prefix = "hyperfleet_adapter_"
    events = running.metric(f"{prefix}events_processed_total")
    counts = {
        re.sub(r',version="[^"]*"', "", labels).rpartition("component=")[2]: value for labels, value in events.items()
    }
    assert counts == {
        '"controlplane",status="success"': "2",
        '"controlplane",status="skipped"': "1",
        '"controlplane",status="failed"': "1",
    }
    text = httpx.get(running.metrics_url).text
    assert re.search(rf'^{prefix}errors_total{{.*error_type="param_extraction".*}} 1$', text, re.MULTILINE)
    deleted = rf'^{prefix}resources_deleted_total{{.*resource_type="ManifestWork",status="success".*}} 1$'
    assert re.search(deleted, text, re.MULTILINE)
    assert re.search(rf'^{prefix}event_processing_duration_seconds_bucket{{.*le="0.5"}} \d+$', text, re.MULTILINE)
    assert re.search(rf'^{prefix}up{{component="controlplane",version=".+"}} 1$', text, re.MULTILINE)
    assert re.search(rf"^{prefix}build_info{{.+}} 1$", text, re.MULTILINE)


def test_service_for_other_machines_needs_a_token(fleet: RunningFleet) -> None:
    ran = command("serve", HOSTED, "--host", "0.0.0.0", "--port", "0", **fleet.environ)
    assert ran.returncode == 2
    assert "give --token-file" in ran.stderr


def test_an_empty_token_file_is_named_at_the_start(fleet: RunningFleet, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch()
    ran = command("serve", HOSTED, "--port", "0", "--token-file", str(token), **fleet.environ)
    assert ran.returncode == 2
    assert f"--token-file: the token file {token} is empty" in ran.stderr


def test_events_must_carry_the_token(fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    arguments = ("--host", "0.0.0.0", "--token-file", str(token))
    service = Service(*arguments, **fleet.environ, HYPERFLEET_API_URL=hyperfleet.url)
    event = {"id": "never", "kind": "Cluster", "generation": 1}

    def code(authorization: str) -> int:
        headers = {"Authorization": authorization} if authorization else {}
        return service.client.post("/", json=event, headers=headers).status_code

    try:
        assert [code(""), code("Bearer second"), code("Basic first"), code("Bearer first")] == [401, 401, 401, 204]
        token.write_text("second\n")
        assert [code("Bearer first"), code("Bearer second")] == [401, 204]
        token.write_text("")
        assert [code("Bearer"), code("")] == [401, 401]
        assert service.client.get("/healthz").status_code == 200
    finally:
        service.close()


def test_stop_lets_the_event_in_progress_be_sent_again(hyperfleet: FakeHyperFleet) -> None:
    hyperfleet.is_down = True  # the event is retried, and does not end by itself
    unused = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"}
    service = Service(HYPERFLEET_API_URL=hyperfleet.url, **unused)
    responses: list[httpx.Response] = []
    event = hyperfleet.put("Cluster", "stop1", spec=SPEC)
    sender = threading.Thread(target=lambda: responses.append(service.client.post("/", json=event)))
    sender.start()
    waiting.wait_for(lambda: bool(hyperfleet.requests))
    service.process.terminate()
    out, _ = service.process.communicate(timeout=60)
    sender.join(timeout=60)
    service.client.close()
    assert service.process.returncode == 0, out
    assert [(response.status_code, response.headers["Retry-After"]) for response in responses] == [(503, "5")]


STUCK = """\
import os
import pathlib
import sys
import threading

from maestropy.adapter import Adapter, Event, Resource, StatusReport

adapter = Adapter("stuck")


@adapter.reconciles("Cluster")
def desired(_: Event, cluster: Resource) -> StatusReport:
    if cluster.id == "exits":
        sys.exit(0)
    if cluster.id == "stuck":
        pathlib.Path(os.environ["ENTERED"]).touch()
        threading.Event().wait()
    return StatusReport(available=True)
"""


@pytest.mark.long
def test_stop_does_not_wait_for_a_handler_that_does_not_return(hyperfleet: FakeHyperFleet, tmp_path: Path) -> None:
    adapter, entered = tmp_path / "adapter.py", tmp_path / "entered"
    adapter.write_text(STUCK)
    unused = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"}
    environ = {"ENTERED": str(entered), "HYPERFLEET_API_URL": hyperfleet.url, **unused}
    service = Service("--event-timeout", "1h", adapter=str(adapter), **environ)
    responses: list[httpx.Response] = []
    event = hyperfleet.put("Cluster", "stuck", spec={})
    sender = threading.Thread(target=lambda: responses.append(service.client.post("/", json=event, timeout=120)))
    sender.start()
    waiting.wait_for(entered.exists)
    service.process.terminate()
    out, _ = service.process.communicate(timeout=120)
    sender.join(timeout=60)
    service.client.close()
    assert (service.process.returncode, "Traceback" in out) == (0, False), out
    assert [(response.status_code, response.headers["Retry-After"]) for response in responses] == [(503, "5")]


@pytest.mark.long
def test_handler_that_does_not_return_stops_neither_probes_nor_other_events_nor_the_end(
    hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    adapter, entered = tmp_path / "adapter.py", tmp_path / "entered"
    adapter.write_text(STUCK)
    unused = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"}
    environ = {"ENTERED": str(entered), "HYPERFLEET_API_URL": hyperfleet.url, **unused}
    service = Service("--event-timeout", "8s", adapter=str(adapter), **environ)

    def sent(cluster_id: str) -> int:
        return service.client.post("/", json=hyperfleet.put("Cluster", cluster_id, spec={})).status_code

    codes: list[int] = []
    sender = threading.Thread(target=lambda: codes.append(sent("stuck")))
    sender.start()
    waiting.wait_for(entered.exists)
    assert service.client.get("/healthz").status_code == 200
    assert [sent("exits"), sent("fine")] == [204, 204]
    assert codes == []
    sender.join(timeout=60)
    assert codes == [204]
    service.client.close()
    service.process.terminate()
    out, _ = service.process.communicate(timeout=60)
    assert service.process.returncode == 0, out
    assert f"desired ({adapter}, line 11) did not return within 8 s; it is at line 17" in out
    assert [hyperfleet.condition(name, "stuck", "Health")["status"] for name in ("stuck", "exits", "fine")] == [
        "False",
        "False",
        "True",
    ]
    assert "Traceback" not in out
