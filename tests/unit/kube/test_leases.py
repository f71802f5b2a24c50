"""Decisions on a Lease, and two candidates in simulated time."""

from datetime import UTC, datetime
from typing import Any

import pytest

from maestropy.kube import leases
from maestropy.kube.leases import CreateLease, HeldByOther, LeaderElectionSettings, ObservedLease, UpdateLease

TERMS = LeaderElectionSettings(
    namespace="maestro", name="lock", identity="me", lease_seconds=15, renew_seconds=10, retry_seconds=2
)
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
    ("lease_object", "observed_at", "at", "action"),
    [
        pytest.param(lease("me"), 0, 1, UpdateLease(ours(acquired=EARLIER, transitions=3)), id="renew"),
        pytest.param(lease("me"), 0, 99, UpdateLease(ours(acquired=EARLIER, transitions=3)), id="renew-late"),
        pytest.param(lease("you"), 0, 14.9, HeldByOther("you"), id="held"),
        pytest.param(lease("you"), 0, 15, UpdateLease(ours(acquired=NOW_TEXT, transitions=4)), id="expired"),
        pytest.param(lease("you", promised=60), 0, 59, HeldByOther("you"), id="duration-of-the-holder"),
        pytest.param(lease("you", promised=None), 0, 14, HeldByOther("you"), id="no-duration"),
        pytest.param(lease(""), 0, 0, UpdateLease(ours(acquired=NOW_TEXT, transitions=4)), id="released"),
        pytest.param(lease(None), 0, 0, UpdateLease(ours(acquired=NOW_TEXT, transitions=4)), id="never-held"),
    ],
)
def test_action(lease_object: dict[str, Any], observed_at: float, at: float, action: leases.LeaseAction) -> None:
    observed = ObservedLease(spec=lease_object["spec"], at=observed_at)
    assert leases.decide(lease_object, observed, settings=TERMS, at=at, now=NOW) == action


def test_first_lease() -> None:
    action = leases.decide(None, leases.observe(None, previous=None, at=0), settings=TERMS, at=0, now=NOW)
    assert action == CreateLease(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": "maestro", "name": "lock"},
            "spec": ours(acquired=NOW_TEXT, transitions=0)["spec"],
        }
    )


def test_renewal_restarts_the_wait() -> None:
    first = leases.observe(lease("you"), previous=None, at=0)
    again = leases.observe(lease("you"), previous=first, at=10)
    assert again is first
    renewed = lease("you")
    renewed["spec"]["renewTime"] = NOW_TEXT
    assert leases.observe(renewed, previous=again, at=10).at == 10


def test_release_keeps_the_transitions() -> None:
    spec = leases.released(lease("me"), now=NOW)["spec"]
    assert spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": NOW_TEXT,
        "renewTime": NOW_TEXT,
        "leaseTransitions": 3,
    }
