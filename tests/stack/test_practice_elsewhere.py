"""The practice incidents on another account: no network, no home, nothing of whoever collected. 30 of 30 are right."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maestropy.practice import catalogue, engine, scoring
from tests.unit.practice import reports

pytestmark = pytest.mark.long
NOBODY = "65534"
PROJECT = Path(__file__).parents[2]
EMPTY = "/mnt"
"""Becomes an empty folder that everybody may write to, and holds what the other account may see of ours."""


def hidden(path: Path) -> Path | None:
    """Return the uppermost folder above a path that other accounts may not enter."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)


def elsewhere(command: list[str]) -> list[str]:
    """Return a command that runs as nobody, without a network, and sees only the project and the interpreter."""
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), PROJECT.resolve()}
    steps = [f"mount -t tmpfs -o mode=1777 none {EMPTY}"]
    again = []
    covered = set()
    for number, path in enumerate(sorted(needed)):
        if (cover := hidden(path)) is not None:
            kept = f"{EMPTY}/.{number}"
            steps.append(f"mkdir {kept} && mount --bind {path} {kept}")
            again.append(f"mkdir -p {path} && mount --bind {kept} {path}")
            covered.add(cover)
    steps += [f"mount -t tmpfs -o mode=755 none {cover}" for cover in sorted(covered)]
    account = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs"
    environment = f"env -i HOME={EMPTY} TMPDIR={EMPTY} PATH=/usr/bin:/bin"
    last = f"cd {EMPTY} && exec {account} {environment} {shlex.join(command)}"
    return ["unshare", "--mount", "--net", "sh", "-ec", "\n".join([*steps, *again, last])]


SCRIPT = """
import contextlib, io, json, os, socket, sys
from maestropy.cli import main

assert os.getuid() == os.getgid() == 65534
assert all(name.startswith(".") for name in os.listdir(os.environ["HOME"]))
assert {name for _, name in socket.if_nameindex()} <= {"lo"}
for path in sys.argv[1:]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main.call(["diagnose", "analyze", path, "-o", "json"])
    print(json.dumps({"path": path, "code": code, "out": printed.getvalue()}), flush=True)
"""
"""The command line, thirty times in one process: starting an interpreter for each takes longer than the analysis."""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="becoming another account needs root")
def test_every_incident_is_judged_rightly_on_an_account_without_access() -> None:
    incidents = catalogue.incidents()
    folder = PROJECT / "src" / "maestropy" / "practice" / "incidents"
    paths = [str(folder / f"{incident.id}{catalogue.ENDING}") for incident in incidents]
    done = subprocess.run(
        elsewhere([sys.executable, "-c", SCRIPT, *paths]), capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run["path"] for run in runs] == paths
    answers = []
    for incident, run in zip(incidents, runs, strict=True):
        assert run["code"] in {0, 1, 6}, run
        said = reports.analysis(json.loads(run["out"]))
        answers.append(engine.answer(incident.id, said, asked=incident.asked))
    grades = scoring.grade_all(incidents, answers)
    wrong = [(each.incident.id, each.marks) for each in grades if not each.is_right]
    assert not wrong
    assert len(grades) == 30
