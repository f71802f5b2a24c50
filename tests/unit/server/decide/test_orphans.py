"""Whether an agent is told to delete works that the database does not have."""

import pytest

from maestropy.server.decide import orphans
from maestropy.wire import resync

HELD = resync.ReportedHold(id="h", reason="OtherDatabase", message="m", database="d", count=1, works=("w",))


def request(count: int, *, ours: bool = False, hold: resync.ReportedHold | None = None) -> resync.SpecResyncRequest:
    versions = {f"w{number}": 1 for number in range(count)}
    return resync.SpecResyncRequest(versions=versions, event_ids={}, states_hold=ours, hold=hold)


def response(count: int) -> resync.SpecResyncResponse:
    return resync.SpecResyncResponse(send=(), orphans={f"w{number}": 1 for number in range(count)})


@pytest.mark.parametrize(
    ("asked", "orphaned", "is_consumer_known", "reason", "may_delete"),
    [
        pytest.param(request(100), 0, True, None, True, id="no-orphans"),
        pytest.param(request(10), 4, True, None, True, id="few-works"),
        pytest.param(request(10), 5, True, "TooManyOrphans", False, id="half-of-few-works"),
        pytest.param(request(1), 1, True, "TooManyOrphans", False, id="the-only-work"),
        pytest.param(request(11), 11, True, "TooManyOrphans", False, id="all-works-of-go-agent"),
        pytest.param(request(100), 20, True, None, True, id="at-the-limit"),
        pytest.param(request(100), 21, True, "TooManyOrphans", False, id="above-the-limit"),
        pytest.param(request(1), 1, False, "UnknownConsumer", False, id="unknown-consumer"),
        pytest.param(request(100, ours=True), 100, True, None, True, id="our-agent-decides-itself"),
        pytest.param(request(100, ours=True, hold=HELD), 0, True, "OtherDatabase", True, id="hold-of-our-agent"),
        pytest.param(request(5, ours=True), 5, False, "UnknownConsumer", False, id="our-agent-of-unknown-consumer"),
    ],
)
def test_orphans(
    asked: resync.SpecResyncRequest, orphaned: int, is_consumer_known: bool, reason: str | None, may_delete: bool
) -> None:
    hold = orphans.hold(asked, response(orphaned), is_consumer_known=is_consumer_known)
    assert (hold.reason if hold else None) == reason
    may = orphans.may_delete(asked, hold=hold, is_adopted=False, is_consumer_known=is_consumer_known)
    assert may == may_delete
    if hold is not None and is_consumer_known:
        assert orphans.may_delete(asked, hold=hold, is_adopted=True, is_consumer_known=True)


def test_advice_for_an_unknown_consumer_says_what_creating_it_means() -> None:
    hold = orphans.hold(request(1), response(1), is_consumer_known=False)
    assert hold is not None
    assert "the database then decides about these works (docs/data-safety.md)" in hold.message


def test_same_orphans_are_the_same_hold() -> None:
    ids = [
        hold.id
        for count in (20, 20, 21)
        if (hold := orphans.hold(request(50), response(count), is_consumer_known=True))
    ]
    assert ids[0] == ids[1] != ids[2]
