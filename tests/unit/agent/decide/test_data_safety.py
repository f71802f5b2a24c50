"""Whether a server may change or remove what the agent has applied."""

import itertools
from dataclasses import replace

import pytest

from maestropy.agent.decide import data_safety
from maestropy.agent.decide.data_safety import EvictionFacts, Hold, HoldReason, Proceed, SpecOrigin, Verdict
from maestropy.wire import timestamps
from maestropy.wire.works import status

APPLIED = SpecOrigin(
    database="a", created="2026-01-01T10:00:00Z", version=7, published="2026-01-02T10:00:00.5Z", is_adopted=False
)
LATER = "2026-01-02T10:00:01Z"
EARLIER = "2026-01-01T12:00:00Z"


def reason(verdict: Verdict) -> HoldReason | None:
    return verdict.reason if isinstance(verdict, Hold) else None


SPEC_CASES = [
    pytest.param(None, APPLIED, None, id="new-work"),
    pytest.param(SpecOrigin(), APPLIED, None, id="record-without-facts"),
    pytest.param(APPLIED, APPLIED, None, id="same-spec"),
    pytest.param(APPLIED, replace(APPLIED, version=8, published=LATER), None, id="update"),
    pytest.param(APPLIED, replace(APPLIED, version=8, published=EARLIER), None, id="update-of-source-with-slow-clock"),
    pytest.param(APPLIED, replace(APPLIED, version=7, published=LATER), None, id="same-version-published-again"),
    pytest.param(APPLIED, replace(APPLIED, version=6, published=LATER), None, id="updated-after-restore"),
    pytest.param(APPLIED, replace(APPLIED, version=5, published=EARLIER), HoldReason.OLDER_VERSION, id="restored"),
    pytest.param(APPLIED, replace(APPLIED, version=5), HoldReason.OLDER_VERSION, id="older-version-same-time"),
    pytest.param(APPLIED, replace(APPLIED, version=5, published=""), HoldReason.OLDER_VERSION, id="time-unknown"),
    pytest.param(APPLIED, replace(APPLIED, version=5, published="?"), HoldReason.OLDER_VERSION, id="time-invalid"),
    pytest.param(APPLIED, replace(APPLIED, version=0), None, id="no-version"),
    pytest.param(APPLIED, replace(APPLIED, database="b", version=9), HoldReason.OTHER_DATABASE, id="other-database"),
    pytest.param(APPLIED, replace(APPLIED, database="", version=8), None, id="go-server"),
    pytest.param(
        APPLIED, replace(APPLIED, database="", version=6, published=EARLIER), HoldReason.OLDER_VERSION, id="go-restored"
    ),
    pytest.param(replace(APPLIED, database=""), replace(APPLIED, database="b", version=8), None, id="after-go-server"),
    pytest.param(
        APPLIED,
        replace(APPLIED, created="2026-01-01T09:00:00Z", version=9, published=LATER),
        HoldReason.OLDER_INCARNATION,
        id="older-incarnation",
    ),
    pytest.param(
        APPLIED, replace(APPLIED, created="2026-01-03T00:00:00Z", version=1, published=LATER), None, id="recreated"
    ),
    pytest.param(
        APPLIED,
        replace(APPLIED, created="2026-01-03T00:00:00Z", version=1, published=EARLIER),
        None,
        id="recreated-by-source-with-slow-clock",
    ),
]


@pytest.mark.parametrize(("applied", "incoming", "expected"), SPEC_CASES)
def test_spec(applied: SpecOrigin | None, incoming: SpecOrigin, expected: HoldReason | None) -> None:
    assert reason(data_safety.spec_verdict(applied, incoming)) == expected


@pytest.mark.parametrize(
    ("applied", "incoming", "expected"),
    [
        pytest.param(None, APPLIED, None, id="unknown-origin"),
        pytest.param(APPLIED, APPLIED, None, id="requested"),
        pytest.param(APPLIED, replace(APPLIED, version=0, created=""), None, id="without-version-and-metadata"),
        pytest.param(APPLIED, replace(APPLIED, database="b"), HoldReason.OTHER_DATABASE, id="other-database"),
        pytest.param(APPLIED, replace(APPLIED, database=""), None, id="go-server"),
        pytest.param(
            APPLIED, replace(APPLIED, created="2025-12-31T00:00:00Z"), HoldReason.OLDER_INCARNATION, id="incarnation"
        ),
        pytest.param(APPLIED, replace(APPLIED, created="2026-01-03T00:00:00Z"), None, id="later-incarnation"),
    ],
)
def test_deletion(applied: SpecOrigin | None, incoming: SpecOrigin, expected: HoldReason | None) -> None:
    assert reason(data_safety.deletion_verdict(applied, incoming)) == expected


@pytest.mark.parametrize(
    ("owner", "incoming", "is_protected"),
    [
        pytest.param(APPLIED, "b", True, id="other-database"),
        pytest.param(APPLIED, "a", False, id="same-database"),
        pytest.param(APPLIED, "", False, id="go-server"),
        pytest.param(None, "b", False, id="go-agent"),
    ],
)
def test_object_of_a_work_of_another_database(owner: SpecOrigin | None, incoming: str, *, is_protected: bool) -> None:
    problem = data_safety.object_problem("w1", owner, SpecOrigin(database=incoming, version=1))
    assert bool(problem) is is_protected
    assert not problem or "belongs to work w1" in problem


