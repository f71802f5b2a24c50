"""Who leads: the decision by table, and two candidates in one minute of pretended time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maestropy.kube import leases
from maestropy.kube.leases import Create, Sighting, Terms, Update, Wait

TERMS = Terms(namespace="maestro", name="lock", identity="me", lease_seconds=15, renew_seconds=10, retry_seconds=2)
NOW = datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
NOW_TEXT = "2024-05-06T07:08:09.000010Z"
EARLIER = "2024-05-06T07:00:00.000000Z"


def lease(holder: str | None, *, promised: int | None = 15, transitions: int = 3) -> dict[str, Any]:
    spec: dict[str, Any] = {"acquireTime": EARLIER, "renewTime": EARLIER, "leaseTransitions": transitions}
    spec |= {"holderIdentity": holder} if holder is not None else {}
    spec |= {"leaseDurationSeconds": promised} if promised is not None else {}
    return {"metadata": {"name": "lock", "resourceVersion": "9"}, "spec": spec}


def ours(*, acquired: str, transitions: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "lock", "resourceVersion": "9"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": acquired,
            "renewTime": NOW_TEXT,
            "leaseTransitions": transitions,
        },
    }


@pytest.mark.parametrize(
    ("found", "seen_at", "at", "move"),
    [
        pytest.param(lease("me"), 0, 1, Update(ours(acquired=EARLIER, transitions=3)), id="renew"),
        pytest.param(lease("me"), 0, 99, Update(ours(acquired=EARLIER, transitions=3)), id="renew-late"),
        pytest.param(lease("you"), 0, 14.9, Wait("you"), id="held"),
        pytest.param(lease("you"), 0, 15, Update(ours(acquired=NOW_TEXT, transitions=4)), id="run-out"),
        pytest.param(lease("you", promised=60), 0, 59, Wait("you"), id="the-holder's-own-promise-counts"),
        pytest.param(lease("you", promised=None), 0, 14, Wait("you"), id="no-promise"),
        pytest.param(lease(""), 0, 0, Update(ours(acquired=NOW_TEXT, transitions=4)), id="released"),
        pytest.param(lease(None), 0, 0, Update(ours(acquired=NOW_TEXT, transitions=4)), id="never-held"),
    ],
)
def test_move(found: dict[str, Any], seen_at: float, at: float, move: leases.Move) -> None:
    sighting = Sighting(spec=found["spec"], at=seen_at)
    assert leases.consider(found, sighting, terms=TERMS, at=at, now=NOW) == move


def test_first_ever() -> None:
    move = leases.consider(None, leases.observe(None, before=None, at=0), terms=TERMS, at=0, now=NOW)
    assert move == Create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": "maestro", "name": "lock"},
            "spec": ours(acquired=NOW_TEXT, transitions=0)["spec"],
        }
    )


def test_a_renewed_record_starts_the_wait_anew() -> None:
    first = leases.observe(lease("you"), before=None, at=0)
    again = leases.observe(lease("you"), before=first, at=10)
    assert again is first
    renewed = lease("you")
    renewed["spec"]["renewTime"] = NOW_TEXT
    assert leases.observe(renewed, before=again, at=10).at == 10


def test_release_keeps_the_history() -> None:
    spec = leases.released(lease("me"), now=NOW)["spec"]
    assert spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": NOW_TEXT,
        "renewTime": NOW_TEXT,
        "leaseTransitions": 3,
    }
