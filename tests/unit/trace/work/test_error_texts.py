"""Errors of the runbooks: each text has its next step."""

import json
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import main
from maestropy.trace.output import Exit

APPLIED = {"type": "Applied", "status": "True"}
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "default"}}
BY_HAND = {**MANIFEST, "metadata": {"name": "by-hand", "namespace": "default", "uid": "u"}}
NO_RECORDS = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWorkList", "items": []}


def bundle(resource_id: str, name: str, consumer: str = "mgmt-1") -> dict[str, Any]:
    return {
        "id": resource_id,
        "consumer_name": consumer,
        "version": 1,
        "metadata": {"name": name},
        "manifests": [MANIFEST],
        "status": {"ObservedVersion": 1, "SequenceID": "1", "conditions": [APPLIED]},
    }


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    bundles = [bundle("id-1", "web"), bundle("id-2", "twice"), bundle("id-3", "twice", "mgmt-2")]
    (tmp_path / "rows.json").write_text(json.dumps(bundles))
    for consumer in ("mgmt-1", "mgmt-2"):
        (tmp_path / consumer).mkdir()
        (tmp_path / consumer / "objects.json").write_text(json.dumps([NO_RECORDS, BY_HAND]))
    return tmp_path


@pytest.mark.parametrize(
    ("line", "code", "says", "next_step"),
    [
        pytest.param(
            "--resource-id no-such-id",
            Exit.NOT_FOUND,
            "No resource found with this ID/name",
            "maestro trace work --name-like no-such-id",
            id="resource-not-in-db",
        ),
        pytest.param(
            "--work-name web",
            Exit.PROBLEM,
            "Work not applied to cluster",
            "get deployment -n maestro-agent -o yaml | grep consumer-name",
            id="appliedmanifestwork-not-found",
        ),
        pytest.param(
            "--manifest configmap/default/nobody",
            Exit.NOT_FOUND,
            "Manifest configmap/default/nobody not found",
            "Verify kind, namespace and name; it may be deleted already.",
            id="manifest-not-found",
        ),
        pytest.param(
            "--manifest configmap/default/by-hand",
            Exit.NOT_FOUND,
            "Not managed by any ManifestWork",
            "another client created it",
            id="no-owner-references",
        ),
        pytest.param(
            "--work-name twice",
            Exit.AMBIGUOUS,
            "Multiple resources found for twice",
            "Narrow it with --consumer or --source",
            id="multiple-results",
        ),
    ],
)
def test_error_has_text_and_next_step(
    line: str, code: Exit, says: str, next_step: str, dump: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.call(["trace", "work", *line.split(), "--offline", str(dump)]) == code
    out, err = capsys.readouterr()
    assert says in out
    assert next_step in out
    assert err == ""


def test_db_connection_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dsn = f"postgresql://u@/maestro?host={tmp_path}"
    assert main.call(["trace", "work", "--work-name=web", "--db-dsn", dsn, "--no-cluster"]) == Exit.NO_ACCESS
    told = capsys.readouterr().out
    assert "Cannot connect to database: " in told
    assert "check --db-dsn, the network and the login" in told


def test_kubectl_is_not_needed(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert main.call(["trace", "work", "--resource-id=id-1", "--offline", str(dump)]) == Exit.PROBLEM
    assert "User-Created Work Name: web" in capsys.readouterr().out
    kubeconfig = f"--mgmt-kubeconfig={tmp_path / 'none'}"
    assert main.call(["trace", "work", "--resource-id=id-1", "--db=none", kubeconfig]) == Exit.NO_ACCESS
    shown = "".join(capsys.readouterr())
    assert "kubectl is required" not in shown
    assert "none cannot be read" in shown
