"""Lists never cut silently, and `--watch` prints what changed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from maestropy.cli.client import listing, row_watch
from maestropy.cli.client.formats import Format
from maestropy.cli.client.listing import ListFlags
from maestropy.cli.client.output import BUNDLES, GONE
from maestropy.cli.errors import CommandError, UsageError
from maestropy.sdk import errors

Rows = dict[str, dict[str, Any]]


@pytest.mark.parametrize(
    ("flags", "shown", "total", "expected"),
    [
        pytest.param(
            ListFlags(), 100, 150, "Showing 100 of 150; --all shows all, --page 2 the next page\n", id="first-page"
        ),
        pytest.param(ListFlags(page=2), 50, 150, "", id="last-page"),
        pytest.param(ListFlags(), 100, 100, "", id="exactly-one-page"),
        pytest.param(ListFlags(all=True), 150, 150, "", id="all"),
        pytest.param(ListFlags(selector="a=b"), 5, 5, "", id="selector"),
    ],
)
def test_rest_of_a_list_is_told(flags: ListFlags, shown: int, total: int, expected: str) -> None:
    assert listing.rest_of({"items": [{}] * shown, "total": total}, flags) == expected


def test_watch_prints_new_changed_and_deleted_rows_only() -> None:
    before: Rows = {"1": {"id": "1", "version": 1}, "2": {"id": "2"}, "3": {"id": "3"}}
    now: Rows = {"1": {"id": "1", "version": 2}, "3": {"id": "3"}, "4": {"id": "4"}}
    assert row_watch.changed_rows(before, now) == [{"id": "1", "version": 2}, {"id": "4"}, {"id": "2", GONE: True}]


def test_watch_says_once_that_the_server_is_gone_and_once_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(row_watch, "_PAUSE_SECONDS", 0)
    answers: Iterator[dict[str, list[int]] | Exception] = iter(
        [{"items": []}, errors.Unavailable("no response"), errors.Unavailable("still none"), {"items": [1]}]
    )

    def read() -> dict[str, list[int]]:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    reader = row_watch.PatientReader(read)
    assert [reader.read(), reader.read()] == [{"items": []}, {"items": [1]}]
    gone, back = capsys.readouterr().err.splitlines()
    assert gone == "The server is gone: no response; trying again until it is back"
    assert back.startswith("The server is back")


def test_watch_of_a_server_that_never_answered_fails() -> None:
    def read() -> dict[str, int]:
        raise errors.Unavailable("no response")

    with pytest.raises(errors.Unavailable):
        row_watch.PatientReader(read).read()


@pytest.mark.parametrize(
    "flags", [ListFlags(page=2, all=True), ListFlags(page=2, selector="a=b"), ListFlags(page=2, watch=True)]
)
def test_page_of_a_whole_list_is_a_usage_error(flags: ListFlags) -> None:
    with pytest.raises(UsageError, match="--page shows one page"):
        listing.check(flags)
    listing.check(replace(flags, page=1))


def test_names_of_a_long_list_are_printed_as_they_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[str] = []

    def every() -> Iterator[dict[str, str]]:
        for number in range(101):
            yield {"id": f"bundle-{number}"}
        printed.append(capsys.readouterr().out)

    collection = listing.Collection(kind="ResourceBundleList", page=lambda _, __: {}, every=every)
    listing.show(collection, ListFlags(all=True), output=Format("name"), columns=BUNDLES)
    assert printed[0].splitlines() == [f"bundle-{number}" for number in range(101)]


def test_empty_list_of_names_is_checked() -> None:
    def reject() -> None:
        raise CommandError("there is no consumer")

    collection = listing.Collection(kind="ResourceBundleList", page=lambda _, __: {}, every=list)
    with pytest.raises(CommandError):
        listing.show(collection, ListFlags(all=True), output=Format("name"), columns=BUNDLES, before_empty=reject)


def test_rest_of_a_long_list_is_told_with_its_token() -> None:
    result = {"items": [{}] * 100, "total": 1_000_000, "page": 7, "total_is_estimate": True, "continue": "abc"}
    expected = "Showing 100 of about 1000000; --all shows all, --continue abc the next page\n"
    assert listing.rest_of(result, ListFlags()) == expected
