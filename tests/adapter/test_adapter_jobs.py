"""An adapter as a Job: the command, its environment, its results file, its exit code; also when it is killed."""

import json
import os
import signal
from pathlib import Path

import pytest
from adapter_runs import EXAMPLES, GROUP, command, started, wait_until

from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet

HOSTED = str(EXAMPLES / "hosted_cluster.py")
SPEC = {"release": "quay.io/ocp:4.14.0"}
READY = {
    "conditions": [{"type": "Available", "status": "True", "reason": "AsExpected"}],
    "controlPlaneEndpoint": {"host": "api.example.net", "port": 6443},
}


def environ(fleet: RunningFleet, api: FakeHyperFleet, cluster_id: str, results: Path) -> dict[str, str]:
    generation = api.resources[cluster_id]["generation"]
    return {
        **fleet.environ,
        "HYPERFLEET_API_URL": api.url,
        "CLUSTER_ID": cluster_id,
        "GENERATION": str(generation),
        "RESULTS_PATH": str(results / "adapter-result.json"),
    }


def result_in(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "adapter-result.json").read_text())
    return found


def works_for(cluster_id: str, fleet: RunningFleet) -> list[tuple[str, int]]:
    with fleet.maestro("controlplane") as maestro:
        works = list(maestro.works(None).list(labels={"hyperfleet.io/cluster-id": cluster_id}))
    return [(each.name, each.version) for each in works]


