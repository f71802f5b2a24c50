"""The public functions of `maestropy.trace` return judged requests."""

import subprocess
import sys
from pathlib import Path

import pytest

from maestropy import trace
from maestropy.cli import main
from maestropy.trace.errors import InputUnreadable
from tests.trace_request_logs import LoggedRequest, write

STOPPED = LoggedRequest(work="stopped", until=3)
HEALTHY = LoggedRequest(work="healthy")


def test_all_requests_of_a_folder(tmp_path: Path) -> None:
    traces = trace.requests([str(write(tmp_path, [HEALTHY, STOPPED]))])
    assert {each.key.work_name: each.verdict for each in traces} == {
        "healthy": trace.RequestVerdict.COMPLETE,
        "stopped": trace.RequestVerdict.INCOMPLETE,
    }


@pytest.mark.parametrize("identifier", [STOPPED.resource, "stopped", STOPPED.operation])
def test_one_request_by_any_identifier(tmp_path: Path, identifier: str) -> None:
    (found,) = trace.request([str(write(tmp_path, [HEALTHY, STOPPED]))], identifier)
    assert (found.key.resource, found.failed_stage) == (STOPPED.resource, 4)


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        pytest.param(("nobody",), trace.NotFound, "nobody is not in these logs", id="unknown"),
        pytest.param(("nobody", "nothing"), trace.NotFound, "nobody, nothing is not in", id="all-unknown"),
        pytest.param(("twin",), trace.Ambiguous, "twin stands for several resources", id="several"),
        pytest.param((), trace.InvalidArguments, "no identifier is given", id="none"),
    ],
)
def test_request_without_an_answer_raises_what_the_command_exits_with(
    tmp_path: Path, words: tuple[str, ...], error: type[trace.TraceError], message: str
) -> None:
    folder = write(tmp_path, [HEALTHY, LoggedRequest(work="twin")])
    for log in folder.glob("*.log"):
        content = log.read_text()
        other = content.replace(LoggedRequest(work="twin").resource, "11111111-2222-5333-8444-555555555555")
        log.write_text("".join(sorted({*content.splitlines(keepends=True), *other.splitlines(keepends=True)})))
    with pytest.raises(error, match=message) as raised:
        trace.request([str(folder)], *words)
    assert main.call(["trace", "request", *words, str(folder)]) == raised.value.exit


def test_one_of_several_identifiers_is_enough(tmp_path: Path) -> None:
    (found,) = trace.request([str(write(tmp_path, [HEALTHY]))], "nobody", "healthy")
    assert found.key.work_name == "healthy"


def test_files_without_logs_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing of interest\n")
    with pytest.raises(InputUnreadable, match="give logs of Maestro servers and agents"):
        trace.requests([str(tmp_path / "notes.txt")])


def test_importing_the_package_does_not_load_the_tracer() -> None:
    code = "import sys, maestropy.trace; sys.exit('maestropy.trace.logs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_reading_logs_loads_nothing_that_reaches_systems() -> None:
    code = (
        "import sys, maestropy.cli.trace.logs.run; "
        "sys.exit(not {'asyncpg', 'httpx', 'maestropy.kube'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        trace.nothing  # noqa: B018 - it must raise
