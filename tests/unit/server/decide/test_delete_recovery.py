"""Deletions that are sent again: delays double, turns are shared, and some redeliveries are replacements."""

from datetime import UTC, datetime, timedelta

import pytest

from maestropy.server.decide import delete_recovery
from maestropy.server.decide.delete_recovery import RecoveryPolicy
from maestropy.store import rows
from maestropy.wire.events import stored_event

SECOND = timedelta(seconds=1)
NS = 1_000_000_000
MARKED = datetime(2026, 8, 20, tzinfo=UTC)
POLICY = RecoveryPolicy()
LARGEST = RecoveryPolicy(initial=9_223_372_036 * SECOND, longest=9_223_372_036 * SECOND)


def deletion(delay_ns: int | None = None, *, consumer: str = "c", age: float = 0) -> rows.UnconfirmedDeletion:
    deleted_at = MARKED - age * SECOND
    return rows.UnconfirmedDeletion(id="w", consumer=consumer, source="s", deleted_at=deleted_at, delay_ns=delay_ns)


@pytest.mark.parametrize(
    ("policy", "previous", "expected"),
    [
        pytest.param(POLICY, 60 * NS, 120 * NS, id="doubled"),
        pytest.param(POLICY, 1799 * NS, 3598 * NS, id="below-half-of-the-longest"),
        pytest.param(POLICY, 1800 * NS, 3600 * NS, id="half-of-the-longest"),
        pytest.param(POLICY, 3600 * NS, 3600 * NS, id="longest"),
        pytest.param(POLICY, 86_400 * NS, 3600 * NS, id="longer-than-the-longest-of-these-flags"),
        pytest.param(POLICY, 0, 120 * NS, id="no-delay-stored"),
        pytest.param(POLICY, 5 * NS, 120 * NS, id="stored-with-a-smaller-interval"),
        pytest.param(RecoveryPolicy(initial=SECOND, longest=SECOND), NS, NS, id="interval-is-the-longest"),
        pytest.param(LARGEST, 9_223_372_036 * NS, 9_223_372_036 * NS, id="largest-duration-of-go"),
    ],
)
def test_next_delay(policy: RecoveryPolicy, previous: int, expected: int) -> None:
    assert delete_recovery.next_delay(previous, policy) == expected


def test_first_retry_is_counted_from_the_deletion() -> None:
    assert delete_recovery.first_retry(deletion(age=86_400), POLICY) == rows.Retry(
        at=MARKED - timedelta(days=1) + 60 * SECOND, delay_ns=60 * NS
    )


def test_next_retry_comes_after_half_to_all_of_the_delay() -> None:
    events = [f"00000000-0000-4000-8000-{number:012d}" for number in range(500)]
    retries = [delete_recovery.next_retry(deletion(60 * NS), POLICY, event_id=event, now=MARKED) for event in events]
    assert {retry.delay_ns for retry in retries} == {120 * NS}
    delays = sorted(retry.at - MARKED for retry in retries)
    assert 60 * SECOND <= delays[0] < 62 * SECOND
    assert 118 * SECOND < delays[-1] < 120 * SECOND


def test_event_that_waits_for_its_delivery_does_not_lengthen_the_delay() -> None:
    retry = delete_recovery.next_retry(deletion(240 * NS), POLICY, event_id=None, now=MARKED)
    assert retry == rows.Retry(at=MARKED + 60 * SECOND, delay_ns=240 * NS)


def test_consumer_gets_the_turn_of_its_first_deletion_behind_those_that_wait() -> None:
    deletions = [deletion(age=10), deletion(age=40), deletion(age=86_400, consumer="old")]
    assert delete_recovery.first_turns(deletions, POLICY, MARKED) == {"c": MARKED + 20 * SECOND, "old": MARKED}


@pytest.mark.parametrize(
    ("batch", "consumers", "turns"),
    [
        pytest.param(25, 25, 1, id="as-many-consumers"),
        pytest.param(25, 13, 1, id="not-enough-for-two"),
        pytest.param(25, 12, 2, id="two-each"),
        pytest.param(1000, 1, 1000, id="one-consumer"),
        pytest.param(1, 1, 1, id="smallest-batch"),
        pytest.param(25, 0, 25, id="no-consumer"),
    ],
)
def test_turns_are_shared_and_stay_within_the_batch(batch: int, consumers: int, turns: int) -> None:
    assert delete_recovery.turns_per_consumer(RecoveryPolicy(batch=batch), consumers=consumers) == turns


def spec(*, status_after: float | None = None, deleted_at: datetime | None = MARKED) -> rows.ResourceSpec:
    updated_at = MARKED - timedelta(hours=1) if status_after is None else MARKED + status_after * SECOND
    return rows.ResourceSpec(
        id="w1",
        version=1,
        source="s",
        consumer="c",
        created_at=MARKED - timedelta(hours=2),
        updated_at=updated_at,
        deleted_at=deleted_at,
        parts=stored_event.StoredParts(envelope=b"{}", metadata=b"{}", data=b"{}"),
    )


@pytest.mark.parametrize(
    ("resource", "is_repeated", "age", "expected"),
    [
        pytest.param(spec(), True, 60, False, id="first-redelivery"),
        pytest.param(spec(), True, 119, False, id="first-redelivery-late"),
        pytest.param(spec(), True, 120, True, id="second-redelivery"),
        pytest.param(spec(), True, 179, True, id="second-redelivery-with-most-jitter"),
        pytest.param(spec(), True, 300, False, id="third-redelivery"),
        pytest.param(spec(), False, 120, False, id="late-delivery-of-the-deletion-itself"),
        pytest.param(spec(status_after=1), True, 120, False, id="status-after-deletion"),
        pytest.param(spec(status_after=0), True, 120, True, id="status-at-deletion"),
        pytest.param(spec(deleted_at=None), True, 120, False, id="recreated"),
    ],
)
def test_needs_replacement(resource: rows.ResourceSpec, *, is_repeated: bool, age: float, expected: bool) -> None:
    now = MARKED + age * SECOND
    for initial in (60 * SECOND, timedelta()):
        assert (
            delete_recovery.needs_replacement(resource, is_repeated=is_repeated, now=now, initial=initial) is expected
        )


@pytest.mark.parametrize(
    ("initial", "expected"),
    [
        pytest.param(5, [False, False, False, True, False, False, True], id="short-interval"),
        pytest.param(60, [False, True, False, False, True, False, False], id="default"),
        pytest.param(3600, [False, True, False, False, True, False, False], id="long-interval"),
    ],
)
def test_silent_agent_gets_replacements_and_plain_redeliveries(initial: int, expected: list[bool]) -> None:
    """Whatever chance takes from the delays."""
    for share in (0.5, 0.75, 0.999):
        ages = [initial * (1 + sum(share * 2**n for n in range(1, redelivery))) for redelivery in range(1, 8)]
        replacements = [
            delete_recovery.needs_replacement(
                spec(), is_repeated=True, now=MARKED + age * SECOND, initial=initial * SECOND
            )
            for age in ages
        ]
        assert replacements == expected
