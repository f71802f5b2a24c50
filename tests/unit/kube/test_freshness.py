"""Whether what an answer showed is how an object is now."""

import pytest

from maestropy.kube.freshness import Verdict, is_newer, judge
from maestropy.kube.roster import Sighting

FIRST, SECOND = "first-life", "second-life"


@pytest.mark.parametrize(
    ("shown", "told", "verdict"),
    [
        pytest.param(None, None, Verdict.GONE, id="never-shown-nor-told"),
        pytest.param(None, Sighting(FIRST, "5"), Verdict.ASK, id="told-of-but-never-shown"),
        pytest.param(Sighting(FIRST, "5"), Sighting(FIRST, "5"), Verdict.SHOWN, id="same"),
        pytest.param(Sighting(FIRST, "6"), Sighting(FIRST, "5"), Verdict.SHOWN, id="written-a-moment-ago"),
        pytest.param(Sighting(SECOND, "6"), Sighting(FIRST, "5"), Verdict.SHOWN, id="created-anew-a-moment-ago"),
        pytest.param(Sighting(FIRST, "5"), Sighting(FIRST, "6"), Verdict.ASK, id="changed-since"),
        pytest.param(Sighting(FIRST, "5"), Sighting(SECOND, "6"), Verdict.ASK, id="another-life-since"),
        pytest.param(Sighting(FIRST, "5"), None, Verdict.GONE, id="ended-since"),
        pytest.param(Sighting(FIRST, "10"), None, Verdict.GONE, id="ended-with-the-last-thing-told"),
        pytest.param(Sighting(FIRST, "11"), None, Verdict.SHOWN, id="created-a-moment-ago"),
        pytest.param(Sighting(FIRST, "b"), Sighting(FIRST, "b"), Verdict.SHOWN, id="opaque-and-same"),
        pytest.param(Sighting(FIRST, "b"), Sighting(FIRST, "a"), Verdict.ASK, id="opaque-and-another"),
        pytest.param(Sighting(FIRST, "b"), None, Verdict.ASK, id="opaque-and-not-told"),
    ],
)
def test_verdict(shown: Sighting | None, told: Sighting | None, verdict: Verdict) -> None:
    assert judge(shown, told, heard_until="10") == verdict


def test_versions_are_compared_as_numbers() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("", "10")
