"""The manifests under `deploy/` are taken by a Kubernetes API, and the programs take the flags they give."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from conformance.sandbox_thread import Running, sandbox

from maestropy.agent import settings as agent_settings
from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli import commands
from maestropy.flags import Flag
from maestropy.sdk.manifests import plural
from maestropy.server import settings as server_settings
from maestropy.server.settings.load import FLAGS as SERVER_FLAGS
from maestropy.transport import grpc_config

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
@pytest.mark.parametrize("folder", ["server", "agent"])
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
    line = commands.read(words, flags.values())
    given = {name: value for name, value in line.flags.items() if value is not None}
    assert not line.words, shlex.join(words)
    assert set(given) <= set(flags), shlex.join(words)
    loads[command](given, {})


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_file_a_flag_names_is_mounted(container: dict[str, Any]) -> None:
    mounts = tuple(each["mountPath"] + "/" for each in container["volumeMounts"])
    named = [word.partition("=")[2] for word in container["args"] if "=/" in word]
    assert [path for path in named if not path.startswith(mounts)] == []
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in container["volumes"]}


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
