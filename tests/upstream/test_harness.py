"""The harness around upstream's suites: reports, the page, volumes of pods, and what it says without the source."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers import go_build
from tests.upstream import integration_suite, pod, pod_files, pod_network, results
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
    }
    return Result(**{**fields, **changes})  # type: ignore[arg-type]


def test_report_of_a_suite(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    passed, failed, skipped = results.read_junit(report)
    assert (passed, skipped) == (1, 1)
    assert failed == {"Resources CRUD patch": "Timed out after 300 s. expected 2 \\| got ‹int› 1"}


def test_section_names_what_failed_and_what_did_not_run() -> None:
    page = results.with_result("# Page\n", result("go-go-grpc", failed={"old": "reason"}))
    page = results.with_result(page, result("go-go-grpc"))
    text = results.with_result(page, result("python-go-mqtt", passed=39, failed={"Resources patch": "timed out"}))
    assert "| go | go | grpc | 40 of 40 | 0 | 2026-11-16 | ab480c6578bc of 2026-08-04 | 0.2.0 |" in text
    assert "| python | go | mqtt | 39 of 40 |" in text
    assert "- python-go-mqtt: *Resources patch*: timed out" in text
    assert "| go | go | pubsub | not run |" in text
    assert "old" not in text


def test_results_are_kept_by_the_page() -> None:
    runs = [
        result("python-go-mqtt", passed=39, failed={"patch: a *b": "timed out: 2 \\| 1", "other": "x"}, skipped=1),
        result("suite-go-mqtt", suite="ocm", passed=1, note="ended after 30 minutes", maestropy="0.2.0 1d1748464a14"),
    ]
    page = "# Page\n"
    for run in runs:
        page = results.with_result(page, run)
    assert results.read_page(page) == runs


def test_page_is_what_is_written_from_its_results() -> None:
    page = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text()
    assert results.put_section(page, results.section(results.read_page(page))) == page


def test_clean_up_after_all_cases_is_no_case() -> None:
    text = results.section([result("go-go-grpc", failed={"[AfterSuite]": "timed out"})])
    assert "| go | go | grpc | 40 of 40 |" in text
    assert "- go-go-grpc: *[AfterSuite]*: the agent of a case" in text


def test_section_says_what_is_otherwise_on_purpose() -> None:
    failed = {"Feedback should return statuses by JSONPaths": "timed out", "Other": "timed out", "Job": "timed out"}
    baseline = result("suite-go-mqtt", suite="ocm", failed={"Job": "invalid"})
    text = results.section([baseline, result("suite-python-mqtt", suite="ocm", failed=failed)])
    assert "- suite-go-mqtt: *Job*: invalid" in text
    assert "- suite-python-mqtt: *Job*: for Go too" in text
    assert "*Feedback should return statuses by JSONPaths*: on purpose: the suite leaves structures out" in text
    assert "*Other*: timed out" in text


def test_report_of_cases_that_go_runs(tmp_path: Path) -> None:
    output = (
        "=== RUN   TestConsumerGet\n--- PASS: TestConsumerGet (0.01s)\n=== RUN   TestConsumerPost\n"
        "    consumers_test.go:60: expected 201\n--- FAIL: TestConsumerPost (0.02s)\npanic: broken\n"
    )
    integration_suite.write_report(output, skipped=["TestControllerRacing"], report=tmp_path / "report.xml")
    passed, failed, skipped = results.read_reports(tmp_path)
    assert (passed, skipped) == (1, 1)
    assert failed["TestConsumerPost"] == "consumers_test.go:60: expected 201"
    assert failed["TestResourceFromGRPC"].startswith("did not end: ")
    assert passed + len(failed) == len(integration_suite.CASES)


def test_helper_of_the_suite_starts_no_server() -> None:
    source = "".join(f"{line}\n" for line in integration_suite.LEFT_OUT)
    assert "start" not in integration_suite.helper_without_server(source)
    with pytest.raises(go_build.Unavailable, match=r"does not have once: helper.startAPIServer\(\)"):
        integration_suite.helper_without_server(source.replace("startAPIServer", "serve"))


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
