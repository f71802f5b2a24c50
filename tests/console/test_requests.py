"""The newest requests that logs show: what was sent again, and what waits for a paused consumer."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from maestropy.console import rows
from maestropy.console.picture import Picture
from maestropy.console.requests import RequestFeed
from maestropy.trace.logs.log_streams import LogStreams
from maestropy.trace.logs.model import Options
from maestropy.trace.work.model import ConsumerPause
from tests.console.fake_api import bundle, condition, status
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog
from tests.unit.trace.logs.judge.test_situations import SERVER, lines_of

UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)
AGAIN = replace(UPDATE, at=BASE + 3600, until=3, without=frozenset({1}))
NOW = datetime.fromtimestamp(BASE + 7200, UTC)


class Followed:
    """A feed of logs that are written by hand, and the picture beside it."""

    def __init__(self, work: dict[str, Any] | None = None) -> None:
        self.picture = Picture("test")
        if work is not None:
            self.picture.put([rows.row(work, now=NOW)])
        self.feed = RequestFeed(on_change=lambda: None, on_problem=lambda _text: None, picture=self.picture)

    def read(self, *requests: LoggedRequest, only: str = "", based_on: int = 0) -> None:
        """Read the lines of some requests and nothing that was logged before; ten minutes later the logs go on."""
        base = f'"resourceversion":{based_on}'
        streams = LogStreams(options=Options())
        moments = [BASE - 10, *(moment for request in requests for moment in (request.at + 600,))]
        alive = [
            (pod, moment, klog(moment, "file.go:1", "still here")) for pod in (SERVER, AGENT) for moment in moments
        ]
        for pod, _, line in sorted([*lines_of(*requests), *alive], key=lambda line: line[1]):
            if only in line or "still here" in line:
                text = line.replace('"resourceversion":0', base)
                streams.feed(f"{pod}.log", f"{text}\n".encode(), now=0.0, moment=BASE)
        streams.settle(now=1.0, timeout=0.0)
        self.feed.keep(streams.changed(), streams.environment)

    @property
    def rows(self) -> list[tuple[str, int, str, str]]:
        listed = self.feed.listed()
        return [(item["action"], item["version"], item["verdict"], item["code"]) for item in listed]


def work(observed: int, *, ok: bool = True) -> dict[str, Any]:
    reported = status(observed, [condition("Applied", ok=ok)])
    return bundle(1, id=UPDATE.resource, consumer_name="mgmt-1", version=2, status=reported)


def test_delivery_of_a_kept_request_is_no_other_request() -> None:
    followed = Followed(work(2))
    followed.read(UPDATE)
    assert followed.rows == [("update", 2, "complete", "")]
    followed.read(AGAIN)
    assert followed.rows == [("update", 2, "complete", "")]


def test_request_that_a_later_delivery_completes_is_complete() -> None:
    followed = Followed()
    followed.read(replace(UPDATE, until=2))
    assert [row[:3] for row in followed.rows] == [("update", 2, "incomplete")]
    followed.read(replace(AGAIN, until=9))
    assert followed.rows == [("update", 2, "complete", "")]


@pytest.mark.parametrize("until", [2, 3], ids=["not-received", "received"])
@pytest.mark.parametrize(
    ("stored", "verdict"),
    [
        pytest.param(work(2), "complete", id="applied"),
        pytest.param(work(1), "unknown", id="status-of-an-older-version"),
        pytest.param(work(2, ok=False), "unknown", id="not-applied"),
        pytest.param(None, "unknown", id="row-not-read"),
    ],
)
def test_delivery_without_a_request_is_what_the_status_says(
    stored: dict[str, Any] | None, verdict: str, until: int
) -> None:
    followed = Followed(stored)
    followed.read(replace(AGAIN, until=until))
    assert followed.rows == [("update", 2, verdict, "MT-214")]
    (row,) = followed.feed.listed()
    assert not {"missing", "pending", "failed"} & set(row["stages"])
    one = followed.feed.one(row["name"])
    assert one is not None
    assert one["verdict"] == verdict


def test_status_that_comes_again_is_no_request() -> None:
    followed = Followed(work(2))
    followed.read(replace(UPDATE, without=frozenset({1, 2, 3})), only="status")
    assert followed.rows == []


@pytest.mark.parametrize("is_paused", [True, False])
def test_request_for_a_paused_consumer_waits(*, is_paused: bool) -> None:
    followed = Followed(work(1))
    followed.read(replace(UPDATE, until=1))
    pause = ConsumerPause(consumer="mgmt-1", by="ada", since="2026-01-15T08:00:00Z")
    followed.picture.put_consumers({}, {}, {"mgmt-1": pause} if is_paused else {})
    assert [row[2:] for row in followed.rows] == [("pending", "MT-213") if is_paused else ("incomplete", "MT-209")]


def test_pause_does_not_explain_what_was_not_stored() -> None:
    followed = Followed(work(1))
    followed.read(replace(UPDATE, until=1), based_on=2)
    followed.picture.put_consumers({}, {}, {"mgmt-1": ConsumerPause(consumer="mgmt-1", by="ada", since="")})
    assert followed.rows == [("update", 3, "incomplete", "MT-209")]
