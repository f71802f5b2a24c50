"""`maestro consumer` and `maestro resourcebundle` on a real server."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from maestropy.cli import main
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from tests.stack import harness
from tests.stack.sdk_live import live_server as live_server

WORK = """\
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: hello, namespace: c1, labels: {app: web}}
spec:
  workload:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: default}, data: {k: "1"}}
"""


class Shell:
    """Runs commands of the command line."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, line: str, *, expect: int = 0) -> str:
        code = main.call(line.split())
        shown = self._capture.readouterr()
        assert code == expect, shown.err
        assert "Traceback" not in shown.err
        return shown.out if expect == 0 else shown.out + shown.err


@pytest.fixture
def shell(live_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("MAESTRO_REST_URL", f"http://127.0.0.1:{live_server.ports.rest}")
    monkeypatch.setenv("MAESTRO_GRPC_SERVER_ADDRESS", f"127.0.0.1:{live_server.ports.sources}")
    return Shell(capsys)


def test_consumers_are_created_listed_updated_and_deleted(shell: Shell) -> None:
    created = json.loads(shell("consumer create c1 --label region=east --label tier=prod -o json"))
    assert created["labels"] == {"region": "east", "tier": "prod"}
    assert shell("consumer create c1", expect=1) == "Error: consumer already exists\n"
    lines = shell("consumer list").splitlines()
    assert lines[0].split() == ["ID", "NAME", "LABELS", "CREATED"]
    assert lines[1].split()[:3] == [created["id"], "c1", "region=east,tier=prod"]
    assert shell("consumer list -l region=east,!x -o name") == f"{created['id']}\n"
    assert json.loads(shell("consumer list -o json"))["total"] == 1
    shown = json.loads(shell("consumer get c1 -o json"))
    assert (shown["kind"], shown["href"]) == ("Consumer", f"/api/maestro/v1/consumers/{created['id']}")
    assert list(shown) == ["created_at", "href", "id", "kind", "labels", "name", "updated_at"]
    # Maestro's global flags and its way to write several labels.
    more = (
        "consumer update c1 --label x=1,y=2 -o name -v=4 --logtostderr --vmodule a=1 --legacy_stderr_threshold_behavior"
    )
    assert shell(more) == f"{created['id']}\n"
    assert shell("consumer update c1 --remove-label x,y -o name --v 2 --alsologtostderr=true") == f"{created['id']}\n"
    changed = yaml.safe_load(shell(f"consumer update {created['id']} --label a=b --remove-label tier -o yaml"))
    assert changed["labels"] == {"a": "b", "region": "east"}
    assert "FIELD" in shell("consumer get c1")
    assert shell("consumer get unknown", expect=1).startswith("Error: consumer not found")
    assert "write it as key=value" in shell("consumer update c1 --label x", expect=2)
    assert "add --yes" in shell("consumer delete c1", expect=1)
    assert shell("consumer delete c1 --yes") == f"Consumer {created['id']} deleted successfully\n"


HOLD = """INSERT INTO maestropy_holds (consumer_name, id, reason, message, database_id, work_count, works, since)
          VALUES ('lost', 'h1', 'UnknownConsumer', 'it cannot know its works', 'd0', 1, ARRAY['w'], now())"""


def test_hold_of_a_consumer_that_does_not_exist_is_explained(
    shell: Shell, database: Dsn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (identity,) = asyncio.run(harness.sql(database, "SELECT id FROM maestropy_database"))
    (started,) = [line for line in (tmp_path / "server.log").read_text().splitlines() if "uses this database" in line]
    assert identity["id"] in started
    assert database.database in started
    asyncio.run(harness.sql(database, HOLD))
    assert main.call(["consumer", "list"]) == 0
    assert "Consumer lost does not exist, and its agent keeps 1 work (UnknownConsumer)" in capsys.readouterr().err
    advice = shell("consumer adopt lost --dry-run", expect=1)
    assert "create the consumer, and adopt what is still held" in advice
    assert "there is no consumer 'other'" in shell("consumer adopt other --dry-run", expect=1)
    shell("consumer create lost")
    assert main.call(["consumer", "list"]) == 0
    shown = capsys.readouterr()
    assert "UnknownConsumer (1 work)" in shown.out
    assert "Data-safety holds: 1 agent keeps works" in shown.err


def test_work_file_is_applied_compared_and_deleted(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell("consumer create c1")
    assert "would be created" in shell(f"resourcebundle diff -f {file}", expect=1)
    applied = shell(f"resourcebundle apply -f {file} --wait").splitlines()
    assert applied[0] == "Resource bundle applied successfully (created):"
    bundle_id = applied[1].removeprefix("ID: ")
    assert applied[2] == f"Resource bundle {bundle_id} is applied"
    assert shell(f"resourcebundle diff -f {file}") == ""

    head, line = shell("resourcebundle list").splitlines()
    assert head.split() == ["ID", "NAME", "CONSUMER", "VERSION", "CREATED", "STATUS"]
    assert [*line.split()[:4], line.split()[-1]] == [bundle_id, "hello", "c1", "1", "Applied"]
    assert "app=web" in shell("resourcebundle list -o wide -l app=web")
    assert json.loads(shell(f"resourcebundle get {bundle_id} -o json"))["version"] == 1

    monkeypatch.setattr(sys, "stdin", io.StringIO(WORK.replace('"1"', '"2"')))
    changes = shell("resourcebundle diff -f -", expect=1)
    assert '- spec.workload.manifests[0].data.k: "1"' in changes
    assert '+ spec.workload.manifests[0].data.k: "2"' in changes
    monkeypatch.setattr(sys, "stdin", io.StringIO(WORK.replace('"1"', '"2"')))
    assert "(updated)" in shell("resourcebundle apply -f - --wait")

    description = shell(f"resourcebundle describe {bundle_id}")
    assert description.startswith("Version 2 is applied and available.\n")
    assert '{"x": 1}' in description
    assert "Applied" in shell(f"resourcebundle status {bundle_id}")
    assert shell("resourcebundle describe hello") == shell("resourcebundle describe c1/hello") == description
    assert shell("resourcebundle get c2/hello", expect=1) == "Error: resource bundle not found: c2/hello\n"

    deleted = shell(f"resourcebundle delete {bundle_id} --yes --wait")
    assert deleted == f"Resource bundle {bundle_id} deleted successfully\n"
    assert shell(f"resourcebundle get {bundle_id}", expect=1) == f"Error: resource bundle not found: {bundle_id}\n"


def test_resource_bundles_and_plain_manifests_are_applied(shell: Shell, tmp_path: Path) -> None:
    shell("consumer create c1")
    manifest = yaml.safe_load(WORK)["spec"]["workload"]["manifests"][0]
    bundle = tmp_path / "bundle.json"
    bundle.write_text(json.dumps({"consumer_name": "c1", "manifests": [manifest]}))
    printed = shell(f"resourcebundle apply -f {bundle}").splitlines()
    assert printed[0] == "Resource bundle applied successfully:"
    stored = json.loads(shell(f"resourcebundle get {printed[1].removeprefix('ID: ')} -o json"))
    bundle.write_text(json.dumps({**stored, "version": 7}))
    assert "the latest version: 1" in shell(f"resourcebundle apply -f {bundle}", expect=1)

    plain = tmp_path / "plain.yaml"
    plain.write_text(yaml.safe_dump(manifest))
    assert "give --consumer and --name" in shell(f"resourcebundle apply -f {plain}", expect=2)
    assert "(created)" in shell(f"resourcebundle apply -f {plain} --consumer c1 --name plain")
    assert "there is no consumer 'c2'" in shell(f"resourcebundle apply -f {plain} --consumer c2 --name plain", expect=1)
    plain.write_text("a: [\n")
    assert "line 2, column 1" in shell(f"resourcebundle apply -f {plain}", expect=2)
    plain.write_text(yaml.safe_dump(manifest))
    for more in ("", "--dry-run=server"):
        line = f"resourcebundle apply -f {plain} --consumer c1 --name other --grpc-ca-file {plain} {more}"
        assert f"{plain} holds no PEM certificate" in shell(line, expect=2)
        assert "cannot read missing" in shell(line.replace(f"file {plain}", "file missing"), expect=2)


def test_ambiguous_work_name_is_rejected(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "work.yaml"
    for consumer in ("c1", "c2"):
        shell(f"consumer create {consumer}")
        file.write_text(WORK.replace("c1", consumer))
        shell(f"resourcebundle apply -f {file}")
    rejection = shell("resourcebundle delete hello --yes", expect=1)
    assert rejection.startswith("Error: 2 resource bundles are called hello; name one by CONSUMER/NAME or by its ID:\n")
    assert "c1/hello of source maestro-cli\n" in rejection
    assert "c2/hello of source maestro-cli\n" in rejection
    assert shell("resourcebundle get c2/hello -o name").strip() in rejection
    shell(f"resourcebundle apply -f {file} --grpc-source-id other")
    rejection = shell("resourcebundle delete c2/hello --yes", expect=1)
    assert "are called c2/hello; name one by its ID:\n" in rejection
    assert "c2/hello of another source\n" in rejection
    listed = shell("resourcebundle list --all -o name --search payload->'metadata'->>'name'like'hel%'")
    assert len(listed.split()) == 3
    typo = shell("history c2/helo", expect=1)
    assert "there is no work c2/helo, and no history of one that source maestro-cli had" in typo


def test_watch_ends_with_an_interrupt(shell: Shell, tmp_path: Path) -> None:
    shell("consumer create c1")
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell(f"resourcebundle apply -f {file} --wait")
    command = [sys.executable, "-m", "maestropy.cli.main", "resourcebundle", "watch", "-o", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        event = json.loads(process.stdout.readline())
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "hello")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == ""
