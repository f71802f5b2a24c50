"""The list of intended differences and the page that gives the reasons do not drift apart."""

import pytest

from tests.peers.differential.intended import LINES, PAGE


def first_cells() -> set[str]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return {line.split(" | ")[0].removeprefix("|").strip() for line in lines}


@pytest.mark.parametrize("line", sorted(LINES))
def test_every_intended_difference_has_its_line(line: str) -> None:
    assert line in first_cells()
