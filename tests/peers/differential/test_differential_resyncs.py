"""Both servers answer those who ask again; on databases of their own, because the Go server trips over some bundles."""

from collections.abc import Callable

import pytest

from tests.peers.differential import event_cases
from tests.peers.differential.event_cases import cases
from tests.peers.differential.intended import refute
from tests.peers.differential.playing import play
from tests.peers.differential.twins import Twin

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("stories", [event_cases.status_resyncs, event_cases.spec_resyncs])
def test_resyncs(stories: Callable[[], event_cases.Stories], twins: tuple[Twin, Twin]) -> None:
    for case in cases(stories(), prefix="again"):
        refute(play(twins, [case]))
