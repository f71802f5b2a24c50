"""Both servers take, refuse, store and send alike, but for what is intended."""

import pytest

from tests.peers.differential import chance_events, event_cases, spoiled_events
from tests.peers.differential.event_cases import cases
from tests.peers.differential.intended import refute
from tests.peers.differential.playing import play
from tests.peers.differential.twins import Twin

pytestmark = pytest.mark.peers
SEED = 20260216


def test_lives(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(event_cases.lives(), prefix="life")))


def test_malformed_spec_requests(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(spoiled_events.spoiled("spec requests"), prefix="spec")))


def test_spoiled_reports(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(spoiled_events.spoiled("reports"), prefix="report")))


def test_lives_by_chance(twins: tuple[Twin, Twin]) -> None:
    refute(play(twins, cases(chance_events.by_chance(SEED, 300), prefix="chance")))
