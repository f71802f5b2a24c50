"""When an AppliedManifestWork without a work is evicted."""

from typing import Any

import pytest

from maestropy.agent.decide import eviction, ownership
from maestropy.wire import timestamps
from tests.unit.agent.decide.applied_objects import manifest_work

IDENTITY = ownership.AgentIdentity(hub_hash="hub", agent_id="agent")
START = timestamps.Timestamp(1_000_000)
LATER = timestamps.Timestamp(START.seconds + 3600)
START_PATCH = {
    "metadata": {"uid": "u", "resourceVersion": "1"},
    "status": {"evictionStartTime": START.rfc3339_seconds()},
}
UNMARK = {"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {"evictionStartTime": None}}


def applied_work(*, hub: str = "hub", agent: str = "agent", started_at: str = "", **metadata: Any) -> dict[str, Any]:
    body = ownership.new_applied_work(manifest_work(), identity=ownership.AgentIdentity(hub_hash=hub, agent_id=agent))
    body["metadata"] |= {"uid": "u", "resourceVersion": "1", **metadata}
    return body | {"status": {"evictionStartTime": started_at} if started_at else {}}


def decided(body: dict[str, Any], *, is_known: bool = False, now: timestamps.Timestamp = START, **policy: Any) -> Any:
    chosen: dict[str, Any] = {"grace_seconds": 3600, "resynced_at": START, "is_absence_confirmed": True} | policy
    rules = eviction.EvictionPolicy(identity=IDENTITY, **chosen)
    return eviction.decide(body, is_work_known=is_known, policy=rules, now=now)


STARTED = START.rfc3339_seconds()


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(decided(applied_work()), eviction.PatchEvictionStart(patch=START_PATCH), id="eviction-starts"),
        pytest.param(
            decided(applied_work(started_at=STARTED)), eviction.WaitForGracePeriod(at=LATER), id="recheck-when-due"
        ),
        pytest.param(
            decided(applied_work(started_at=STARTED), now=LATER), eviction.EvictAppliedWork(), id="grace-period-over"
        ),
        pytest.param(
            decided(applied_work(started_at=STARTED), now=LATER, is_absence_confirmed=False),
            eviction.ConfirmAbsence(),
            id="server-away-when-due",
        ),
        pytest.param(decided(applied_work(), is_known=True), eviction.KeepAppliedWork(), id="known-work"),
        pytest.param(
            decided(applied_work(started_at=STARTED), is_known=True),
            eviction.PatchEvictionStart(patch=UNMARK),
            id="work-recreated-before-due",
        ),
        pytest.param(
            decided(applied_work(hub="old"), is_known=True),
            eviction.PatchEvictionStart(patch=START_PATCH),
            id="other-hub",
        ),
        pytest.param(decided(applied_work(agent="other"), now=LATER), eviction.KeepAppliedWork(), id="other-agent"),
        pytest.param(
            decided(applied_work(deletionTimestamp=STARTED)), eviction.KeepAppliedWork(), id="deleting-already"
        ),
        pytest.param(
            decided(applied_work(started_at=STARTED), grace_seconds=eviction.DISABLED_SECONDS, now=LATER),
            eviction.PatchEvictionStart(patch=UNMARK),
            id="disabled-clears-start-time",
        ),
        pytest.param(
            decided(applied_work(), grace_seconds=eviction.DISABLED_SECONDS),
            eviction.KeepAppliedWork(),
            id="disabled-without-start-time",
        ),
        pytest.param(
            decided(applied_work(), resynced_at=None, now=LATER), eviction.KeepAppliedWork(), id="no-resync-yet"
        ),
        pytest.param(
            decided(applied_work(started_at=STARTED), resynced_at=None, now=LATER),
            eviction.KeepAppliedWork(),
            id="old-start-time-without-resync",
        ),
        pytest.param(
            decided(applied_work(started_at=STARTED), resynced_at=LATER, now=LATER),
            eviction.WaitForGracePeriod(at=timestamps.Timestamp(LATER.seconds + 3600)),
            id="time-before-resync-does-not-count",
        ),
        pytest.param(
            decided(applied_work(started_at="garbage"), now=LATER),
            eviction.WaitForGracePeriod(at=timestamps.Timestamp(LATER.seconds + 3600)),
            id="invalid-start-time",
        ),
    ],
)
def test_eviction_decision(verdict: eviction.Verdict, expected: eviction.Verdict) -> None:
    assert verdict == expected


@pytest.mark.parametrize(
    ("answers", "is_connected", "is_confirmed"),
    [
        pytest.param([80.0], True, True, id="answered"),
        pytest.param([80.0], False, False, id="not-connected"),
        pytest.param([], True, False, id="never-answered"),
        pytest.param([95.0], True, False, id="works-may-still-arrive"),
        pytest.param([39.0], True, False, id="too-long-ago"),
        pytest.param([39.0, 70.0, 95.0], True, True, id="one-counts"),
    ],
)
def test_absence_is_confirmed_by_a_recent_answer_only(
    answers: list[float], *, is_connected: bool, is_confirmed: bool
) -> None:
    confirmed = eviction.is_absence_confirmed(answers, is_connected=is_connected, now=100.0, arrival_seconds=10.0)
    assert confirmed is is_confirmed
