"""The command line on the Go Maestro and on ours, with an agent of the Go SDK."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from maestropy.cli import main
from tests.peers.peer_clients import Agent
from tests.peers.peer_servers import RunningServer

pytestmark = pytest.mark.peers


def work(name: str, consumer: str, value: str = "1") -> dict[str, object]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": consumer, "labels": {"suite": consumer}},
        "spec": {"workload": {"manifests": [{**manifest, "data": {"k": value}}]}},
    }


def test_works_are_listed_awaited_edited_and_deleted(
    server: RunningServer,
    consumer: str,
    start_agent: Callable[[str], Agent],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    start_agent(consumer)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAESTRO_REST_URL", server.rest_url)
    monkeypatch.setenv("MAESTRO_GRPC_SERVER_ADDRESS", server.grpc_addr)

    def run(line: str, *, expect: int = 0) -> str:
        code = main.call(shlex.split(line))
        shown = capsys.readouterr()
        assert code == expect, shown.out + shown.err
        return shown.out if expect == 0 else shown.err

    file = tmp_path / "works.yaml"
    file.write_text(yaml.safe_dump_all([work("a", consumer), work("b", consumer)]))
    assert run(f"rb apply -f {file} --dry-run=server").count("would be created") == 2
    run(f"rb apply -f {file} --wait")
    assert run(f"rb apply -f {file} --dry-run=server").count("is unchanged") == 2
    names = "--no-headers -o custom-columns=NAME:.metadata.name"
    assert sorted(run(f"get works {names} --consumer {consumer} --source maestro-cli").split()) == ["a", "b"]
    labelled = run(f"get works {names} --consumer {consumer} -l suite={consumer} --search 'version = 1'")
    assert sorted(labelled.split()) == ["a", "b"]
    assert run(f"get works {names} --consumer {consumer} --source other") == ""
    assert "there is no consumer" in run(f"get works --consumer {consumer}x", expect=1)
    assert run(f"rb wait -l suite={consumer} --for=condition=Available --timeout 60s").count("condition met") == 2
    monkeypatch.setenv("EDITOR", "sed -i -e 's/k:.*/k: two/'")
    run(f"rb edit {consumer}/a")
    assert run(f"rb get {consumer}/a -o jsonpath={{.version}}/{{.manifests[0].data.k}}") == "2/two"
    refusal = run(f"consumer delete {consumer} --yes", expect=1)
    assert "it still has works; delete the works of this consumer first" in refusal
    assert "SQL" not in refusal
    assert run(f"rb delete -l suite={consumer} --yes --wait --timeout 60s").count("deleted successfully") == 2


def test_history_is_shown_or_said_to_be_missing(
    server: RunningServer,
    consumer: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAESTRO_REST_URL", server.rest_url)
    code = main.call(["history", consumer])
    shown = capsys.readouterr()
    if server.kind == "go":
        assert code == 1
        assert "the server keeps no history: it is a Go Maestro" in shown.err
    else:
        assert code == 0
        assert "consumer.created" in shown.out