def test_eviction_is_exhaustively_safe() -> None:
    """Only a known consumer, no other database, and few orphans or an adoption of this database permit an eviction."""
    recorded_databases = (None, "", "a", "b")
    for database, recorded, is_known, is_adopted, orphans in itertools.product(
        ("", "a"), recorded_databases, (True, False), (True, False), (1, 10, 11, 20, 21, 50, 100)
    ):
        applied = None if recorded is None else SpecOrigin(database=recorded, version=1, is_adopted=is_adopted)
        facts = EvictionFacts(database=database, is_consumer_known=is_known, orphans=orphans, applied_works=100)
        verdict = data_safety.eviction_verdict(applied, facts)
        is_other = bool(database and recorded and recorded != database)
        was_adopted = applied is not None and is_adopted
        may_evict = is_known and not is_other and (was_adopted or orphans <= 20)
        assert (verdict == Proceed()) is may_evict, (database, recorded, is_known, is_adopted, orphans)


@pytest.mark.parametrize("orphans", [1, 2, 10])
def test_small_cluster_does_not_lose_everything(orphans: int) -> None:
    """The share counts, not only the number: a restored database without the works of a small cluster is no order."""
    facts = EvictionFacts(database="a", is_consumer_known=True, orphans=orphans, applied_works=orphans)
    assert reason(data_safety.eviction_verdict(APPLIED, facts)) == HoldReason.TOO_MANY_ORPHANS


def test_origin_survives_the_annotation() -> None:
    for origin in (
        APPLIED,
        replace(APPLIED, is_adopted=True, consumer="c1"),
        SpecOrigin(version=3),
        SpecOrigin(database="a"),
    ):
        applied_work = {"metadata": {"annotations": {data_safety.ORIGIN: data_safety.annotation(origin)}}}
        assert data_safety.read_origin(applied_work) == origin


@pytest.mark.parametrize("text", ["", "{}", "[]", "{", '{"version":"x"}', '{"database":1}'])
def test_damaged_annotation_counts_as_none(text: str) -> None:
    assert data_safety.read_origin({"metadata": {"annotations": {data_safety.ORIGIN: text}}}) is None
    assert data_safety.read_origin(None) is None
    assert data_safety.read_origin({"metadata": {}}) is None


def test_go_server_does_not_erase_the_database_and_a_spec_ends_the_adoption() -> None:
    incoming = SpecOrigin(created=APPLIED.created, version=8, published=LATER)
    assert data_safety.recorded(incoming, previous=replace(APPLIED, is_adopted=True)) == replace(
        incoming, database="a", is_adopted=False
    )
    assert data_safety.recorded(incoming, previous=None) == incoming
    in_resync = replace(incoming, created="")
    assert data_safety.recorded(in_resync, previous=APPLIED).created == APPLIED.created


@pytest.mark.parametrize(
    ("applied", "other"),
    [
        pytest.param(None, "", id="go-agent"),
        pytest.param(APPLIED, "", id="recorded-by-an-earlier-version"),
        pytest.param(replace(APPLIED, consumer="c1"), "", id="own"),
        pytest.param(replace(APPLIED, consumer="c2"), "c2", id="other"),
    ],
)
def test_work_of_another_consumer(applied: SpecOrigin | None, other: str) -> None:
    assert data_safety.other_consumer(applied, consumer="c1") == other


def test_consumer_is_recorded_with_the_next_spec_and_not_by_a_write_of_its_own() -> None:
    ours = replace(APPLIED, consumer="c1")
    assert data_safety.is_recorded(ours, previous=APPLIED)
    assert data_safety.is_recorded(ours, previous=ours)
    for previous in (None, replace(APPLIED, version=6), replace(APPLIED, consumer="c2")):
        assert not data_safety.is_recorded(ours, previous=previous)
    assert data_safety.recorded(ours, previous=APPLIED).consumer == "c1"


def test_condition_of_a_hold_comes_and_goes() -> None:
    now = timestamps.parse(LATER)
    applied = status.WorkStatus().with_condition(status.Condition(type="Applied", status="True"), now=now)
    hold = Hold(reason=HoldReason.OTHER_DATABASE, message="text")
    held = applied.with_condition(data_safety.held(hold, generation=3), now=now)
    assert held.is_true(data_safety.HOLD_CONDITION)
    assert data_safety.without_hold(held).body == applied.body
    assert data_safety.without_hold(applied) is applied


@pytest.mark.parametrize(
    ("applied", "is_same"),
    [
        pytest.param(None, False, id="not-recorded"),
        pytest.param(data_safety.SpecOrigin(database="d", created="c", version=2, published="p"), True, id="same"),
        pytest.param(
            data_safety.SpecOrigin(
                database="d", created="c", version=2, published="p", is_adopted=True, consumer="cluster1"
            ),
            True,
            id="adopted-by-this-consumer",
        ),
        pytest.param(data_safety.SpecOrigin(database="d", created="c", version=1, published="p"), False, id="version"),
        pytest.param(data_safety.SpecOrigin(database="e", created="c", version=2, published="p"), False, id="database"),
        pytest.param(data_safety.SpecOrigin(database="d", created="x", version=2, published="p"), False, id="creation"),
        pytest.param(
            data_safety.SpecOrigin(database="d", created="c", version=2, published="q"), False, id="republished"
        ),
    ],
)
def test_spec_is_the_applied_one(applied: data_safety.SpecOrigin | None, *, is_same: bool) -> None:
    incoming = data_safety.SpecOrigin(database="d", created="c", version=2, published="p")
    assert data_safety.is_same_spec(applied, incoming) is is_same
