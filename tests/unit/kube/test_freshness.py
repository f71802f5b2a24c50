"""Whether the object of a response is current."""

import pytest

from maestropy.kube.freshness import Freshness, compare, is_newer
from maestropy.kube.watch_changes import ObjectVersion

FIRST, SECOND = "first-life", "second-life"


@pytest.mark.parametrize(
    ("response", "watched", "expected"),
    [
        pytest.param(None, None, Freshness.DELETED, id="in-neither"),
        pytest.param(None, ObjectVersion(FIRST, "5"), Freshness.UNKNOWN, id="only-in-watch"),
        pytest.param(ObjectVersion(FIRST, "5"), ObjectVersion(FIRST, "5"), Freshness.CURRENT, id="same"),
        pytest.param(
            ObjectVersion(FIRST, "6"), ObjectVersion(FIRST, "5"), Freshness.CURRENT, id="response-newer-than-watch"
        ),
        pytest.param(
            ObjectVersion(SECOND, "6"), ObjectVersion(FIRST, "5"), Freshness.CURRENT, id="recreated-after-watch"
        ),
        pytest.param(
            ObjectVersion(FIRST, "5"), ObjectVersion(FIRST, "6"), Freshness.UNKNOWN, id="watch-newer-than-response"
        ),
        pytest.param(ObjectVersion(FIRST, "5"), ObjectVersion(SECOND, "6"), Freshness.UNKNOWN, id="recreated-in-watch"),
        pytest.param(ObjectVersion(FIRST, "5"), None, Freshness.DELETED, id="deleted-after-response"),
        pytest.param(ObjectVersion(FIRST, "10"), None, Freshness.DELETED, id="deleted-at-watched-version"),
        pytest.param(ObjectVersion(FIRST, "11"), None, Freshness.CURRENT, id="created-after-watched-version"),
        pytest.param(ObjectVersion(FIRST, "b"), ObjectVersion(FIRST, "b"), Freshness.CURRENT, id="opaque-version-same"),
        pytest.param(
            ObjectVersion(FIRST, "b"), ObjectVersion(FIRST, "a"), Freshness.UNKNOWN, id="opaque-version-differs"
        ),
        pytest.param(ObjectVersion(FIRST, "b"), None, Freshness.UNKNOWN, id="opaque-version-not-watched"),
    ],
)
def test_compare(response: ObjectVersion | None, watched: ObjectVersion | None, expected: Freshness) -> None:
    assert compare(response, watched, watched_until="10") == expected


def test_versions_are_compared_as_numbers() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("", "10")
