"""Go and Python agents take over from each other on a living cluster, without touching what runs there."""

import contextlib
import functools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from maestropy.agent.decide import data_safety
from tests.peers import peer_build
from tests.peers.kube_agents import Restartable, go_agent, wait_for_deletion
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_clients import Json, Refused, WorkClient, rest
from tests.peers.peer_processes import free_ports, running, tail
from tests.peers.peer_servers import RunningServer
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

RECORDS = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
Start = Callable[[str], contextlib.AbstractContextManager[Path]]


@pytest.fixture
def start(
    programs: peer_build.Programs,
    real_cluster: KubeCluster,
    server: RunningServer,
    consumer: str,
    tmp_path: Path,
    shown_logs: list[Path],
) -> Start:
    """Run an agent of either kind for the consumer of this test."""

    @contextlib.contextmanager
    def run(kind: str) -> Iterator[Path]:
        folder = tmp_path / kind
        folder.mkdir(exist_ok=True)
        agent = go_agent if kind == "go" else python_agent
        with agent(programs, cluster=real_cluster, server=server, consumer=consumer, folder=folder) as log:
            shown_logs.append(log)
            yield log
            shown_logs.remove(log)

    return run


@contextlib.contextmanager
def python_agent(
    _: peer_build.Programs, *, cluster: KubeCluster, server: RunningServer, consumer: str, folder: Path
) -> Iterator[Path]:
    """Run our agent as an operator would, with the Go agent's flags."""
    config = folder / "agent-grpc.yaml"
    config.write_text(f"url: {server.broker_addr}\n")
    (port,) = free_ports(1)
    log = folder / "python-agent.log"
    command = [
        sys.executable,
        "-m",
        "maestropy.cli.main",
        "agent",
        "-v=4",
        f"--consumer-name={consumer}",
        f"--cloudevents-client-id={consumer}-work-agent",
        "--workload-source-driver=grpc",
        f"--workload-source-config={config}",
        f"--kubeconfig={cluster.kubeconfig}",
        "--namespace=default",
        f"--listen=127.0.0.1:{port}",
    ]
    with running(command, log=log) as process:
        wait_for(lambda: is_subscribed(process, log), what=f"the Python agent to subscribe (see {log})", seconds=30)
        yield log


