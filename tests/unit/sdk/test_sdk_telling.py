"""Where a work stands, in a sentence."""

from typing import Any

import pytest

from maestropy.sdk import telling
from maestropy.sdk.work import Work


def work(*, version: int = 1, observed: int = 1, **conditions: str) -> Work:
    told = [{"type": name, "status": status, "message": f"about {name}"} for name, status in conditions.items()]
    body: dict[str, Any] = {"id": "1", "version": version, "consumer_name": "c1", "manifests": []}
    status = {"ObservedVersion": observed, "conditions": told} if told else {}
    return Work.from_bundle({**body, "status": status})


@pytest.mark.parametrize(
    ("found", "wanted", "sentence"),
    [
        pytest.param(None, "Available", "nothing was heard of it", id="silence"),
        pytest.param(work(), "Available", "the agent has not reported on it yet", id="no-report"),
        pytest.param(work(version=2, Applied="True"), "Applied", "has reported only on version 1", id="old-report"),
        pytest.param(work(Applied="False"), "Available", "Applied is False: about Applied", id="not-even-applied"),
        pytest.param(work(Applied="True"), "Available", "not said yet whether it is Available", id="half-way"),
        pytest.param(
            work(Applied="True", Available="True"), "Ready", "not said yet whether it is Ready", id="never-heard-of"
        ),
        pytest.param(
            work(Applied="True", Available="False"), "Available", "Available is False: about Available", id="refused"
        ),
    ],
)
def test_what_is_missing(found: Work | None, wanted: str, sentence: str) -> None:
    assert sentence in telling.missing(found, wanted)
