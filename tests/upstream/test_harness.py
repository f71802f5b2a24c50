"""The harness around upstream's suites: reports, the page, volumes of pods, and what it says without the source."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.upstream import pod, pod_files, pod_network, results
from tests.upstream.results import Result

REPORT = """<testsuites><testsuite>
<testcase name="[BeforeSuite]" status="passed"/>
<testcase name="[It] Consumers CRUD list consumers [e2e-tests-consumers]" status="passed"/>
<testcase name="[It] Resources CRUD patch [e2e-tests-resources]" status="failed">
  <failure message="Timed out after 300 s.&#10;expected 2 | got &lt;int&gt; 1" type="failed">long</failure>
</testcase>
<testcase name="[It] Rotation [e2e-tests-cert-rotation]" status="skipped"><skipped message="skipped"/></testcase>
</testsuite></testsuites>"""


def result(column: str, **changes: object) -> Result:
    fields: dict[str, object] = {
        "suite": "e2e",
        "column": column,
        "date": "2026-11-16",
        "upstream": "ab480c6578bc of 2026-08-04",
        "maestropy": "0.2.0",
        "passed": 40,
        "failed": {},
        "skipped": 0,
        "seconds": 300,
    }
    return Result(**{**fields, **changes})  # type: ignore[arg-type]


def test_report_of_a_suite(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    passed, failed, skipped = results.read_junit(report)
    assert (passed, skipped) == (1, 1)
    assert failed == {"Resources CRUD patch": "Timed out after 300 s. expected 2 \\| got ‹int› 1"}


def test_section_names_what_failed_and_what_did_not_run(tmp_path: Path) -> None:
    results.keep(result("go-go-grpc", failed={"old": "reason"}), tmp_path)
    results.keep(result("go-go-grpc"), tmp_path)
    results.keep(result("python-go-mqtt", passed=39, failed={"Resources patch": "timed out"}), tmp_path)
    text = results.section(results.kept(tmp_path), suites={"e2e": ("go-go-grpc", "python-go-mqtt", "go-go-pubsub")})
    assert "| go | go | grpc | 40 of 40 | 0 | 2026-11-16 | ab480c6578bc of 2026-08-04 | 0.2.0 |" in text
    assert "| python | go | mqtt | 39 of 40 |" in text
    assert "- python-go-mqtt: *Resources patch*: timed out" in text
    assert "| go | go | pubsub | not run |" in text
    assert "old" not in text


def test_section_says_what_is_otherwise_on_purpose() -> None:
    failed = {"Executor Apply Executor does not have permission": "timed out", "Other": "timed out", "Job": "timed out"}
    baseline = result("suite-go-mqtt", suite="ocm", failed={"Job": "invalid"})
    text = results.section([baseline, result("suite-python-mqtt", suite="ocm", failed=failed)])
    assert "- suite-go-mqtt: *Job*: invalid" in text
    assert "- suite-python-mqtt: *Job*: for Go too" in text
    assert "*Executor Apply Executor does not have permission*: on purpose: nothing is reported of objects" in text
    assert "*Other*: timed out" in text


def test_section_is_replaced_and_the_rest_of_the_page_stays() -> None:
    first = f"{results.BEGIN}\none\n{results.END}"
    page = results.put_section("# Page\n", first)
    assert results.section_of(page) == first
    again = results.put_section(page + "\n## After\n", f"{results.BEGIN}\ntwo\n{results.END}")
    assert again == f"# Page\n\n{results.BEGIN}\ntwo\n{results.END}\n\n## After\n"


def test_volume_changes_as_a_whole(tmp_path: Path) -> None:
    pod_files.write_volume(tmp_path, {"client.crt": b"old", "gone": b"x"})
    pod_files.write_volume(tmp_path, {"client.crt": b"new", "client.key": b"key"})
    visible = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.startswith("..")}
    assert visible == {"client.crt": b"new", "client.key": b"key"}


def test_container_is_told_what_its_manifest_says() -> None:
    manifest = {"metadata": {"name": "maestro-0"}}
    container = {
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "MAESTRO_ENV", "value": "development"},
        ]
    }
    variables = pod.own_variables(container, manifest)
    assert variables == {"POD_NAME": "maestro-0", "MAESTRO_ENV": "development"}
    assert pod.expanded("--client-id=maestro-$(POD_NAME)", variables) == "--client-id=maestro-maestro-0"


def test_short_names_of_services_are_for_their_namespace() -> None:
    services = [{"name": "maestro-db", "namespace": "maestro", "address": "10.0.0.7"}]
    assert "10.0.0.7 maestro-db maestro-db.maestro " in pod_network.hosts(services, namespace="maestro")
    assert "10.0.0.7 maestro-db.maestro " in pod_network.hosts(services, namespace="maestro-agent")


def test_absent_source_is_said_and_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.upstream"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert outcome.returncode == 0, outcome.stderr
    assert "upstream's suites are not run: " in outcome.stdout