def is_subscribed(process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, f"the Python agent ended:\n{tail(log)}"
    return '"subscribed to grpc server"' in log.read_text()


def work(namespace: str) -> Json:
    def named(kind: str, api_version: str = "v1", **body: Any) -> Json:
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": namespace}, **body}

    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    port = {"port": 80, "protocol": "TCP"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    manifests = [
        named("ConfigMap", data={"k": "v"}),
        named("Secret", stringData={"k": "v"}),
        named("ServiceAccount"),
        named("Service", spec={"selector": {"app": "web"}, "ports": [port]}),
        named("Role", "rbac.authorization.k8s.io/v1", rules=[rule]),
        named("Deployment", "apps/v1", spec=deployment),
        named("StatefulSet", "apps/v1", spec={**deployment, "serviceName": "web"}),
    ]
    identifier = {"group": "apps", "resource": "statefulsets", "name": "web", "namespace": namespace}
    ignored = {"condition": "OnSpokeChange", "jsonPaths": [".spec.replicas"]}
    applied = {"type": "ServerSideApply", "serverSideApply": {"force": True, "ignoreFields": [ignored]}}
    rules = [{"type": "JSONPaths", "jsonPaths": [{"name": "replicas", "path": ".spec.replicas"}]}]
    config = {"resourceIdentifier": identifier, "updateStrategy": applied, "feedbackRules": rules}
    return {
        "metadata": {"name": "web", "labels": {"team": "blue"}},
        "spec": {"workload": {"manifests": manifests}, "manifestConfigs": [config]},
    }


def paths(namespace: str) -> list[str]:
    core = [
        f"/api/v1/namespaces/{namespace}/{each}/web"
        for each in ("configmaps", "secrets", "serviceaccounts", "services")
    ]
    apps = [f"/apis/apps/v1/namespaces/{namespace}/{each}/web" for each in ("deployments", "statefulsets")]
    return [*core, *apps, f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles/web"]


@pytest.mark.parametrize(
    "kinds", [("go", "python", "go"), ("python", "go", "python"), ("python", "python")], ids="-".join
)
def test_takeover(
    kinds: tuple[str, ...],
    *,
    start: Start,
    server: RunningServer,
    real_cluster: KubeCluster,
    namespace: str,
    client: WorkClient,
    consumer: str,
) -> None:
    with real_cluster.client() as api:

        def look() -> dict[str, Json]:
            return {path: answer(api.get(path)) for path in paths(namespace)}

        def record() -> Json:
            (owner,) = answer(api.get(paths(namespace)[0]))["metadata"]["ownerReferences"]
            return answer(api.get(f"{RECORDS}/{owner['name']}"))

        with start(kinds[0]):
            uid = client.create(consumer, work(namespace))["metadata"]["uid"]
            wait_for(lambda: is_reported(client, consumer), what="the first agent's status", seconds=60)
            wait_for(lambda: len(applied(record())) == 7, what="the record to be complete", seconds=60)
            wait_for(lambda: is_quiet(look), what="the controllers to be done", seconds=60)
            before, old_record = look(), record()
            seen = newest_report(server, uid)

        for turn, kind in enumerate(kinds[1:], 1):
            # Transition times are whole seconds: within the same one, the next agent may say the very same, which is
            # no news to the server.
            stopped = time.monotonic()
            wait_for(lambda: time.monotonic() - stopped > 1.5, what="another second")
            with contextlib.closing(Restartable(functools.partial(start, kind))) as agent:
                # A status newer than the last agent's shows that this one has looked at everything.
                wait_for(
                    lambda: newest_report(server, uid) != seen,
                    what=f"a status of the {kind} agent",
                    seconds=60,
                )
                wait_for(lambda: is_quiet(look), what="the agent to be done", seconds=60)
                assert_untouched(before, look())
                for field in ("metadata", "spec", "status"):
                    assert without_fields(record()[field]) == without_fields(old_record[field])
                seen = newest_report(server, uid)
                if kind == "go":
                    # A deletion that meets a status on its way is lost by the Go agent.
                    wait_for(lambda: is_idle(agent.log), what="the Go agent to have said everything", seconds=30)
                    seen = newest_report(server, uid)
                if turn == len(kinds) - 1:
                    client.delete(consumer, "web")
                    restart = agent.restart if (server.kind, kind) == ("go", "go") else None
                    wait_for_deletion(
                        lambda: is_gone(client, consumer), what="the work to go", restart_of_go_pair=restart
                    )
        for path in paths(namespace):
            assert api.get(path).status_code == 404, path
        assert api.get(f"{RECORDS}/{old_record['metadata']['name']}").status_code == 404


def assert_untouched(before: dict[str, Json], after: dict[str, Json]) -> None:
    for path, live in after.items():
        for field in ("uid", "generation", "resourceVersion", "ownerReferences", "annotations"):
            assert live["metadata"].get(field) == before[path]["metadata"].get(field), f"{field} of {path}"


def newest_report(server: RunningServer, uid: str) -> str:
    found: str = rest(server, "GET", f"/resource-bundles/{uid}")["status"]["SequenceID"]
    return found


def is_reported(client: WorkClient, consumer: str) -> bool:
    status = client.get(consumer, "web").get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    manifests = status.get("resourceStatus", {}).get("manifests", [])
    has_feedback = any(manifest["statusFeedback"].get("values") for manifest in manifests)
    return conditions.get("Applied") == "True" and conditions.get("Available") == "True" and has_feedback


def is_idle(log: Path) -> bool:
    """Tell whether a Go agent has looked at its work twice since it last had something to say."""
    since = log.read_text().rpartition('"Sending event"')[2]
    return since.count("availablestatus_controller.go") >= 2


def is_quiet(look: Callable[[], dict[str, Json]]) -> bool:
    """Tell whether nothing changes for a moment and the controllers have answered."""
    first, second = look(), look()
    workloads = [live for live in second.values() if live["kind"] in ("Deployment", "StatefulSet")]
    are_seen = all(live["status"].get("observedGeneration") == live["metadata"]["generation"] for live in workloads)
    return first == second and are_seen and all(live["status"].get("replicas") for live in workloads)


def applied(record: Json) -> list[Json]:
    found: list[Json] = record.get("status", {}).get("appliedResources", [])
    return [each for each in found if each.get("uid")]


def without_fields(found: Json) -> Json:
    """Leave out who wrote a field when, and the origin that our agent adds to what a Go agent left."""
    kept = {name: value for name, value in found.items() if name not in ("managedFields", "resourceVersion")}
    annotations = {name: value for name, value in kept.pop("annotations", {}).items() if name != data_safety.ORIGIN}
    return {**kept, "annotations": annotations} if annotations else kept


def is_gone(client: WorkClient, consumer: str) -> bool:
    try:
        client.get(consumer, "web")
    except Refused as refused:
        return refused.reason == "NotFound"
    return False
