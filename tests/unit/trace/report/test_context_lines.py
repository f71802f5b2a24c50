# ruff: noqa: E501 - log lines are as long as they are
"""Context lines around the evidence of a finding: which, how many, and never a payload."""

import gzip
import re
from pathlib import Path

import pytest

from maestropy.cli import main
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog, write

BAD = LoggedRequest(work="bad", until=3)
FAILED = klog(
    BASE + 0.3,
    "base_controller.go:159",
    f'"controller failed to sync" err="configmaps \\"cm\\" is forbidden" key="{BAD.resource}"',
    "E",
)
NOISE = [klog(BASE + 0.2 + number / 1000, "noise.go:1", f"noise {number}") for number in range(8)]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main.call(["trace", "request", "bad", *words])
    out, trouble = capsys.readouterr()
    return code, out, trouble


def logs(folder: Path, lines: list[str]) -> Path:
    """Write a request that failed, with these lines at the end of the agent's log."""
    write(folder, [BAD])
    log = folder / f"{AGENT}.log"
    received, end = log.read_text().splitlines()
    log.write_text("\n".join([received, *lines, end]) + "\n")
    return folder


def near(out: str) -> list[tuple[int, str]]:
    return [(int(number), text) for number, text in re.findall(r"^ {4,9}(\d+)  (.*)$", out, re.MULTILINE)]


@pytest.mark.parametrize(
    ("count", "wanted"),
    [(0, []), (1, [5, 7]), (2, [4, 5, 7, 8]), (50, [1, 2, 3, 4, 5, 7, 8, 9, 10, 11])],
)
def test_context_lines_surround_the_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, wanted: list[int]
) -> None:
    folder = logs(tmp_path, [*NOISE[:4], FAILED, *NOISE[4:]])
    written = (folder / f"{AGENT}.log").read_text().splitlines()
    code, out, _ = run(capsys, str(folder), "--show", "timeline", "--context-lines", str(count))
    found = near(out)
    assert (code, [number for number, _ in found]) == (1, wanted)
    assert all(text.startswith(written[number - 1][:60]) for number, text in found)
    assert f"{AGENT}.log:6  E0115" in out


@pytest.mark.parametrize("stamp", ["", "2026-01-15T09:00:01.300000000Z "], ids=["bare", "stamped"])
def test_context_lines_have_no_payload_and_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stamp: str
) -> None:
    event = klog(BASE + 0.25, "baseclient.go:1", "Sending event: Context Attributes,\n  type: x\nData,\n  {\n    \"tls.key\": \"c2VjcmV0MQ==\"\n  }")  # fmt: skip
    whole = klog(BASE + 0.26, "baseclient.go:1", '"Sending event" event="{\\"data\\":{\\"key\\":\\"c2VjcmV0Mg==\\"}}"')
    token = klog(
        BASE + 0.27, "client.go:1", 'calling with Authorization: Bearer c2VjcmV0Mw-abcdefgh password="c2VjcmV0NA"'
    )
    folder = logs(tmp_path, [*event.split("\n"), whole, token, FAILED])
    log = folder / f"{AGENT}.log"
    log.write_text("".join(f"{stamp}{line}\n" for line in log.read_text().splitlines()))
    code, out, _ = run(capsys, str(folder), "--show", "timeline", "--context-lines", "20")
    assert (code, "Sending event: Context" in out, "(payload left out)" in out, "calling with" in out) == (1, True, True, True)  # fmt: skip
    assert "c2Vjcm" not in out


def test_archives_have_no_context_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = logs(tmp_path, [*NOISE[:4], FAILED, *NOISE[4:]])
    log = folder / f"{AGENT}.log"
    (folder / f"{AGENT}.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    code, out, _ = run(capsys, str(folder), "--show", "timeline", "--context-lines", "5")
    assert (code, near(out), "MT-403" in out) == (1, [], True)


@pytest.mark.parametrize(
    "words", [["--context-lines", "3"], ["--show", "timeline", "--context-lines", "101"],
              ["--show", "timeline", "--context-lines", "-1"]], ids=" ".join,
)  # fmt: skip
def test_invalid_number_of_context_lines_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    code, _, trouble = run(capsys, str(logs(tmp_path, [FAILED])), *words)
    assert (code, "--context-lines" in trouble) == (2, True), trouble
