"""When a record without a work is given up."""

from typing import Any

import pytest
from applied_objects import manifest_work

from maestropy.agent.decide import eviction, ownership
from maestropy.wire import instant

IDENTITY = ownership.Identity(hub_hash="hub", agent_id="agent")
START = instant.Timestamp(1_000_000)
LATER = instant.Timestamp(START.seconds + 3600)
MARK = {"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {"evictionStartTime": START.rfc3339_seconds()}}
UNMARK = {"metadata": {"uid": "u", "resourceVersion": "1"}, "status": {"evictionStartTime": None}}


def record(*, hub: str = "hub", agent: str = "agent", marked: str = "", **metadata: Any) -> dict[str, Any]:
    found = ownership.new_record(manifest_work(), identity=ownership.Identity(hub_hash=hub, agent_id=agent))
    found["metadata"] |= {"uid": "u", "resourceVersion": "1", **metadata}
    return found | {"status": {"evictionStartTime": marked} if marked else {}}


def judged(found: dict[str, Any], *, is_known: bool = False, now: instant.Timestamp = START, **policy: Any) -> Any:
    chosen = {"grace_seconds": 3600, "answered_at": START} | policy
    rules = eviction.Policy(identity=IDENTITY, **chosen)
    return eviction.judge(found, is_work_known=is_known, policy=rules, now=now)


MARKED = START.rfc3339_seconds()


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        pytest.param(judged(record()), eviction.Mark(patch=MARK), id="case-71-start"),
        pytest.param(judged(record(marked=MARKED)), eviction.Look(at=LATER), id="look-again-when-due"),
        pytest.param(judged(record(marked=MARKED), now=LATER), eviction.Evict(), id="case-20-due"),
        pytest.param(judged(record(), is_known=True), eviction.Keep(), id="known-work"),
        pytest.param(
            judged(record(marked=MARKED), is_known=True), eviction.Mark(patch=UNMARK), id="case-72-recreated-in-time"
        ),
        pytest.param(judged(record(hub="old"), is_known=True), eviction.Mark(patch=MARK), id="case-70-other-hub"),
        pytest.param(judged(record(agent="other"), now=LATER), eviction.Keep(), id="case-69-other-agent"),
        pytest.param(judged(record(deletionTimestamp=MARKED)), eviction.Keep(), id="deleting-already"),
        pytest.param(
            judged(record(marked=MARKED), grace_seconds=eviction.NEVER_SECONDS, now=LATER),
            eviction.Mark(patch=UNMARK),
            id="case-73-never",
        ),
        pytest.param(judged(record(), grace_seconds=eviction.NEVER_SECONDS), eviction.Keep(), id="never-and-unmarked"),
        pytest.param(judged(record(), answered_at=None, now=LATER), eviction.Keep(), id="the-server-has-not-answered"),
        pytest.param(
            judged(record(marked=MARKED), answered_at=None, now=LATER),
            eviction.Keep(),
            id="not-even-an-old-mark-counts",
        ),
        pytest.param(
            judged(record(marked=MARKED), answered_at=LATER, now=LATER),
            eviction.Look(at=instant.Timestamp(LATER.seconds + 3600)),
            id="the-time-without-an-answer-does-not-count",
        ),
        pytest.param(
            judged(record(marked="garbage"), now=LATER),
            eviction.Look(at=instant.Timestamp(LATER.seconds + 3600)),
            id="unreadable-mark",
        ),
    ],
)
def test_verdict(verdict: eviction.Verdict, expected: eviction.Verdict) -> None:
    assert verdict == expected
