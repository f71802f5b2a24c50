"""Identifiers choose requests: options are conditions, and an op-id or event ID is of one request only."""

from pathlib import Path

import pytest

from maestropy.cli import main
from tests.trace_request_logs import BASE, LoggedRequest, write

CREATE = LoggedRequest(work="nginx")
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)
OTHER = LoggedRequest(work="other", at=BASE + 90)


def shown(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    write(folder, [CREATE, UPDATE, OTHER])
    code = main.call(["trace", "request", *words, str(folder)])
    out, err = capsys.readouterr()
    return code, [" ".join(line.split()[1:4]) for line in out.splitlines() if line.startswith("Request ")], err


@pytest.mark.parametrize(("words", "expected"), [
    (["--event-id", UPDATE.event("ce")], ["update v2 nginx"]),
    ([UPDATE.event("db")], ["update v2 nginx"]),
    (["--work-name", "nginx", "--event-id", CREATE.event("ce")], ["create v1 nginx"]),
    (["nginx", "--op-id", UPDATE.operation], ["update v2 nginx"]),
    ([CREATE.operation, OTHER.operation], ["create v1 nginx", "create v1 other"]),
    (["nginx", UPDATE.event("ce")], ["create v1 nginx", "update v2 nginx"]),
    (["nginx", "other"], ["create v1 nginx", "update v2 nginx", "create v1 other"]),
    (["nginx", "other", "--op-id", UPDATE.operation], ["update v2 nginx"]),
])  # fmt: skip
def test_options_are_conditions_and_words_alternatives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: list[str]
) -> None:
    assert shown(tmp_path, capsys, *words)[:2] == (0, expected)


@pytest.mark.parametrize(("words", "message"), [
    (["nginx", "--op-id", "zzz"], "zzz is not in these logs"),
    (["nginx", "--op-id", OTHER.operation], "no resource matches all identifiers"),
    ([CREATE.resource.upper()], "resource IDs are in lower case"),
])  # fmt: skip
def test_condition_that_nothing_matches_ends_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code, requests, err = shown(tmp_path, capsys, *words)
    assert (code, requests) == (4, [])
    assert message in err


def test_words_that_are_not_in_the_logs_are_named_and_the_others_traced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, requests, err = shown(tmp_path, capsys, "other", "zzz")
    assert (code, requests) == (0, ["create v1 other"])
    assert "zzz is not in these logs" in err
