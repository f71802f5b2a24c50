"""Files that are cut within a line, have holes of NULs, other line ends or endless lines: read, or named."""

from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.trace.logs import tracer, tracing
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from maestropy.trace.logs.read import scan
from maestropy.trace.logs.read.inputs import log_inputs
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog, lines_g4

NOW = BASE + 86400
SERVER = "maestro-0"
CREATE = LoggedRequest(work="nginx")


def write(folder: Path, *requests: LoggedRequest) -> Path:
    """Write the logs of one server and one agent; the agent's goes on for ten minutes."""
    lines: dict[tuple[str, str], None] = {(AGENT, klog(BASE + 600, "file.go:1", "still here")): None}
    for request in requests:
        for pod, _, line in lines_g4(request):
            if "not owned" not in line:
                lines[(AGENT, line) if pod == AGENT else (SERVER, line.replace(pod, SERVER))] = None
    for pod in (SERVER, AGENT):
        own = sorted((line for one, line in lines if one == pod), key=lambda line: line[:21])
        (folder / f"{pod}.log").write_text("".join(f"{line}\n" for line in own))
    return folder / f"{SERVER}.log"


def searched(folder: Path) -> Trace:
    request_tracer = tracing.RequestTracer([str(folder)], options=Options(), now=NOW, whole=0)
    chosen = frozenset({CREATE.resource})
    return request_tracer.judge(request_tracer.find([CREATE.resource]), chosen, [CREATE.resource]).traces[0]


def read(folder: Path) -> tuple[Trace, scan.Scan]:
    scanned = scan.scan_all([str(folder)], now=NOW)
    environment = tracer.read_environment(scanned.records, scanned.writers, options=Options())
    traces = tracer.traces(scanned.records, environment, options=Options())
    return next(trace for trace in traces if trace.key.resource == CREATE.resource), scanned


def summary(trace: Trace) -> tuple[str, int | None, list[str], tuple[float, ...]]:
    return trace.verdict, trace.failed_stage, [finding.detail for finding in trace.findings], trace.moments


@pytest.mark.parametrize("left", range(40, 3000, 74))
def test_log_that_is_cut_within_a_line_blames_nobody(tmp_path: Path, left: int) -> None:
    server = write(tmp_path, CREATE)
    whole = server.read_bytes()
    cut = whole[:-left]
    server.write_bytes(cut)
    trace, _ = read(tmp_path)
    if cut.endswith(b"\n"):
        return
    assert trace.verdict in (RequestVerdict.PENDING, RequestVerdict.UNKNOWN, RequestVerdict.COMPLETE)
    if trace.verdict is not RequestVerdict.COMPLETE:
        line = cut.count(b"\n") + 1
        details = [finding.detail for finding in trace.findings if finding.code == "MT-006"]
        assert any(f"maestro-0.log is cut within line {line}, at " in detail for detail in details)
    assert summary(searched(tmp_path)) == summary(trace)


def test_cut_line_does_not_prove_its_stage(tmp_path: Path) -> None:
    server = write(tmp_path, CREATE)
    whole = server.read_bytes()
    at = whole.index(b'"Received event"')
    server.write_bytes(whole[: at + 200])
    trace, _ = read(tmp_path)
    assert (trace.verdict, trace.failed_stage) == (RequestVerdict.PENDING, 6)


def test_last_line_that_is_whole_counts_without_a_line_end(tmp_path: Path) -> None:
    server = write(tmp_path, CREATE)
    server.write_bytes(server.read_bytes().removesuffix(b"\n"))
    assert read(tmp_path)[0].verdict is RequestVerdict.COMPLETE


def test_check_of_logs_names_the_cut_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = write(tmp_path, CREATE)
    server.write_bytes(server.read_bytes()[:-30])
    lines = server.read_bytes().count(b"\n") + 1
    main.call(["trace", "logs", "check", str(tmp_path)])
    assert f"MT-006 Truncated or dropped lines: maestro-0.log is cut within line {lines}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"\0" * 70_000, b"", id="leading-nuls"),
        pytest.param(b"\0", b"", id="one-nul"),
        pytest.param(b"", b"\0" * 4096, id="nuls-at-the-end"),
    ],
)
def test_holes_of_nuls_hide_no_record(tmp_path: Path, before: bytes, after: bytes) -> None:
    server = write(tmp_path, CREATE)
    server.write_bytes(before + server.read_bytes() + after)
    trace, scanned = read(tmp_path)
    assert trace.verdict is RequestVerdict.COMPLETE
    assert trace.moments[0] == pytest.approx(BASE)
    assert not scanned.unreadable
    assert summary(searched(tmp_path)) == summary(trace)


def test_hole_of_nuls_within_a_file_hides_no_record(tmp_path: Path) -> None:
    server = write(tmp_path, CREATE)
    expected = summary(read(tmp_path)[0])
    first, rest = server.read_bytes().split(b"\n", 1)
    server.write_bytes(first + b"\0" * 4096 + rest)
    assert summary(read(tmp_path)[0]) == summary(searched(tmp_path)) == expected


def test_file_of_nuls_is_named(tmp_path: Path) -> None:
    write(tmp_path, CREATE)
    (tmp_path / "hole.log").write_bytes(b"\0" * 300_000)
    assert read(tmp_path)[1].unreadable == ["hole.log: not text"]


@pytest.mark.timeout(60)
def test_runs_of_nuls_are_read_in_linear_time() -> None:
    """The pages of a database have long ones; tried at each of their bytes, these would take hours."""
    page = b"\0" * 8_000_000 + b"\1"
    assert log_inputs._HOLES.sub(b"", page) == page


def test_lines_that_end_with_a_carriage_return_only_are_read(tmp_path: Path) -> None:
    server = write(tmp_path, CREATE)
    expected = summary(read(tmp_path)[0])
    server.write_bytes(server.read_bytes().replace(b"\n", b"\r"))
    assert summary(read(tmp_path)[0]) == summary(searched(tmp_path)) == expected


@pytest.mark.parametrize("chunk", [512, 1 << 10, 4096])
def test_line_that_is_far_too_long_is_named_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    server = write(tmp_path, CREATE)
    first, rest = server.read_bytes().split(b"\n", 1)
    long_line = klog(BASE, "file.go:1", f'"big" resourceID="{CREATE.resource}" data="{"x" * 9000}"').encode()
    server.write_bytes(b"\n".join([first, long_line, rest]))
    monkeypatch.setattr(log_inputs, "_CHUNK", chunk)
    monkeypatch.setattr(log_inputs, "_LONGEST_LINE", 1 << 12)
    trace, scanned = read(tmp_path)
    assert trace.verdict is RequestVerdict.COMPLETE
    assert scanned.unreadable == [f"maestro-0.log: {log_inputs.TOO_LONG}"]
    sizes = {writer.path: writer.bytes for writer in scanned.writers}
    assert sizes["maestro-0.log"] == server.stat().st_size
    # The offsets of records after it are right: their lines are found again.
    written = server.read_text().splitlines()
    for record in trace.timeline:
        if scanned.writers[record.file].path == "maestro-0.log":
            assert scan.line_of(scanned.writers, record, longest=10_000) == written[record.line - 1]
    around = scan.scan_around([str(tmp_path)], [CREATE.resource], now=NOW)
    assert around.unreadable == scanned.unreadable
    assert summary(searched(tmp_path)) == summary(trace)
