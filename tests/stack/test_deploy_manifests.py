"""The manifests under `deploy/` are taken by a Kubernetes API, and the programs take the flags they give."""

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from maestropy.agent import settings as agent_settings
from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli.parsing import settings_commands
from maestropy.flags import Flag
from maestropy.sdk._manifests.sources import plural
from maestropy.server import settings as server_settings
from maestropy.server.settings.load import FLAGS as SERVER_FLAGS
from maestropy.transport.grpc import config as grpc_config
from tests.conformance.sandbox_thread import Running, sandbox

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*.yaml") if path.name != "kustomization.yaml")


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with sandbox() as found:
        with found.client() as api:
            for path in DEPLOY.rglob("namespace.yaml"):
                api.post("/api/v1/namespaces", json=documents(path)[0]).raise_for_status()
        yield found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_a_kubernetes_api_takes_every_manifest(path: Path, running: Running) -> None:
    with running.client() as api:
        for document in documents(path):
            answer = create(api, document)
            is_there = document["kind"] == "Namespace" and answer.status_code == httpx.codes.CONFLICT
            assert answer.is_success or is_there, f"{document['kind']} {document['metadata']['name']}: {answer.text}"


def create(api: httpx.Client, document: dict[str, Any]) -> httpx.Response:
    group, slash, version = document["apiVersion"].partition("/")
    base = f"/apis/{group}/{version}" if slash else f"/api/{group}"
    namespace = document["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    return api.post(f"{base}{scope}/{plural(document['kind'])}", json=document, params=query)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", ["server", "agent", "agent-cluster-admin"])
