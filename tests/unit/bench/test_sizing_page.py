"""docs/sizing.md shows what the published measurements give."""

from dataclasses import replace

import pytest

from bench import sizing


def test_the_page_shows_the_tables_of_the_measurements() -> None:
    page = sizing.PAGE.read_text(encoding="utf-8")
    assert sizing.written(page) == page, "run `python -m bench.sizing`"
    assert sizing.section() in page


def test_a_fleet_without_changes_has_a_spare_process() -> None:
    needs = sizing.size(sizing.Fleet(agents=1, works=0, changes=0), sizing.units())
    assert needs.processes == 2
    assert needs.agent_mb == pytest.approx(sizing.units()["agent"].value)


def test_twice_the_changes_take_twice_the_cores() -> None:
    cost = sizing.units()
    fleet = sizing.Fleet(agents=0, works=10, changes=1_000)
    once, twice = (sizing.size(replace(fleet, changes=changes), cost) for changes in (1_000, 2_000))
    assert twice.cores == pytest.approx(2 * once.cores)
    assert once.processes == 1 + -(-once.cores // sizing.USED)


def test_connections_limit_the_agents_of_a_process() -> None:
    needs = sizing.size(sizing.Fleet(agents=25_000, works=1, changes=0), sizing.units())
    assert needs.processes >= 4
