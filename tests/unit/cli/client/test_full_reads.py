"""A list that reads everything says so on standard error, and how far it is on a terminal."""

import pytest

from maestropy.cli.client.bundles import full_reads


@pytest.mark.parametrize(
    ("selector", "narrowed", "expected"),
    [
        pytest.param("", False, False, id="no-selector"),
        pytest.param("!grp", False, True, id="absent"),
        pytest.param("grp", False, True, id="exists"),
        pytest.param("grp,!half", False, True, id="exists-and-absent"),
        pytest.param("grp!=7", False, True, id="different"),
        pytest.param("grp notin (7,8)", False, True, id="not-in"),
        pytest.param("grp=7,!half", False, False, id="with-an-equal-label"),
        pytest.param("grp in (7,8),!half", False, False, id="with-a-set"),
        pytest.param("!grp", True, False, id="of-a-consumer"),
    ],
)
def test_selector_that_no_index_serves(selector: str, narrowed: bool, expected: bool) -> None:
    assert full_reads.is_needed(selector, narrowed=narrowed) is expected


def test_notice_names_the_selector_and_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    full_reads.notify("!grp")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Reading every resource bundle: no index serves -l '!grp'; a label with = or in")


@pytest.mark.parametrize("shows_progress", [True, False])
def test_progress_is_shown_and_cleared_on_a_terminal(
    shows_progress: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    items = [{"id": str(number), "metadata": {"labels": {"grp": "7"} if number % 2 else {}}} for number in range(2500)]
    found = list(full_reads.matching(items, "!grp", shows_progress=shows_progress))
    assert len(found) == 1250
    expected = "\r\x1b[K1000 read\r\x1b[K2000 read\r\x1b[K" if shows_progress else ""
    assert capsys.readouterr().err == expected


def test_server_evaluates_what_it_can() -> None:
    assert full_reads.search("grp,!half") == "payload->'metadata'->'labels'->>'grp' like '%'"
