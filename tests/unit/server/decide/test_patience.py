"""Waits double and end at a limit: what is stuck for good costs little, what was forgotten is found soon."""

from datetime import UTC, datetime, timedelta
from itertools import accumulate, repeat

import pytest

from maestropy.server.decide import patience
from maestropy.store import rows
from maestropy.wire import record


@pytest.mark.parametrize(
    ("age", "wait"),
    [
        pytest.param(0, 5, id="a-clock-that-runs-ahead"),
        pytest.param(-30, 5, id="marked-in-the-future"),
        pytest.param(5, 5, id="the-first-reminder"),
        pytest.param(7, 7, id="late"),
        pytest.param(10, 10, id="the-second"),
        pytest.param(80, 80, id="as-long-again"),
        pytest.param(599, 599, id="still-doubling"),
        pytest.param(601, 600, id="the-limit"),
        pytest.param(86_400 * 365, 600, id="stuck-for-a-year"),
    ],
)
def test_next_wait(age: float, wait: float) -> None:
    assert patience.next_wait(timedelta(seconds=age)) == timedelta(seconds=wait)


def test_a_deletion_that_never_ends_is_repeated_a_few_times_and_then_six_times_an_hour() -> None:
    moments = accumulate(repeat(None, 20), lambda age, _: age + patience.next_wait(age), initial=patience.FIRST_WAIT)
    seconds = [moment.total_seconds() for moment in moments]
    assert seconds[:10] == [5, 10, 20, 40, 80, 160, 320, 640, 1240, 1840]
    assert sum(moment < 3600 for moment in seconds) == 12


MARKED = datetime(2026, 8, 20, tzinfo=UTC)


def deletion(*, heard_after: float | None = None, deleted_at: datetime | None = MARKED) -> rows.Spec:
    updated_at = MARKED - timedelta(hours=1) if heard_after is None else MARKED + timedelta(seconds=heard_after)
    return rows.Spec(
        id="w1",
        version=1,
        source="s",
        consumer="c",
        created_at=MARKED - timedelta(hours=2),
        updated_at=updated_at,
        deleted_at=deleted_at,
        parts=record.Parts(envelope=b"{}", metadata=b"{}", data=b"{}"),
    )


@pytest.mark.parametrize(
    ("spec", "event_id", "age", "expected"),
    [
        pytest.param(deletion(), patience.event_id("e"), 5, False, id="first-reminder"),
        pytest.param(deletion(), patience.event_id("e"), 39.9, False, id="third-reminder-late"),
        pytest.param(deletion(), patience.event_id("e"), 10, False, id="second-reminder"),
        pytest.param(deletion(), patience.event_id("e"), 20, False, id="third-reminder"),
        pytest.param(deletion(), patience.event_id("e"), 40, True, id="fourth-reminder"),
        pytest.param(deletion(), "e", 40, False, id="the-deletion-itself-delivered-late"),
        pytest.param(deletion(heard_after=1), patience.event_id("e"), 40, False, id="the-agent-said-something"),
        pytest.param(deletion(heard_after=0), patience.event_id("e"), 40, True, id="a-status-before-the-deletion"),
        pytest.param(deletion(deleted_at=None), patience.event_id("e"), 40, False, id="made-anew-meanwhile"),
    ],
)
def test_needs_other_words(spec: rows.Spec, event_id: str, age: float, *, expected: bool) -> None:
    now = MARKED + timedelta(seconds=age)
    assert patience.needs_other_words(spec, event_id=event_id, now=now) is expected


def test_an_agent_that_says_nothing_for_hours_hears_both_again_and_again() -> None:
    ages = list(accumulate(repeat(None, 60), lambda age, _: age + patience.next_wait(age), initial=patience.FIRST_WAIT))
    words = [patience.needs_other_words(deletion(), event_id=patience.event_id("e"), now=MARKED + age) for age in ages]
    assert words[:7] == [False, False, False, True, False, False, True]
    assert {True, False} == set(words[30:])
