"""Whether what an answer showed is how an object is now."""

import pytest

from pymaestro.agent.decide.freshness import Verdict, Version, is_newer, judge

FIRST, SECOND = "first-life", "second-life"


@pytest.mark.parametrize(
    ("shown", "told", "verdict"),
    [
        pytest.param(None, None, Verdict.GONE, id="never-shown-nor-told"),
        pytest.param(None, Version(FIRST, "5"), Verdict.ASK, id="told-of-but-never-shown"),
        pytest.param(Version(FIRST, "5"), Version(FIRST, "5"), Verdict.SHOWN, id="same"),
        pytest.param(Version(FIRST, "6"), Version(FIRST, "5"), Verdict.SHOWN, id="written-a-moment-ago"),
        pytest.param(Version(SECOND, "6"), Version(FIRST, "5"), Verdict.SHOWN, id="created-anew-a-moment-ago"),
        pytest.param(Version(FIRST, "5"), Version(FIRST, "6"), Verdict.ASK, id="changed-since"),
        pytest.param(Version(FIRST, "5"), Version(SECOND, "6"), Verdict.ASK, id="another-life-since"),
        pytest.param(Version(FIRST, "5"), None, Verdict.GONE, id="ended-since"),
        pytest.param(Version(FIRST, "10"), None, Verdict.GONE, id="ended-with-the-last-thing-told"),
        pytest.param(Version(FIRST, "11"), None, Verdict.SHOWN, id="created-a-moment-ago"),
        pytest.param(Version(FIRST, "b"), Version(FIRST, "b"), Verdict.SHOWN, id="opaque-and-same"),
        pytest.param(Version(FIRST, "b"), Version(FIRST, "a"), Verdict.ASK, id="opaque-and-another"),
        pytest.param(Version(FIRST, "b"), None, Verdict.ASK, id="opaque-and-not-told"),
    ],
)
def test_verdict(shown: Version | None, told: Version | None, verdict: Verdict) -> None:
    assert judge(shown, told, heard_until="10") == verdict


def test_versions_are_compared_as_numbers() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("", "10")
