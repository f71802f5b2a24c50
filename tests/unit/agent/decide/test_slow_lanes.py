"""Which works may be reconciled while some requests are slow."""

from collections.abc import Sequence

import pytest

from maestropy.agent.decide.slow_lanes import WORKS_AT_ONCE, Lane, Lanes, may_start


def lane(kind: str, namespace: str) -> Lane:
    return Lane("", kind, namespace)


def needs(*lanes: Lane) -> Lanes:
    return frozenset(lanes)


SLOW = lane("ConfigMap", "slow")
OTHER_NAMESPACE = lane("ConfigMap", "fast")
OTHER_KIND = lane("Secret", "slow")
FULL = [needs(SLOW)] * WORKS_AT_ONCE
KIND_IS_SLOW = [lane("ConfigMap", f"n{number}") for number in range(4)]
NAMESPACE_IS_SLOW = [lane(f"Kind{number}", "slow") for number in range(4)]


@pytest.mark.parametrize(
    ("needed", "slow", "running", "expected"),
    [
        pytest.param(needs(SLOW), [], FULL, True, id="nothing-is-slow"),
        pytest.param(needs(SLOW), [SLOW], FULL[1:], True, id="slow-lane-has-room"),
        pytest.param(needs(SLOW), [SLOW], FULL, False, id="slow-lane-is-full"),
        pytest.param(needs(SLOW, OTHER_KIND), [SLOW], FULL, False, id="one-of-several-lanes-is-full"),
        pytest.param(needs(OTHER_NAMESPACE), [SLOW], FULL, True, id="same-kind-in-another-namespace"),
        pytest.param(needs(OTHER_KIND), [SLOW], FULL, True, id="another-kind-in-the-same-namespace"),
        pytest.param(needs(), [SLOW], FULL, True, id="work-without-objects"),
        pytest.param(needs(SLOW), [SLOW], [needs(OTHER_KIND)] * 9, True, id="others-do-not-count"),
        pytest.param(
            needs(OTHER_NAMESPACE), KIND_IS_SLOW, [needs(each) for each in KIND_IS_SLOW], False, id="whole-kind-is-slow"
        ),
        pytest.param(
            needs(OTHER_NAMESPACE),
            KIND_IS_SLOW[1:],
            [needs(each) for each in KIND_IS_SLOW],
            True,
            id="not-yet-whole-kind",
        ),
        pytest.param(
            needs(OTHER_KIND),
            NAMESPACE_IS_SLOW,
            [needs(each) for each in NAMESPACE_IS_SLOW],
            False,
            id="whole-namespace",
        ),
        pytest.param(
            needs(lane("Node", "")),
            [lane(f"Cluster{number}", "") for number in range(4)],
            [needs(lane("Cluster0", ""))] * 9,
            True,
            id="objects-without-a-namespace-share-none",
        ),
    ],
)
def test_may_start(needed: Lanes, slow: Sequence[Lane], running: Sequence[Lanes], expected: bool) -> None:
    assert may_start(needed, slow=slow, running=running) is expected