def test_kubectl_takes_the_whole_folder(folder: str, running: Running) -> None:
    command = ["kubectl", "--kubeconfig", str(running.cluster.kubeconfig), "apply", "--dry-run=server", "-k"]
    done = subprocess.run([*command, str(DEPLOY / folder)], capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr


def containers() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in FILES:
        for document in documents(path):
            pod = document.get("spec", {}).get("template", {}).get("spec", {})
            for container in pod.get("containers", ()):
                yield f"{document['kind']}-{container['name']}", {**container, "volumes": pod["volumes"]}


CONTAINERS = [pytest.param(container, id=name) for name, container in containers()]


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_programs_take_their_flags(container: dict[str, Any]) -> None:
    command, *words = container["args"]
    loads = {"server": server_settings.load, "migration": server_settings.load, "agent": agent_settings.load}
    flags: dict[str, Flag] = dict(AGENT_FLAGS if command == "agent" else SERVER_FLAGS)
    line = settings_commands.read(words, flags.values())
    given = {name: value for name, value in line.flags.items() if value is not None}
    assert not line.remaining, shlex.join(words)
    assert set(given) <= set(flags), shlex.join(words)
    loads[command](given, {})


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_file_a_flag_names_is_mounted(container: dict[str, Any]) -> None:
    mounts = tuple(volume_mount["mountPath"] + "/" for volume_mount in container["volumeMounts"])
    named = [word.partition("=")[2] for word in container["args"] if "=/" in word]
    assert [path for path in named if not path.startswith(mounts)] == []
    assert {volume_mount["name"] for volume_mount in container["volumeMounts"]} == {
        volume["name"] for volume in container["volumes"]
    }


def test_secrets_of_the_examples_are_those_that_are_mounted() -> None:
    offered = {
        document["metadata"]["name"]: set(document["stringData"])
        for path in DEPLOY.rglob("secrets.example.yaml")
        for document in documents(path)
    }
    mounted = {
        volume["secret"]["secretName"]
        for _, container in containers()
        for volume in container["volumes"]
        if "secret" in volume
    }
    assert mounted == set(offered)
    assert {"db.host", "db.port", "db.user", "db.password", "db.name"} == offered["maestro-db"]


def test_the_agent_reads_the_example_of_its_configuration() -> None:
    secret = documents(DEPLOY / "agent" / "secrets.example.yaml")[0]
    found = grpc_config.parse(secret["stringData"]["config.yaml"].encode(), origin="example")
    assert found.notes == ()
    assert found.endpoint.has_client_cert


def test_the_definition_is_the_one_the_agent_installs() -> None:
    installed = ROOT / "src" / "maestropy" / "agent" / "crds" / "appliedmanifestworks.yaml"
    assert (DEPLOY / "agent" / "crd.yaml").read_text() == installed.read_text()


def manifests(*folders: str) -> list[dict[str, Any]]:
    return [document for folder in folders for path in (DEPLOY / folder).glob("*.yaml") for document in documents(path)]


def test_agent_is_not_cluster_admin_by_default() -> None:
    bound = {manifest["roleRef"]["name"] for manifest in manifests("agent") if manifest["kind"].endswith("RoleBinding")}
    assert "cluster-admin" not in bound
    rules = [rule for manifest in manifests("agent") if manifest["kind"].endswith("Role") for rule in manifest["rules"]]
    dangerous = {"*", "impersonate", "escalate", "bind", "secrets", "roles", "clusterroles", "clusterrolebindings"}
    assert dangerous.isdisjoint(word for rule in rules for words in rule.values() for word in words)
    overlay = yaml.safe_load((DEPLOY / "agent-cluster-admin" / "kustomization.yaml").read_text())
    assert overlay["resources"] == ["../agent", "binding.yaml"]


@pytest.mark.parametrize("folder", ["server", "agent"])
def test_every_pod_has_a_network_policy(folder: str) -> None:
    listed = yaml.safe_load((DEPLOY / folder / "kustomization.yaml").read_text())["resources"]
    assert "networkpolicy.yaml" in listed
    policies = [manifest["spec"] for manifest in manifests(folder) if manifest["kind"] == "NetworkPolicy"]
    selected = [policy["podSelector"]["matchLabels"] for policy in policies]
    pods = [manifest["spec"]["template"] for manifest in manifests(folder) if "template" in manifest.get("spec", {})]
    assert sorted(map(str, selected)) == sorted(str(pod["metadata"]["labels"]) for pod in pods)
    assert all(policy["policyTypes"] == ["Ingress", "Egress"] for policy in policies)
    named = {port["name"] for pod in pods for each in pod["spec"]["containers"] for port in each.get("ports", ())}
    used = {port["port"] for policy in policies for rule in policy.get("ingress", ()) for port in rule["ports"]}
    assert used <= named
    open_to_all = [rule["ports"] for policy in policies for rule in policy.get("ingress", ()) if "from" not in rule]
    assert open_to_all == ([[{"protocol": "TCP", "port": "grpc-broker"}]] if folder == "server" else [])


def test_image_has_neither_embedded_database_nor_sandbox() -> None:
    recipe = (DEPLOY / "Dockerfile").read_text()
    assert "'.[server,agent,azure,pubsub]'" in recipe
    # Where charts of Go Maestro start it.
    assert "ln -s /opt/maestro/bin/maestro /usr/local/bin/maestro" in recipe
    assert all(f"site-packages/maestropy/{package}" in recipe for package in ("sandbox", "testing"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    holders = {name for name, needs in extras.items() if any("pgserver" in need for need in needs)}
    assert holders == {"embedded"}


WITHOUT_SANDBOX = """
import sys
sys.modules["maestropy.sandbox"] = None
sys.modules["maestropy.testing"] = None
from maestropy.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        pytest.param(["server", "--help"], 0, "--server-hostname", id="server-help"),
        pytest.param(["agent", "--help"], 0, "--consumer-name", id="agent-help"),
        pytest.param(["server", "--db-dsn=postgresql://u@127.0.0.1:1/d"], 1, "refused", id="server"),
        pytest.param(["migration", "--db-dsn=postgresql://u@127.0.0.1:1/d"], 1, "cannot be migrated", id="migration"),
        pytest.param(["server"], 1, "not part of this installation", id="server-without-database"),
        pytest.param(["up"], 1, "not part of this installation", id="up"),
    ],
)
def test_commands_of_the_image_need_no_sandbox(words: list[str], code: int, text: str, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAESTRO_")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SANDBOX, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        cwd=tmp_path,
        env={**environ, "HOME": str(tmp_path)},
    )
    assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done.stderr
