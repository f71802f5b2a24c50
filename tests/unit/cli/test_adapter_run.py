"""`maestro adapter run` that fails before its event is handled: the results files give the reason."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import main
from tests import waiting

ADAPTER = """\
from maestropy.adapter import Adapter, Event, Resource, StatusReport

adapter = Adapter("hello")


@adapter.reconciles("Cluster")
def desired(_: Event, cluster: Resource) -> StatusReport:
    return StatusReport(available=True)
"""
EVENT = {"id": "abc", "kind": "Cluster", "generation": 3}
RESOURCE = {"id": "abc", "kind": "Cluster", "generation": 3, "spec": {}}


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESULTS_PATH", "EVENT", "RESOURCE_ID", "CLUSTER_ID", "RESOURCE_FILE"):
        monkeypatch.delenv(name, raising=False)


def run(folder: Path, *arguments: str, results: Path | None = None, **files: Any) -> int:
    contents = {"adapter.py": ADAPTER, "event.json": EVENT, "resource.json": RESOURCE} | {
        name.replace("_", "."): content for name, content in files.items()
    }
    for name, content in contents.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    given = ("--event", f"{folder}/event.json", "--resource", f"{folder}/resource.json")
    target = results or folder / "adapter-result.json"
    return main.call(["adapter", "run", f"{folder}/adapter.py", *given, "--results", str(target), *arguments])


@pytest.mark.parametrize(
    ("files", "arguments", "code", "reason", "message", "details"),
    [
        pytest.param(
            {"adapter_py": "import no_such_module\n"}, [], 1, "BadAdapter", "No module named 'no_such_module'", {},
            id="adapter-cannot-be-imported",
        ),
        pytest.param(
            {"event_json": "{"}, [], 2, "MalformedEvent", "(line 1, column 2)", {"adapter": "hello"},
            id="event-is-not-json",
        ),
        pytest.param(
            {"event_json": {"id": "abc"}}, [], 2, "MalformedEvent", "generation is missing", {"adapter": "hello"},
            id="event-without-a-generation",
        ),
        pytest.param(
            {"resource_json": {**RESOURCE, "kind": "NodePool"}}, [], 2, "NotStarted",
            "its kind is 'NodePool', and the event is of a 'Cluster'", {"adapter": "hello", "observed_generation": 3},
            id="resource-of-another-kind",
        ),
        pytest.param(
            {}, ["--wait", "soon"], 2, "NotStarted", "--wait", {"adapter": "hello", "observed_generation": 3},
            id="bad-flag",
        ),
        pytest.param({}, ["--wiat", "10m"], 2, "NotStarted", "Unknown option: --wiat", {}, id="unknown-flag"),
    ],
)  # fmt: skip
def test_failure_before_the_event_is_written(
    files: dict[str, Any],
    arguments: list[str],
    code: int,
    reason: str,
    message: str,
    details: dict[str, Any],
    tmp_path: Path,
) -> None:
    assert run(tmp_path, *arguments, **files) == code
    result = json.loads((tmp_path / "adapter-result.json").read_text())
    assert (result["status"], result["reason"]) == ("failure", reason)
    assert message in result["message"]
    conditions = result["details"].pop("conditions")
    assert result["details"] == details
    assert {item["type"]: item["status"] for item in conditions} == {
        "Applied": "Unknown", "Available": "Unknown", "Health": "False", "Finalized": "False",
    }  # fmt: skip
    assert json.loads((tmp_path / "adapter-report.json").read_text())["conditions"] == conditions


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param({}, "NotDeleting", id="not-deleted"),
        pytest.param(
            {"resource_json": {**RESOURCE, "deleted_time": "2026-01-01T00:00:00Z"}}, "NotStarted", id="deleted"
        ),
        pytest.param({"event_json": "{"}, "MalformedEvent", id="not-read"),
    ],
)
def test_a_failure_calls_only_a_resource_that_was_read_not_deleting(
    files: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    run(tmp_path, "--wait", "soon", **files)
    conditions = json.loads((tmp_path / "adapter-report.json").read_text())["conditions"]
    assert [item["reason"] for item in conditions if item["type"] == "Finalized"] == [reason]


def test_unknown_flag_is_written_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESULTS_PATH", str(tmp_path))
    assert main.call(["adapter", "run", "adapter.py", "--wiat=10m"]) == 2
    assert json.loads((tmp_path / "adapter-result.json").read_text())["reason"] == "NotStarted"
    (tmp_path / "adapter-result.json").unlink()
    assert main.call(["adapter", "run", "adapter.py", "--wiat=10m", "--dry-run"]) == 2
    assert not (tmp_path / "adapter-result.json").exists()


def test_a_dry_run_writes_no_results(tmp_path: Path) -> None:
    assert run(tmp_path, "--dry-run", event_json="{") == 2
    assert not (tmp_path / "adapter-result.json").exists()


INVALID = f"""\
from maestropy import Work
{ADAPTER.replace("return StatusReport(available=True)", "return Work('a').add(NAMESPACE)")}
NAMESPACE = {{"apiVersion": "v1", "kind": "Namespace", "metadata": {{"name": "a", "labels": {{"at": "1:30"}}}}}}
"""


def test_a_dry_run_rejects_a_work_as_the_client_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--dry-run", adapter_py=INVALID) == 1
    captured = capsys.readouterr()
    assert "Applied=False Invalid: cannot use work 'a': metadata.labels: Invalid value: \"1:30\"" in captured.out


def test_results_that_cannot_be_written_hide_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, results=tmp_path / "nowhere" / "adapter-result.json", event_json="{") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("Warning: the results directory ")
    assert "event.json: failed to unmarshal the event" in lines[1]


def ran_alone(folder: Path, adapter: str) -> subprocess.CompletedProcess[str]:
    """Run an adapter in a process of its own: it may end the process, or close its streams."""
    for file, content in {"adapter.py": adapter, "event.json": json.dumps(RESOURCE)}.items():
        (folder / file).write_text(content)
    arguments = ("adapter", "run", "adapter.py", "--event", "event.json", "--results", ".")
    return subprocess.run(
        [sys.executable, "-m", "maestropy", *arguments],
        cwd=folder,
        env={**os.environ, "MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_keyboard_interrupt_of_the_adapter_leaves_results(tmp_path: Path) -> None:
    assert ran_alone(tmp_path, "raise KeyboardInterrupt\n").returncode == 130
    result = json.loads((tmp_path / "adapter-result.json").read_text())
    assert (result["status"], result["reason"]) == ("failure", "Interrupted")
    assert result["message"] == "KeyboardInterrupt before the event was handled"


CLOSING = ADAPTER.replace("    return", "    {}\n    return")


@pytest.mark.parametrize(
    "adapter",
    [
        pytest.param(CLOSING.format("import os; os.close(1)"), id="descriptor"),
        pytest.param(CLOSING.format("import sys; sys.stdout.close()"), id="stream"),
        pytest.param(CLOSING.format("import os, sys; sys.stdout.close(); os.close(1)"), id="both"),
        pytest.param(f"import os\nos.close(1)\n{ADAPTER}", id="import"),
    ],
)
def test_an_adapter_that_closes_standard_output_loses_neither_results_nor_output(adapter: str, tmp_path: Path) -> None:
    done = ran_alone(tmp_path, adapter)
    assert "Health     True" in done.stdout, done.stderr
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "adapter-result.json").is_file()


def test_an_adapter_that_closes_standard_error_does_not_hide_its_failure(tmp_path: Path) -> None:
    closing = CLOSING.format("import os, sys; sys.stderr.close(); os.close(2); raise ValueError('x')")
    done = ran_alone(tmp_path, closing)
    assert done.stderr.startswith("event of Cluster abc failed: ValueError: x")
    assert done.returncode == 1
    assert (tmp_path / "adapter-result.json").is_file()


def test_missing_results_directory_exits_with_2_whatever_else_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "nowhere" / "adapter-result.json"
    assert run(tmp_path, results=missing, adapter_py="import no_such_module\n") == 2
    assert "No module named 'no_such_module'" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)], ids=["SIGTERM", "Ctrl-C"])
def test_signal_during_the_import_of_the_adapter_is_written(number: signal.Signals, code: int, tmp_path: Path) -> None:
    imported = tmp_path / "imported"
    (tmp_path / "adapter.py").write_text(
        f"import pathlib, threading\npathlib.Path({str(imported)!r}).touch()\nthreading.Event().wait()\n"
    )
    words = ["adapter", "run", f"{tmp_path}/adapter.py", "--results", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-m", "maestropy", *words]) as job:
        waiting.wait_for(imported.exists)
        job.send_signal(number)
        assert job.wait(timeout=60) == code
    result = json.loads((tmp_path / "adapter-result.json").read_text())
    assert (result["status"], result["reason"]) == ("failure", "Interrupted")
    assert (tmp_path / "adapter-report.json").exists()


@pytest.mark.parametrize("flag", ["--record", "--results"])
@pytest.mark.parametrize("name", ["adapter.py", "event.json", "resource.json"])
def test_an_output_does_not_overwrite_an_input(
    flag: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) != 2
    before = (tmp_path / name).read_bytes()
    given = ["--event", f"{tmp_path}/event.json", "--resource", f"{tmp_path}/resource.json"]
    link = tmp_path / "link"
    link.symlink_to(tmp_path / name)
    for output in (tmp_path / name, link):
        words = ["adapter", "run", f"{tmp_path}/adapter.py", *given, flag, str(output)]
        assert main.call(words) == 2
        assert f"{flag} {output} would overwrite the input {tmp_path / name}" in capsys.readouterr().err
        assert main.call([*words, "--wiat"]) == 2
    assert (tmp_path / name).read_bytes() == before
    assert link.is_symlink()


def test_results_and_recording_are_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--record", f"{tmp_path}/adapter-result.json") == 2
    assert "--record and --results name the same file" in capsys.readouterr().err
    assert run(tmp_path, "--record", f"{tmp_path}/adapter-report.json") == 2


@pytest.mark.parametrize("kind", ["pipe", "folder", "no-folder"])
def test_a_recording_that_cannot_be_written_is_rejected_at_once(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "out" / "run.json" if kind == "no-folder" else tmp_path / "out"
    if kind == "pipe":
        os.mkfifo(record)
    if kind == "folder":
        record.mkdir()
    assert run(tmp_path, "--record", str(record)) == 2
    message = "there is no folder" if kind == "no-folder" else "is not a regular file"
    assert f"--record {record}" in (said := capsys.readouterr().err)
    assert message in said


def test_a_conversion_does_not_overwrite_its_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, link = tmp_path / "task.yaml", tmp_path / "link.py"
    task.write_text('schema_version: "2.0"\n')
    link.symlink_to(task)
    for output in (task, link):
        assert main.call(["adapter", "convert", str(task), "--name", "x", "--output", str(output), "--force"]) == 2
        assert f"--output {output} would overwrite the file of a task {task}" in capsys.readouterr().err
    assert task.read_text() == 'schema_version: "2.0"\n'


@pytest.mark.long
def test_code_that_keeps_the_interpreter_is_ended(tmp_path: Path) -> None:
    adapter = ADAPTER.replace("    return", '    import re\n    re.match(r"(a+)+$", "a" * 60 + "b")\n    return')
    for name, text in (("adapter.py", adapter), ("event.json", json.dumps(EVENT)), ("c.json", json.dumps(RESOURCE))):
        (tmp_path / name).write_text(text)
    program = (
        "from maestropy.cli.adapter import run; import sys; run._STOP_SECONDS = 1.0; "
        "from maestropy.cli import main; sys.exit(main.call(sys.argv[1:]))"
    )
    words = ["adapter", "run", "adapter.py", "--event", "event.json", "--resource", "c.json", "--event-timeout", "1s"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        env={**os.environ, "MAESTRO_API_URL": "http://127.0.0.1:1", "MAESTRO_GRPC_URL": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Timeout (0:00:02)!" in done.stderr
    assert "adapter.py" in done.stderr
