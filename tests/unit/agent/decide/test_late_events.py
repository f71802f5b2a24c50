"""Events that arrive after newer ones of the same work."""

import pytest

from maestropy.agent.decide import late_events
from maestropy.agent.decide.data_safety import SpecOrigin

EARLY, LATE = "2026-02-01T00:00:00Z", "2026-02-01T00:00:01Z"


def origin(*, created: str = EARLY, version: int = 1, published: str = EARLY) -> SpecOrigin:
    return SpecOrigin(database="d", created=created, version=version, published=published)


@pytest.mark.parametrize(
    ("known", "incoming", "is_late"),
    [
        pytest.param(origin(version=1), origin(version=2), False, id="newer-version"),
        pytest.param(origin(version=2), origin(version=2), False, id="same-version"),
        pytest.param(origin(version=2), origin(version=1), True, id="older-version"),
        pytest.param(origin(version=2), origin(version=1, published=LATE), False, id="published-after-a-restore"),
        pytest.param(origin(version=2), origin(version=0), False, id="without-version"),
        pytest.param(origin(published=LATE), origin(), True, id="earlier-spec-of-the-same-version"),
        pytest.param(origin(created=LATE), origin(version=5), True, id="earlier-incarnation"),
        pytest.param(
            origin(created="2026-02-01T00:00:00.5Z"), origin(created="2026-02-01T00:00:00.25Z"), True, id="same-second"
        ),
        pytest.param(origin(created="2026-02-01T00:00:00.5Z"), origin(), False, id="perhaps-the-same-incarnation"),
        pytest.param(origin(version=5), origin(created=LATE), False, id="later-incarnation"),
        pytest.param(origin(created=LATE), origin(created="", version=1), False, id="without-creation-time"),
        pytest.param(origin(version=2, published=""), origin(version=1), True, id="publication-time-unknown"),
    ],
)
def test_late_spec(known: SpecOrigin, incoming: SpecOrigin, *, is_late: bool) -> None:
    assert late_events.is_late_spec(known, incoming) == is_late


@pytest.mark.parametrize(
    ("known", "incoming", "is_late"),
    [
        pytest.param(origin(), origin(), False, id="of-this-incarnation"),
        pytest.param(origin(created=LATE), origin(), True, id="of-an-earlier-one"),
        pytest.param(origin(), origin(created=LATE), False, id="of-a-later-one"),
        pytest.param(origin(), origin(created=""), False, id="without-creation-time"),
    ],
)
def test_late_deletion(known: SpecOrigin, incoming: SpecOrigin, *, is_late: bool) -> None:
    assert late_events.is_late_deletion(known, incoming) == is_late


@pytest.mark.parametrize(
    ("deleted", "incoming", "is_late"),
    [
        pytest.param(origin(), origin(), True, id="the-deleted-one"),
        pytest.param(origin(created=LATE), origin(), True, id="an-earlier-one"),
        pytest.param(origin(), origin(created=LATE), False, id="a-later-one"),
        pytest.param(origin(), origin(version=2, published=LATE), True, id="a-version-that-was-never-received"),
        pytest.param(
            origin(created="2026-02-01T00:00:00.25Z"), origin(created="2026-02-01T00:00:00.5Z"), False, id="same-second"
        ),
        pytest.param(origin(published=""), origin(published=LATE), True, id="no-spec-of-the-deleted-one-was-received"),
        pytest.param(origin(created=""), origin(), False, id="without-creation-time"),
    ],
)
def test_spec_of_deleted_work(deleted: SpecOrigin, incoming: SpecOrigin, *, is_late: bool) -> None:
    assert late_events.is_deleted_before(deleted, incoming) == is_late
