# ruff: noqa: E501 - log lines are as long as they are
"""Requests with a known result, in both generations and every file format: the right stage, the right cause."""

import csv
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from maestropy.trace.logs import tracer
from maestropy.trace.logs.model import Options, RequestVerdict, StageState, Trace
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.log_writers import Environment
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, records, write

NOW = BASE + 86400
CREATE = LoggedRequest(work="nginx")
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 300)
DELETE = LoggedRequest(work="nginx", action="delete", version=2, at=BASE + 600, op_id="op-nginx-update-2")


def traced(paths: Iterable[Path]) -> tuple[list[Trace], Environment]:
    read = scan.scan_all([str(path) for path in paths], now=NOW)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    return sorted(tracer.traces(read.records, environment, options=Options()), key=lambda each: each.start), environment


def states(trace: Trace) -> dict[int, str]:
    return {stage.number: stage.state.value for stage in trace.stages}


@pytest.mark.parametrize("generation", ["G4", "G2"])
def test_create_update_delete_are_complete(tmp_path: Path, generation: str) -> None:
    traces, environment = traced([write(tmp_path, [CREATE, UPDATE, DELETE], generation)])
    assert [(trace.key.action, trace.key.version, trace.verdict) for trace in traces] == [
        ("create", 1, RequestVerdict.COMPLETE),
        ("update", 2, RequestVerdict.COMPLETE),
        ("delete", 2, RequestVerdict.COMPLETE),
    ]
    assert all(set(states(trace).values()) == {"ok"} for trace in traces)
    assert (environment.broker, environment.subscription, environment.instances) == ("mqtt", "broadcast", 3)
    assert {server.generation for server in environment.servers} == {generation}


def _rows(logged_requests: Sequence[LoggedRequest], generation: str) -> list[tuple[str, str, str]]:
    from datetime import UTC, datetime

    rows = [(at, pod, line) for pod, lines in records(logged_requests, generation).items() for at, line in lines]
    rows.sort(key=lambda row: row[0])
    return [
        (datetime.fromtimestamp(at, tz=UTC).isoformat().replace("+00:00", "Z"), pod, line) for at, pod, line in rows
    ]


def _csv(rows: Iterable[Sequence[str]], head: Sequence[str], *, quoting: Literal[0, 1], end: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=quoting, lineterminator=end)
    writer.writerows([head, *rows])
    return out.getvalue()


