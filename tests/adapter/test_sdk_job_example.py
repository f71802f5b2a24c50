"""The example that uses only the client, run as a Job."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maestropy.testing import Cluster, RunningFleet
from tests.adapter.runs import EXAMPLES, GROUP


def run(results: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAESTRO_")}
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "sdk_job.py")],
        env={**environment, **environ, "RESULTS_PATH": str(results)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def conditions(results: Path) -> dict[str, tuple[str, str]]:
    reported = json.loads(results.read_text())["conditions"]
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in reported}


@pytest.mark.long
def test_job_creates_the_work_and_reports_its_endpoint(
    fleet: RunningFleet, hypershift: Cluster, tmp_path: Path
) -> None:
    results = tmp_path / "adapter-report.json"
    assert run(results, fleet.environ).stderr == ""
    assert conditions(results) == {
        "Applied": ("True", "ManifestWorkCreated"),
        "Available": ("False", "Provisioning"),
        "Health": ("True", "NoIssues"),
    }
    with fleet.maestro("my-adapter") as client:
        works = client.works("cluster1")
        works.wait_for("hostedcluster-abc123", "Applied", timeout=60)
        endpoint = {"host": "api.example.net", "port": 6443}
        status = {
            "conditions": [{"type": "Available", "status": "True", "reason": "AsExpected"}],
            "controlPlaneEndpoint": endpoint,
        }
        hypershift.set_status(GROUP, "HostedCluster", "my-cluster", namespace="clusters", status=status)
        works.wait_for("hostedcluster-abc123", lambda work: bool(work.feedback("status")), timeout=60)
        assert run(results, fleet.environ).returncode == 0
        assert conditions(results)["Available"] == ("True", "ControlPlaneReady")
        assert json.loads(results.read_text())["data"] == {"control_plane_endpoint": endpoint}
        works.delete("hostedcluster-abc123", wait=True, timeout=60)


@pytest.mark.long
def test_failure_is_a_one_line_error(fleet: RunningFleet, tmp_path: Path) -> None:
    results = tmp_path / "report.json"
    failures = {
        "there is no consumer 'cluster2'; did you mean cluster1?": (
            results,
            {"MANAGEMENT_CLUSTER_CONSUMER": "cluster2"},
        ),
        "MANAGEMENT_CLUSTER_CONSUMER is not set": (results, {"MANAGEMENT_CLUSTER_CONSUMER": ""}),
        "cannot be written: No such file": (tmp_path / "nowhere" / "report.json", {}),
    }
    for reason, (path, environ) in failures.items():
        ran = run(path, {**fleet.environ, **environ})
        assert ran.returncode == 1
        assert ran.stderr.count("\n") == 1
        assert reason in ran.stderr
        assert not path.exists()
    with fleet.maestro("my-adapter") as client:
        client.works("cluster1").delete("hostedcluster-abc123", wait=True, timeout=60)
