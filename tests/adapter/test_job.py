"""An adapter as a Job: its environment, its result files and its exit code, also when it is killed."""

import json
import os
import signal
from pathlib import Path

import pytest

from maestropy.sandbox import ports
from maestropy.testing import Cluster, FakeHyperFleet, RunningFleet
from tests import waiting
from tests.adapter.runs import EXAMPLES, GROUP, command, started

pytestmark = pytest.mark.long

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
    result: dict[str, object] = json.loads((folder / "adapter-result.json").read_text())
    return result


def conditions_in(folder: Path) -> dict[str, tuple[str, str]]:
    """The status and the reason of every condition that was reported."""
    report = json.loads((folder / "adapter-report.json").read_text())
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in report["conditions"]}


def works_for(cluster_id: str, fleet: RunningFleet) -> list[tuple[str, int]]:
    with fleet.maestro("controlplane") as maestro:
        works = list(maestro.works(None).list(labels={"hyperfleet.io/cluster-id": cluster_id}))
    return [(work.name, work.version) for work in works]


def test_job_waits_until_available_and_writes_both_files(
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
    assert [condition["type"] for condition in document["conditions"]] == [
        "Applied",
        "Available",
        "Health",
        "Finalized",
    ]
    assert document["data"]["control_plane_endpoint"] == "api.example.net:6443"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


def test_wait_that_times_out_is_retryable(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job2", spec=SPEC)
    ran = command("run", HOSTED, "--wait", "1s", **environ(fleet, hyperfleet, "job2", tmp_path))
    assert ran.returncode == 75, ran.stderr
    assert result_in(tmp_path)["reason"] == "NotSynced"


def test_rerun_after_kill_has_one_work_and_one_status(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job3", spec=SPEC)
    variables = environ(fleet, hyperfleet, "job3", tmp_path)
    job = started("run", HOSTED, "--wait", "30s", **variables)
    hypershift.wait_for(GROUP, "HostedCluster", "job3", namespace="clusters")
    os.kill(job.pid, signal.SIGKILL)
    job.communicate()
    assert list(tmp_path.iterdir()) == []
    # The temporary file of a run that was killed while it wrote.
    (tmp_path / f".adapter-result.json.{job.pid}.unfinished").write_text('{"status": "succ')

    hypershift.set_status(GROUP, "HostedCluster", "job3", namespace="clusters", status=READY)
    again = command("run", HOSTED, "--wait", "30s", **variables)
    assert again.returncode == 0, again.stderr
    assert works_for("job3", fleet) == [("hostedcluster-job3", 1)]
    assert list(hyperfleet.statuses["job3"]) == ["controlplane"]
    assert hyperfleet.status_codes == [201]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


@pytest.mark.parametrize("moment", ["GET", "PUT"], ids=["before-create", "after-status"])
def test_rerun_after_kill_at_any_request_ends_the_same(
    moment: str, fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    name = f"killed-{moment.lower()}"
    hyperfleet.put("Cluster", name, spec=SPEC)
    variables = environ(fleet, hyperfleet, name, tmp_path)
    job = started("run", HOSTED, **variables)
    waiting.wait_for(lambda: any(request.startswith(moment) for request in hyperfleet.requests))
    os.kill(job.pid, signal.SIGKILL)
    job.communicate()
    for path in tmp_path.glob("*.json"):
        json.loads(path.read_text())  # complete, if it exists
    again = command("run", HOSTED, **variables)
    assert again.returncode == 0, again.stderr
    assert works_for(name, fleet) == [(f"hostedcluster-{name}", 1)]
    assert list(hyperfleet.statuses[name]) == ["controlplane"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapter-report.json", "adapter-result.json"]


def test_concurrent_jobs_create_one_work(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "twice", spec=SPEC)
    variables = environ(fleet, hyperfleet, "twice", tmp_path)
    jobs = [started("run", HOSTED, **variables) for _ in range(3)]
    outs = [job.communicate(timeout=60)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], outs
    assert works_for("twice", fleet) == [("hostedcluster-twice", 1)]


def test_job_stopped_while_it_waits_reports_the_applied_work(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job4", spec=SPEC)
    job = started("run", HOSTED, "--wait", "30s", **environ(fleet, hyperfleet, "job4", tmp_path))
    hypershift.wait_for(GROUP, "HostedCluster", "job4", namespace="clusters")
    with fleet.maestro("controlplane") as maestro:
        maestro.works("cluster1").wait_for("hostedcluster-job4", "Applied", timeout=60)
    job.terminate()
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 75, out
    assert conditions_in(tmp_path) == {
        "Applied": ("True", "AppliedManifestWorkComplete"),
        "Available": ("Unknown", "NotSynced"),
        "Health": ("True", "Interrupted"),
        "Finalized": ("False", "NotDeleting"),
    }
    assert hyperfleet.condition("job4", "controlplane", "Applied")["status"] == "True"


def test_job_stopped_before_it_knows_its_works_reports_unknown(hyperfleet: FakeHyperFleet, tmp_path: Path) -> None:
    hyperfleet.put("Cluster", "job10", spec=SPEC)
    hyperfleet.is_down = True
    variables = {"HYPERFLEET_API_URL": hyperfleet.url, "CLUSTER_ID": "job10", "GENERATION": "1"}
    unused = {"MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"}
    job = started("run", HOSTED, RESULTS_PATH=str(tmp_path), **variables, **unused)
    waiting.wait_for(lambda: bool(hyperfleet.requests))
    job.terminate()
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 75, out
    assert conditions_in(tmp_path)["Applied"] == ("Unknown", "Interrupted")
    assert hyperfleet.statuses == {}


FAULTY = """\
from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, Event, ObservedState, Resource, StatusReport

adapter = Adapter("faulty")


@adapter.reconciles("Cluster")
def desired(_: Event, cluster: Resource) -> DesiredState:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": cluster.id, "namespace": "default"}}
    return DesiredState(Work(f"faulty-{cluster.id}").add(config_map, feedback={"name": ".metadata.name"}), read=read)


def read(observed: ObservedState) -> StatusReport:
    names = {"expected": observed.feedback("name")}
    return StatusReport(available=names["actual"] == "x")
"""


@pytest.mark.parametrize("wait", ["0", "30s"], ids=["at-once", "waiting"])
def test_exception_in_read_leaves_applied_true_and_names_its_line(
    wait: str, fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    name = f"faulty{len(wait)}"
    adapter = tmp_path / "adapter.py"
    adapter.write_text(FAULTY)
    hyperfleet.put("Cluster", name, spec={})
    ran = command("run", str(adapter), "--wait", wait, "-v", **environ(fleet, hyperfleet, name, tmp_path))
    assert ran.returncode == 1, ran.stderr
    assert conditions_in(tmp_path) == {
        "Applied": ("True", "AppliedManifestWorkComplete"),
        "Available": ("Unknown", "ExecutionFailed"),
        "Health": ("False", "ExecutionFailed"),
        "Finalized": ("False", "NotDeleting"),
    }
    assert f"KeyError: 'actual' ({adapter}, line 15, in read)" in str(result_in(tmp_path)["message"])
    assert "Traceback (most recent call last):" in ran.stderr
    assert 'names["actual"]' in ran.stderr


def test_exception_in_handler_is_one_line_without_verbose(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(FAULTY.replace("cluster.id,", "cluster.spec['zone'],"))
    ran = command("run", str(adapter), "--dry-run", CLUSTER_ID="x", GENERATION="1")
    assert ran.returncode == 1
    assert f"Applied=Unknown ExecutionFailed: KeyError: 'zone' ({adapter}, line 9, in desired)" in ran.stdout
    assert "Traceback" not in ran.stderr
    with_details = command("run", str(adapter), "--dry-run", "--verbose", CLUSTER_ID="x", GENERATION="1")
    assert "Traceback (most recent call last):" in with_details.stderr


def test_adapter_that_cannot_be_imported_shows_its_traceback_with_verbose(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text("import json\n\njson.loads('{')\n")
    ran = command("run", str(adapter), "--dry-run", "-v", CLUSTER_ID="x", GENERATION="1")
    assert ran.returncode == 1
    assert "Traceback (most recent call last):" in ran.stderr
    assert f"Error: {adapter} cannot be imported, line 3 of {adapter}: JSONDecodeError" in ran.stderr


def test_job_waits_for_a_restarting_server(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job5", spec=SPEC)
    fleet.kill_server()
    try:
        job = started("run", HOSTED, **environ(fleet, hyperfleet, "job5", tmp_path))
        waiting.wait_for(lambda: bool(hyperfleet.requests))
        assert job.poll() is None
    finally:
        fleet.start_server()
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0, out
    hypershift.wait_for(GROUP, "HostedCluster", "job5", namespace="clusters")


def test_unknown_consumer_is_reported_with_similar_names(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job6", spec=SPEC)
    ran = command("run", HOSTED, "--consumer", "cluster2", **environ(fleet, hyperfleet, "job6", tmp_path))
    assert ran.returncode == 1
    assert result_in(tmp_path)["reason"] == "ConsumerNotFound"
    assert "did you mean cluster1?" in str(result_in(tmp_path)["message"])
    assert hyperfleet.condition("job6", "controlplane", "Health")["status"] == "False"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        pytest.param(lambda folder: None, "does not exist; mount it", id="missing"),
        pytest.param(lambda folder: folder.write_text(""), "does not exist; mount it", id="a-file"),
    ],
)
def test_unusable_results_folder_stops_the_job_before_any_effect(
    prepare: object, message: str, fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    prepare(folder)  # type: ignore[operator]
    hyperfleet.put("Cluster", "job7", spec=SPEC)
    ran = command("run", HOSTED, **environ(fleet, hyperfleet, "job7", folder))
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    with fleet.maestro("controlplane") as maestro:
        assert list(maestro.works(None).list(labels={"hyperfleet.io/cluster-id": "job7"})) == []


@pytest.mark.parametrize(
    ("event", "message"),
    [
        pytest.param("{", "event.json: failed to unmarshal the event: Expecting", id="not-json"),
        pytest.param("{}", "id is missing, generation is missing, kind is missing", id="empty"),
        pytest.param(
            '{"id": "a", "kind": "Cluster", "generation": "5"}',
            "generation is '5', and must be a whole",
            id="string-generation",
        ),
    ],
)
def test_malformed_event_is_a_one_line_error(event: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(event)
    ran = command("run", HOSTED, "--event", str(tmp_path / "event.json"))
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_recorded_run_is_replayed_without_a_fleet(
    fleet: RunningFleet, hypershift: Cluster, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    hyperfleet.put("Cluster", "job8", spec=SPEC)
    variables = environ(fleet, hyperfleet, "job8", tmp_path)
    real = command("run", HOSTED, "--record", str(tmp_path / "run.json"), **variables)
    assert real.returncode == 0, real.stderr
    replayed = command("run", HOSTED, "--replay", str(tmp_path / "run.json"))
    assert replayed.returncode == 0, replayed.stderr
    assert "create  work cluster1/hostedcluster-job8" in replayed.stdout
    assert "Applied=True AppliedManifestWorkComplete" in replayed.stdout
    assert replayed.stderr == ""
    changed = tmp_path / "hosted_cluster.py"
    changed.write_text(Path(HOSTED).read_text().replace("hostedcluster-", "hc-"))
    deviating = command("run", str(changed), "--replay", str(tmp_path / "run.json"))
    assert deviating.returncode == 1
    assert "Error: the run deviates from the recording:\n" in deviating.stderr
    assert "creates work cluster1/hostedcluster-job8, this one creates work cluster1/hc-job8\n" in deviating.stderr


def test_missing_spec_is_not_an_empty_spec(fleet: RunningFleet) -> None:
    ran = command("run", HOSTED, CLUSTER_ID="job9", GENERATION="1", **fleet.environ)
    assert ran.returncode == 2
    assert "the event carries none; set HYPERFLEET_API_URL, or give --resource" in ran.stdout


@pytest.mark.parametrize("suffix", ["", ":adapter"], ids=["file", "file-and-name"])
def test_lint_of_a_file_uses_the_samples_beside_it(suffix: str, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"
    adapter.write_text(FAULTY.replace("cluster.id,", "cluster.spec['zone'],"))
    without = command("lint", f"{adapter}{suffix}")
    assert "give --sample FILE" in without.stdout
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "cluster.json").write_text(
        json.dumps({"id": "abc", "kind": "Cluster", "generation": 1, "spec": {"zone": "a"}})
    )
    ran = command("lint", f"{adapter}{suffix}")
    assert (ran.returncode, ran.stdout) == (0, "no findings\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("init", "My Adapter"), "the adapter's name is 'My Adapter'", id="init"),
        pytest.param(("run", "nowhere/adapter.py"), "there is no file nowhere/adapter.py", id="run"),
        pytest.param(("lint", "nowhere.yaml"), "there is no file nowhere.yaml", id="lint"),
        pytest.param(("lint", "nowhere/adapter.py"), "there is no file nowhere/adapter.py", id="lint-adapter"),
        pytest.param(("run", HOSTED, "--event", "nowhere.json"), "--event=nowhere.json cannot be read", id="event"),
    ],
)
def test_mistake_in_the_command_line_exits_with_2(arguments: tuple[str, ...], message: str) -> None:
    ran = command(*arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"Error: {message}")


def test_event_in_the_environment_that_is_malformed_exits_with_2() -> None:
    ran = command("run", HOSTED, CLUSTER_ID="x", GENERATION="one")
    assert ran.returncode == 2
    assert "the event in the environment: " in ran.stderr


def test_resource_that_is_not_json_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text('{"id": "x",\n oops')
    ran = command("run", HOSTED, "--resource", str(tmp_path / "cluster.json"), CLUSTER_ID="x", GENERATION="1")
    assert ran.returncode == 2
    assert f"{tmp_path}/cluster.json: failed to unmarshal the resource: " in ran.stderr
    assert "(line 2, column 2); give a JSON object" in ran.stderr


CLOSING = """\
import os, sys
from maestropy import Work
from maestropy.adapter import Adapter, DesiredState, StatusReport

adapter = Adapter("closing")


@adapter.reconciles("Cluster")
def desired(_, cluster):
    sys.stdout.close()
    os.close(1)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": cluster.id, "namespace": "default"}}
    work = Work(f"closing-{cluster.id}").add(config_map)
    return DesiredState(work, read=lambda observed: StatusReport(available=True))
"""


def test_a_handler_that_closes_standard_output_does_not_abort_the_process(
    fleet: RunningFleet, hyperfleet: FakeHyperFleet, tmp_path: Path
) -> None:
    """The connections that are opened after the call must not get the number of standard output."""
    hyperfleet.put("Cluster", "closing", spec=SPEC)
    (tmp_path / "adapter.py").write_text(CLOSING)
    ran = command("run", str(tmp_path / "adapter.py"), **environ(fleet, hyperfleet, "closing", tmp_path))
    assert ran.returncode == 0, ran.stderr
    assert "Health     True" in ran.stdout
    assert conditions_in(tmp_path)["Health"][0] == "True"


def test_convert_replaces_a_file_only_with_force(tmp_path: Path) -> None:
    task, output = tmp_path / "task.yaml", tmp_path / "adapter.py"
    task.write_text("c: [d\n")
    output.write_text("mine")
    refused = command("convert", str(task), "--output", str(output))
    assert refused.returncode == 2
    assert refused.stderr == f"Error: {output} exists; name another file, or give --force to replace it\n"
    assert output.read_text() == "mine"
    malformed = command("convert", str(task), "--output", str(output), "--force")
    assert malformed.returncode == 1
    assert f"in {task}, line" in malformed.stderr


def test_server_that_is_away_is_named_at_the_first_attempt() -> None:
    port = ports.free(1)[0]
    ran = command(
        *("run", HOSTED, "--event-timeout", "3s"),
        EVENT=json.dumps({"id": "x", "kind": "Cluster", "name": "x", "generation": 1, "spec": SPEC}),
        MAESTRO_API_URL=f"http://127.0.0.1:{port}",
        MAESTRO_GRPC_URL=f"127.0.0.1:{port}",
        MANAGEMENT_CLUSTER_CONSUMER="cluster1",
    )
    assert ran.returncode == 75
    first, *_ = ran.stderr.splitlines()
    assert f"no response from http://127.0.0.1:{port}/" in first
    assert first.endswith("trying again for up to 90 seconds")


def test_dry_run_of_a_deletion_says_what_it_assumes() -> None:
    resource = {"id": "x", "kind": "Cluster", "generation": 1, "deleted_time": "2026-01-01T00:00:00Z", "spec": SPEC}
    shown = command("run", HOSTED, "--dry-run", EVENT=json.dumps(resource))
    assert shown.returncode == 0
    assert "Finalized=True Deleted" in shown.stdout
    assert shown.stdout.splitlines()[-1].startswith("note    assuming that no works exist; ")