def test_it_waits_until_available_and_leaves_both_files(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job1", spec=SPEC)
    job = started("run", HOSTED, "--wait", "30s", **environ(fleet, hyperfleet, "job1", tmp_path))
    hypershift.wait_for(GROUP, "HostedCluster", "job1", namespace="clusters")
    hypershift.set_status(GROUP, "HostedCluster", "job1", namespace="clusters", status=READY)
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0, out
    assert result_in(tmp_path)["status"] == "success"
    document = json.loads((tmp_path / "adapter-report.json").read_text())
    assert [each["type"] for each in document["conditions"]] == ["Applied", "Available", "Health", "Finalized"]
    assert document["data"]["control_plane_endpoint"] == "api.example.net:6443"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


def test_not_available_in_time_comes_again(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job2", spec=SPEC)
    ran = command("run", HOSTED, "--wait", "1s", **environ(fleet, hyperfleet, "job2", tmp_path))
    assert ran.returncode == 75, ran.stderr
    assert result_in(tmp_path)["reason"] == "NotSynced"


def test_killed_in_the_middle_and_run_again_there_is_one_work_and_one_report(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job3", spec=SPEC)
    told = environ(fleet, hyperfleet, "job3", tmp_path)
    job = started("run", HOSTED, "--wait", "30s", **told)
    hypershift.wait_for(GROUP, "HostedCluster", "job3", namespace="clusters")
    os.kill(job.pid, signal.SIGKILL)
    job.communicate()
    assert list(tmp_path.iterdir()) == []
    # What a run leaves that is killed while it writes.
    (tmp_path / f".adapter-result.json.{job.pid}.unfinished").write_text('{"status": "succ')

    hypershift.set_status(GROUP, "HostedCluster", "job3", namespace="clusters", status=READY)
    again = command("run", HOSTED, "--wait", "30s", **told)
    assert again.returncode == 0, again.stderr
    assert works_for("job3", fleet) == [("hostedcluster-job3", 1)]
    assert list(hyperfleet.statuses["job3"]) == ["controlplane"]
    assert hyperfleet.answers == [201]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


@pytest.mark.parametrize("moment", ["GET", "PUT"], ids=["before-the-work", "after-the-report"])
def test_killed_at_other_moments_the_end_is_the_same(
    moment: str, fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    name = f"killed-{moment.lower()}"
    hyperfleet.put("Cluster", name, spec=SPEC)
    told = environ(fleet, hyperfleet, name, tmp_path)
    job = started("run", HOSTED, **told)
    wait_until(lambda: any(each.startswith(moment) for each in hyperfleet.requests))
    os.kill(job.pid, signal.SIGKILL)
    job.communicate()
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())  # whole, if it is there at all
    again = command("run", HOSTED, **told)
    assert again.returncode == 0, again.stderr
    assert works_for(name, fleet) == [(f"hostedcluster-{name}", 1)]
    assert list(hyperfleet.statuses[name]) == ["controlplane"]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


def test_two_at_once_make_one_work(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "twice", spec=SPEC)
    told = environ(fleet, hyperfleet, "twice", tmp_path)
    jobs = [started("run", HOSTED, **told) for _ in range(3)]
    outs = [job.communicate(timeout=60)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], outs
    assert works_for("twice", fleet) == [("hostedcluster-twice", 1)]


def test_asked_to_stop_it_says_so(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job4", spec=SPEC)
    job = started("run", HOSTED, "--wait", "30s", **environ(fleet, hyperfleet, "job4", tmp_path))
    hypershift.wait_for(GROUP, "HostedCluster", "job4", namespace="clusters")
    job.terminate()
    job.communicate(timeout=60)
    assert job.returncode == 75
    assert result_in(tmp_path)["reason"] == "Interrupted"


def test_a_server_that_is_away_is_waited_for(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job5", spec=SPEC)
    fleet.kill_server()
    try:
        job = started("run", HOSTED, **environ(fleet, hyperfleet, "job5", tmp_path))
        wait_until(lambda: bool(hyperfleet.requests))
        assert job.poll() is None
    finally:
        fleet.start_server()
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0, out
    hypershift.wait_for(GROUP, "HostedCluster", "job5", namespace="clusters")


def test_an_unknown_consumer_is_told_with_the_names_near_it(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job6", spec=SPEC)
    ran = command("run", HOSTED, "--consumer", "cluster2", **environ(fleet, hyperfleet, "job6", tmp_path))
    assert ran.returncode == 1
    assert result_in(tmp_path)["reason"] == "ConsumerNotFound"
    assert "did you mean cluster1?" in str(result_in(tmp_path)["message"])
    assert hyperfleet.condition("job6", "controlplane", "Health")["status"] == "False"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        pytest.param(lambda folder: None, "does not exist; mount it", id="missing"),
        pytest.param(lambda folder: folder.write_text(""), "does not exist; mount it", id="a-file"),
    ],
)
def test_a_results_folder_that_cannot_be_used_stops_the_job_before_it_does_anything(
    make: object, told: str, fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    make(folder)  # type: ignore[operator]
    hyperfleet.put("Cluster", "job7", spec=SPEC)
    ran = command("run", HOSTED, **environ(fleet, hyperfleet, "job7", folder))
    assert ran.returncode == 1
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr
    with fleet.maestro("controlplane") as maestro:
        assert list(maestro.works(None).list(labels={"hyperfleet.io/cluster-id": "job7"})) == []


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param("{", "failed to unmarshal the event", id="no-json"),
        pytest.param("{}", "id is missing, generation is missing, kind is missing", id="empty"),
        pytest.param(
            '{"id": "a", "kind": "Cluster", "generation": "5"}', "generation is '5', and must be a whole", id="text"
        ),
    ],
)
def test_an_event_that_is_none_is_one_sentence(event: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(event)
    ran = command("run", HOSTED, "--event", str(tmp_path / "event.json"))
    assert ran.returncode == 1
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_recorded_run_is_replayed_without_a_fleet(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job8", spec=SPEC)
    told = environ(fleet, hyperfleet, "job8", tmp_path)
    real = command("run", HOSTED, "--record", str(tmp_path / "run.json"), **told)
    assert real.returncode == 0, real.stderr
    again = command("run", HOSTED, "--replay", str(tmp_path / "run.json"))
    assert again.returncode == 0, again.stderr
    assert "create  work cluster1/hostedcluster-job8" in again.stdout
    assert "Applied=True AppliedManifestWorkComplete" in again.stdout


def test_a_missing_spec_is_not_an_empty_one(fleet: RunningFleet) -> None:
    ran = command("run", HOSTED, CLUSTER_ID="job9", GENERATION="1", **fleet.environ)
    assert ran.returncode == 2
    assert "the event carries no spec; set HYPERFLEET_API_URL, or give --resource" in ran.stdout
