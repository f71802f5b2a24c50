"""Both servers take, refuse, store and send alike, but for what is intended."""

import chance_events
import event_cases
import pytest
import spoiled_events
from event_cases import cases
from intended import refute
from playing import play
from twins import Twin

pytestmark = pytest.mark.peers
SEED = 20260216


def test_lives(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(event_cases.lives(), prefix="life")))


def test_spoiled_wishes(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(spoiled_events.spoiled("wishes"), prefix="wish")))


def test_spoiled_reports(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(spoiled_events.spoiled("reports"), prefix="report")))


def test_lives_by_chance(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(chance_events.by_chance(SEED, 300), prefix="chance")))