def three_columns(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    text = _csv(_rows(logged_requests, generation), ("TIMESTAMP", "pod_name", "log"), quoting=csv.QUOTE_ALL, end="\n")
    (folder / "export.csv").write_text(text)
    return folder / "export.csv"


def minimal_quoting(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    text = _csv(
        _rows(logged_requests, generation), ("TIMESTAMP", "pod_name", "log"), quoting=csv.QUOTE_MINIMAL, end="\r\n"
    )
    (folder / "export.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    return folder / "export.csv"


def two_columns_a_row_per_line(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    rows = [
        (pod, part) for _, pod, line in _rows(logged_requests, generation) for part in line.rstrip("\n").split("\n")
    ]
    text = _csv(rows, ("pod_name", "log"), quoting=csv.QUOTE_ALL, end="\r\n")
    (folder / "export.csv").write_bytes(text.encode())
    return folder / "export.csv"


def many_columns(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    rows = [(at, "cluster", "maestro", "c", pod, line) for at, pod, line in _rows(logged_requests, generation)]
    head = ("timestamp", "cluster", "namespace_name", "container_name", "pod_name", "log")
    (folder / "export.csv").write_text(_csv(rows, head, quoting=csv.QUOTE_MINIMAL, end="\n"))
    return folder / "export.csv"


def gzipped(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    for file in write(folder / "plain", logged_requests, generation).iterdir():
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    return folder


def zipped(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    with zipfile.ZipFile(folder / "logs.zip", "w") as archive:
        for file in write(folder / "plain", logged_requests, generation).iterdir():
            archive.write(file, file.name)
    return folder / "logs.zip"


def tarred(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    with tarfile.open(folder / "logs.tar.gz", "w:gz") as archive:
        archive.add(write(folder / "plain", logged_requests, generation), "logs")
    return folder / "logs.tar.gz"


def stamped_by_kubectl(folder: Path, logged_requests: Sequence[LoggedRequest], generation: str) -> Path:
    for pod, lines in records(logged_requests, generation).items():
        text = "".join(f"2026-01-15T09:00:01.123456789Z {part}\n" for _, line in lines for part in [line])
        (folder / f"{pod}.log").write_text(text)
    return folder


CONTAINERS = [three_columns, minimal_quoting, two_columns_a_row_per_line, many_columns, gzipped, zipped, tarred]


@pytest.mark.parametrize("generation", ["G4", "G2"])
@pytest.mark.parametrize("container", CONTAINERS, ids=lambda each: each.__name__)
def test_every_file_format_gives_the_same_verdict(
    tmp_path: Path, container: Callable[[Path, Sequence[LoggedRequest], str], Path], generation: str
) -> None:
    stopped = LoggedRequest(work="stopped", at=BASE + 100, until=4)
    traces, _ = traced([container(tmp_path, [CREATE, UPDATE, DELETE, stopped], generation)])
    found = {(trace.key.work_name, trace.key.action): (trace.verdict, trace.failed_stage) for trace in traces}
    assert found == {
        ("nginx", "create"): (RequestVerdict.COMPLETE, None),
        ("nginx", "update"): (RequestVerdict.COMPLETE, None),
        ("nginx", "delete"): (RequestVerdict.COMPLETE, None),
        ("stopped", "create"): (RequestVerdict.INCOMPLETE, 5),
    }


def test_kubectl_timestamps_are_removed(tmp_path: Path) -> None:
    traces, _ = traced([stamped_by_kubectl(tmp_path, [CREATE], "G4")])
    assert [trace.verdict for trace in traces] == [RequestVerdict.COMPLETE]


def test_without_agent_logs_its_stages_are_not_observable(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    (folder / f"{AGENT}.log").unlink()
    traces, _ = traced([folder])
    assert (traces[0].verdict, "MT-416" in {finding.code for finding in traces[0].findings}) == (
        RequestVerdict.UNKNOWN,
        True,
    )
    assert [states(traces[0])[stage] for stage in (3, 4, 5)] == ["not-observable"] * 3


def test_without_agent_logs_the_cause_is_only_possible(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=2), LoggedRequest(work="healthy", at=BASE - 100)])
    (folder / f"{AGENT}.log").unlink()
    traces, _ = traced([folder])
    found = next(trace for trace in traces if trace.key.resource == CREATE.resource)
    assert (found.verdict, found.failed_stage, found.confidence) == (RequestVerdict.INCOMPLETE, 6, "possible")
    assert [states(found)[stage] for stage in (3, 4, 5, 6)] == ["not-observable"] * 3 + ["missing"]


def test_agent_with_low_verbosity_is_not_observable(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=4)])
    log = folder / f"{AGENT}.log"
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if "Received event" not in line))
    traces, _ = traced([folder])
    assert states(traces[0])[5] == "not-observable"
    assert "MT-003" in {finding.code for finding in traces[0].findings}


def test_request_at_the_end_of_the_logs_is_pending(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=2)])
    for file in folder.iterdir():
        file.write_text("".join(x for x in file.read_text().splitlines(keepends=True) if "still here" not in x))
    (folder / f"{AGENT}.log").write_text(klog(BASE, "x.go:1", '"Caches are synced"') + "\n"
                                         + klog(BASE + 1, "x.go:1", '"Received event" eventType="other"') + "\n")  # fmt: skip
    traces, _ = traced([folder])
    assert (traces[0].verdict, traces[0].failed_stage) == (RequestVerdict.PENDING, 3)


def test_update_followed_by_another_is_superseded(tmp_path: Path) -> None:
    quick = [
        CREATE,
        replace(UPDATE, until=1),
        LoggedRequest(work="nginx", action="update", version=3, at=UPDATE.at + 0.01),
    ]
    traces, _ = traced([write(tmp_path, quick)])
    assert [trace.verdict for trace in traces] == [
        RequestVerdict.COMPLETE,
        RequestVerdict.SUPERSEDED,
        RequestVerdict.COMPLETE,
    ]
    assert traces[1].superseded_by == "update v3"


def test_reused_resource_id_has_two_incarnations(tmp_path: Path) -> None:
    again = [replace(CREATE, at=BASE + 900), replace(UPDATE, at=BASE + 1200, until=5)]
    traces, _ = traced([write(tmp_path, [CREATE, UPDATE, DELETE, *again])])
    assert [(trace.key.action, trace.key.incarnation, trace.verdict, trace.failed_stage) for trace in traces] == [
        ("create", 1, RequestVerdict.COMPLETE, None),
        ("update", 1, RequestVerdict.COMPLETE, None),
        ("delete", 1, RequestVerdict.COMPLETE, None),
        ("create", 2, RequestVerdict.COMPLETE, None),
        ("update", 2, RequestVerdict.INCOMPLETE, 6),
    ]


@pytest.mark.parametrize("skew", [0.35, -0.35, 3600.0], ids=["ahead", "behind", "an-hour-ahead"])
def test_agent_clock_skew_is_corrected(tmp_path: Path, skew: float) -> None:
    logged_requests = [LoggedRequest(work=f"w{number}", at=BASE + number, agent_clock=skew) for number in range(8)]
    folder = write(tmp_path, logged_requests)
    traces, environment = traced([folder])
    assert {trace.verdict for trace in traces} == {RequestVerdict.COMPLETE}
    agent = next(writer for writer in environment.writers if writer.pod == AGENT)
    assert agent.skew == pytest.approx(skew, abs=0.005)
    assert all((stage.hop or 0) >= -0.001 for trace in traces for stage in trace.stages)


def _append(folder: Path, pod: str, *lines: str) -> None:
    log = folder / f"{pod}.log"
    log.write_text(
        "".join(f"{line}\n" for line in sorted([*log.read_text().splitlines(), *lines], key=lambda x: x[:21]))
    )


def test_apply_error_fails_stage_4_despite_later_status(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    error = f'"controller failed to sync" err="Deployment.apps \\"nginx\\" is invalid: spec.image: Required value" logger="ManifestWorkController.UnhandledError" key="{CREATE.resource}"'
    _append(folder, AGENT, *(klog(BASE + 0.195 + number, "base_controller.go:159", error, "E") for number in range(3)))
    traces, _ = traced([folder])
    assert (traces[0].verdict, traces[0].failed_stage) == (RequestVerdict.FAILED, 4)
    finding = traces[0].findings[0]
    assert (finding.code, finding.confidence) == ("MT-404", "certain")
    assert 'Deployment.apps "nginx" is invalid' in finding.detail
    assert all(record.line for record in finding.evidence)


def test_apply_error_followed_by_success_is_not_a_failure(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    error = f'"controller failed to sync" err="namespaces \\"x\\" not found" logger="ManifestWorkController.UnhandledError" key="{CREATE.resource}"'
    _append(folder, AGENT, klog(BASE + 0.1, "base_controller.go:159", error, "E"))
    traces, _ = traced([folder])
    assert traces[0].verdict is RequestVerdict.COMPLETE


def test_conflict_of_go_agent_controllers_is_not_a_failure(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    error = f'"controller failed to sync" err="failed to remove finalizer from ManifestWork c/{CREATE.resource}: Operation cannot be fulfilled on manifestworks.work.open-cluster-management.io \\"{CREATE.resource}\\": the resource version of the work is outdated, new 7, old 8" key="{CREATE.resource}"'
    _append(folder, AGENT, klog(BASE + 0.25, "base_controller.go:161", error, "E"))
    traces, _ = traced([folder])
    assert traces[0].verdict is RequestVerdict.COMPLETE


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(
            'unable to sync manifestwork \\"{0}\\": manifestworks.work.open-cluster-management.io \\"{0}\\" not found',
            id="it-left-while-a-controller-looked",
        ),
        pytest.param("Operation cannot be fulfilled on configmaps: try again", id="what-it-overcame"),
    ],
)
def test_apply_error_before_confirmed_deletion_is_not_a_failure(tmp_path: Path, error: str) -> None:
    folder = write(tmp_path, [CREATE, DELETE])
    line = f'"controller failed to sync" err="{error.format(CREATE.resource)}" key="{CREATE.resource}"'
    _append(folder, AGENT, klog(DELETE.at + 0.25, "base_controller.go:161", line, "E"))
    traces, _ = traced([folder])
    assert [trace.verdict for trace in traces] == [RequestVerdict.COMPLETE, RequestVerdict.COMPLETE]


def test_stale_and_duplicate_statuses_do_not_change_the_verdict(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE, UPDATE])
    stale = f'"Updating status for stale resource; disregard it" logger="maestro-server" op-id="x" resourceID="{CREATE.resource}" foundVersion=2 wantVersion=1'
    taken = f'"received status update for resource" logger="maestro-server" op-id="x" resourceID="{CREATE.resource}"'
    _append(
        folder, SERVERS[0], klog(UPDATE.at + 5, "event_server.go:99", taken), klog(UPDATE.at + 5.01, "r.go:1", stale)
    )
    traces, _ = traced([folder])
    assert [trace.verdict for trace in traces] == [RequestVerdict.COMPLETE, RequestVerdict.COMPLETE]


def test_publish_error_is_reported_until_a_retry_succeeds(tmp_path: Path) -> None:
    error = f'"Failed to publish resource" err="the cloudevents client is not ready" logger="maestro-server.maestro-controllers" event="e" resourceID="{CREATE.resource}"'
    failed = write(tmp_path / "failed", [replace(CREATE, until=1)])
    _append(failed, SERVERS[1], klog(BASE + 0.05, "source_client.go:99", error, "E"))
    traces, _ = traced([failed])
    assert (traces[0].verdict, traces[0].findings[0].code) == (RequestVerdict.FAILED, "MT-204")
    healed = write(tmp_path / "healed", [CREATE])
    _append(healed, SERVERS[1], klog(BASE + 0.01, "source_client.go:99", error, "E"))
    traces, _ = traced([healed])
    assert traces[0].verdict is RequestVerdict.COMPLETE


def test_status_skipped_by_every_instance_has_no_owner(tmp_path: Path) -> None:
    folder = write(tmp_path, [replace(CREATE, until=6)])
    skipped = f'"skipping resource status update as it is not owned by the current instance" logger="maestro-server" op-id="x" resourceID="{CREATE.resource}"'
    for pod in SERVERS:
        if "not owned" not in (folder / f"{pod}.log").read_text():
            _append(folder, pod, klog(BASE + 0.2715, "event_server.go:104", skipped))
    traces, _ = traced([folder])
    assert (traces[0].verdict, traces[0].failed_stage, traces[0].findings[0].code) == (
        RequestVerdict.FAILED,
        7,
        "MT-701",
    )


def test_resync_delivers_a_request(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE])
    log = folder / f"{AGENT}.log"
    log.write_text(log.read_text().replace("spec.create_request", "spec.resync_response"))
    traces, _ = traced([folder])
    assert traces[0].verdict is RequestVerdict.COMPLETE
    assert traces[0].stages[2].via == "resync"


def test_old_agent_records_with_work_name_are_attributed(tmp_path: Path) -> None:
    folder = write(tmp_path, [CREATE], "G2")
    log = folder / f"{AGENT}.log"
    assert CREATE.work in log.read_text()
    traces, _ = traced([folder])
    assert len(traces) == 1
    assert traces[0].stages[3].state is StageState.OK


def test_logs_over_new_year_keep_their_order(tmp_path: Path) -> None:
    eve = LoggedRequest(work="eve", at=1767225599.8)  # 2025-12-31 23:59:59.8
    traces, _ = traced([write(tmp_path, [eve])])
    assert (traces[0].verdict, round(traces[0].duration, 3)) == (RequestVerdict.COMPLETE, 0.289)
