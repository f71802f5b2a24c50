"""Run upstream's suites on our programs and on Go's: `python -m tests.upstream --columns python-go-mqtt`.

One column after the other, or `--jobs` at once; each result is written into docs/compatibility.md when it comes, and
kept there, so a run may be ended and taken up again with `--columns missing`. OCM's suite needs no checkout of Maestro.
"""

import argparse
import concurrent.futures
import fcntl
import re
import shutil
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from tests.peers import go_build, kube_build, peer_processes
from tests.upstream import integration_suite, ocm_suite, pod_network, results, sources
from tests.upstream.results import SUITES, Result

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
INSTALL_SECONDS = 600
PROGRESS_SECONDS = 30
FINISHED = re.compile(rb"^(?:\xe2\x80\xa2|S|P) \[", re.MULTILINE)
NAMES = tuple(dict.fromkeys(column for columns in SUITES.values() for column in columns))
_writing = threading.Lock()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def main() -> int:
    """Return 0 when every case passed or nothing could be run, 1 otherwise."""
    options = _options()
    try:
        sources.check_machine()
        versions = {suite: _version(suite) for suite in options.suites}
        kube_build.control_plane(say)
        if versions.keys() - {"ocm", "integration"}:
            go_build.built(sources.HELM, say)
    except go_build.Unavailable as reason:
        say(f"upstream's suites are not run: {reason}")
        return 0
    chosen = [(suite, column) for suite in versions for column in _chosen(suite, options.columns, versions[suite])]
    of = ", ".join(f"{suite}: {version}" for suite, version in versions.items())
    say(f"{len(chosen)} columns ({of}), at most {options.minutes} minutes each")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(lambda choice: _run(choice[0], choice[1], versions[choice[0]], options), chosen))
    for result in found:
        state = result.note or ", ".join(result.failed) or "all"
        say(f"{result.suite} {result.column}: {result.passed} of {result.total} passed: {state}")
    return int(any(result.failed or result.note for result in found))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream", description=__doc__)
    parser.add_argument(
        "--columns",
        nargs="*",
        default=["missing"],
        metavar="COLUMN",
        help=f"`missing` (what was not yet run at this commit), `all`, or any of {', '.join(NAMES)}",
    )
    parser.add_argument("--suites", nargs="*", default=list(SUITES), choices=SUITES, help="which suites (default all)")
    parser.add_argument("--minutes", type=int, default=30, help="how long the suite of a column may take (default 30)")
    parser.add_argument("--jobs", type=int, default=1, help="columns at once (default 1)")
    parser.add_argument("--focus", default="", help="only cases whose name matches; the result is not kept")
    return parser.parse_args()


def _chosen(suite: str, words: list[str], version: str) -> list[str]:
    if words == ["missing"]:
        kept = [result for result in results.read_page(PAGE.read_text()) if result.upstream == version]
        done = {result.column for result in kept if result.suite == suite}
        return [column for column in SUITES[suite] if column not in done]
    unknown = [word for word in words if word not in (*NAMES, "all")]
    if unknown:
        sys.exit(f"unknown column {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return [column for column in SUITES[suite] if column in words or "all" in words]


def _version(suite: str) -> str:
    """Return the version of a suite that can be run here; raises `Unavailable` with what is missing."""
    if suite == "ocm":
        return f"OCM {ocm_suite.VERSION}"
    upstream = sources.upstream()
    if suite == "integration":
        integration_suite.built(upstream)
    else:
        upstream.suite(suite)
    return upstream.commit


def _run(suite: str, column: str, version: str, options: argparse.Namespace) -> Result:
    folder = sources.home() / "runs" / f"{suite}-{column}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        # A second run of a column waits for the first instead of taking its folder away.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _run_alone(suite, column, version, options, folder=folder)


def _run_alone(suite: str, column: str, version: str, options: argparse.Namespace, *, folder: Path) -> Result:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = [f"--ginkgo.timeout={options.minutes}m", *([f"--ginkgo.focus={options.focus}"] if options.focus else [])]
    command = pod_network.enclosed("tests.upstream.column", "--suite", suite, column, str(folder), "--", *words)
    say(f"{suite} {column}: begins (see {folder})")
    begun = time.monotonic()
    with (folder / "run.log").open("wb") as output:
        process = subprocess.Popen(
            [*peer_processes.mortal(), *command], stdout=output, stderr=subprocess.STDOUT, cwd=ROOT
        )
        note = _watched(process, suite, column, folder, seconds=options.minutes * 60 + INSTALL_SECONDS)
    passed, failed, skipped = results.read_reports(folder)
    if any('status="timedout"' in report.read_text() for report in folder.glob("report*.xml")):
        note = f"ended after {options.minutes} minutes"
    if process.returncode != 0 and not note:
        note = f"did not end: {results.in_one_line(peer_processes.tail(folder / 'run.log', lines=1))}"
    result = Result(
        suite=suite,
        column=column,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        upstream=version,
        maestropy=_own_version(),
        passed=passed,
        failed=failed,
        skipped=skipped,
        note=note,
    )
    if not options.focus:
        _keep(result)
    say(f"{suite} {column}: {passed} of {result.total} passed, {skipped} skipped, in {time.monotonic() - begun:.0f} s")
    return result


def _watched(process: subprocess.Popen[bytes], suite: str, column: str, folder: Path, *, seconds: float) -> str:
    """Wait for the end of a column and show how far it is; returns why it was ended before, if so."""
    deadline, shown = time.monotonic() + seconds, -1
    while True:
        try:
            process.wait(PROGRESS_SECONDS)
            return ""
        except subprocess.TimeoutExpired:
            log = folder / "suite.log"
            finished = len(FINISHED.findall(log.read_bytes())) if log.exists() else 0
            if finished != shown:
                say(f"{suite} {column}: {finished} cases finished")
                shown = finished
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            return f"ended after {seconds / 60:.0f} minutes"


def _keep(result: Result) -> None:
    with _writing:
        PAGE.write_text(results.with_result(PAGE.read_text(), result))


def _own_version() -> str:
    """Return our version and the newest commit that changed the source; later ones change only tests and documents."""
    git = ["git", "-C", str(ROOT)]
    commit = _output([*git, "log", "-1", "--format=%h", "--abbrev=12", "--", "src"])
    changed = "with changes" if _output([*git, "status", "--porcelain", "--", "src"]) else ""
    return " ".join(word for word in (metadata.version("maestropy"), commit, changed) if word)


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
