# ruff: noqa: E501 - log lines are as long as they are
"""Followed logs: verdicts when they are final, files that grow, rotate and are truncated."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.trace.logs.file_tails import FileTails, existing, follow
from maestropy.trace.logs.log_streams import LogStreams
from maestropy.trace.logs.model import Options, RequestVerdict, Trace
from maestropy.trace.report import verdict_changes
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, klog, lines_g2, lines_g4

OPTIONS = Options(stage_timeout=30.0)


def chunks(logged: LoggedRequest) -> dict[str, bytes]:
    """Return what each pod writes about a request."""
    found = dict.fromkeys((*SERVERS, AGENT), b"")
    for pod, _, line in lines_g4(logged):
        found[pod] += f"{line}\n".encode()
    return found


class Watching:
    """Streams with a clock that is turned by hand."""

    def __init__(self) -> None:
        self.streams = LogStreams(options=OPTIONS)
        self.news = verdict_changes.VerdictChanges(timeout=OPTIONS.stage_timeout)
        self.now = 100.0

    def feed(self, parts: dict[str, bytes]) -> None:
        for pod, data in parts.items():
            if data:
                self.streams.feed(f"{pod}.log", data, now=self.now, moment=BASE)

    def told(self, *, after: float = 1.0) -> list[Trace]:
        self.now += after
        self.streams.settle(now=self.now, timeout=0.25)
        return self.news.take(self.streams.changed(), end=self.streams.environment.end)


def test_complete_request_is_reported_once() -> None:
    watching = Watching()
    parts = chunks(LoggedRequest(work="nginx"))
    watching.feed({pod: data[: len(data) // 2] for pod, data in parts.items()})
    assert watching.told() == []
    assert watching.news.under_way == 1
    watching.feed({pod: data[len(data) // 2 :] for pod, data in parts.items()})
    told = watching.told()
    assert [(each.key.work_name, each.verdict) for each in told] == [("nginx", RequestVerdict.COMPLETE)]
    assert "✓ complete    nginx" in verdict_changes.line(told[0])
    assert "+++++++++   289 ms" in verdict_changes.line(told[0])
    assert watching.told() == []
    assert watching.news.summary() == "1 request: 1 complete"


def test_stopped_request_is_reported_after_the_timeout() -> None:
    watching = Watching()
    watching.feed(chunks(LoggedRequest(work="stuck", until=3)))
    assert watching.told(after=5) == []
    assert watching.told(after=10) == []
    assert watching.news.under_way == 1
    told = watching.told(after=31)
    assert [(each.verdict, each.failed_stage) for each in told] == [(RequestVerdict.INCOMPLETE, 4)]
    assert watching.news.has_problems


def test_recovered_request_is_reported_again() -> None:
    watching = Watching()
    whole = chunks(LoggedRequest(work="slow"))
    first = chunks(LoggedRequest(work="slow", until=3))
    watching.feed(first)
    assert [each.verdict for each in watching.told(after=70)] == [RequestVerdict.INCOMPLETE]
    watching.feed({pod: data.removeprefix(first[pod]) for pod, data in whole.items()})
    assert [each.verdict for each in watching.told()] == [RequestVerdict.COMPLETE]
    assert not watching.news.has_problems


def test_complete_request_stays_complete_when_another_follows() -> None:
    watching = Watching()
    watching.feed(chunks(LoggedRequest(work="w")))
    watching.told()
    watching.feed(chunks(LoggedRequest(work="w", action="update", version=2, at=BASE + 3)))
    assert [(each.key.action, each.verdict) for each in watching.told()] == [("update", RequestVerdict.COMPLETE)]


def test_multi_line_records_arrive_in_pieces() -> None:
    watching = Watching()
    written = dict.fromkeys((*SERVERS, AGENT), b"")
    for pod, _, line in lines_g2(LoggedRequest(work="old")):
        written[pod] += f"{line}\n".encode()
    step = 37
    for at in range(0, max(map(len, written.values())), step):
        watching.feed({pod: data[at : at + step] for pod, data in written.items()})
    told = watching.told()
    assert [(each.key.work_name, each.verdict) for each in told] == [("old", RequestVerdict.COMPLETE)]


_PIECES = st.one_of(
    st.binary(max_size=120),
    st.sampled_from(
        [part for data in chunks(LoggedRequest(work="nginx")).values() for part in data.splitlines(keepends=True)]
    ),
    st.sampled_from([b"\n", b"\r\n", b"=<\n", b"I0115 09:00:01.1", b'{"ts":', b"\tContext Attributes,\n"]),
)


@pytest.mark.long
@given(st.lists(st.tuples(st.sampled_from(["maestro-a.log", "maestro-agent-b.log"]), _PIECES), max_size=40))
def test_any_bytes_are_tolerated(pieces: list[tuple[str, bytes]]) -> None:
    watching = Watching()
    for name, data in pieces:
        watching.streams.feed(name, data, now=watching.now, moment=BASE)
        watching.told(after=0.1)
    watching.told(after=100)
    watching.streams.drop_settled(keep=1)
    assert watching.news.summary()


def test_settled_requests_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maestropy.trace.logs.log_streams._FULL", 500)
    watching = Watching()
    for number in range(100):
        watching.feed(chunks(LoggedRequest(work=f"w-{number}", at=BASE + number * 10)))
        watching.told(after=10)
        watching.streams.drop_settled(keep=60)
    assert watching.news.counts[RequestVerdict.COMPLETE] == 100
    assert len(watching.streams._records) < 1000


def test_files_are_followed_over_rotation_and_truncation(tmp_path: Path) -> None:
    read: list[tuple[str, bytes]] = []
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    tails = FileTails([tmp_path])

    def seen() -> list[bytes]:
        read.clear()
        tails.read(lambda name, data: read.append((name, data)))
        return [data for _, data in read]

    assert seen() == [b"one\n"]
    assert seen() == []
    with log.open("ab") as stream:
        stream.write(b"two\n")
        stream.flush()
        assert seen() == [b"two\n"]
        stream.write(b"last\n")
        stream.flush()
        log.rename(tmp_path / "server.log.1")
        log.write_bytes(b"new\n")
    # The end of the old file comes before the beginning of the new one.
    assert seen() == [b"last\n", b"new\n"]
    log.write_bytes(b"x\n")
    os.truncate(log, 2)
    assert seen() == [b"x\n"]
    (tmp_path / "agent.log").write_bytes(b"hello\n")
    assert (seen(), read[0][0]) == ([b"hello\n"], "agent.log")
    log.unlink()
    assert seen() == []
    tails.close()


def test_only_the_end_of_a_long_file_is_read_at_start(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(b"line %04d\n" % number for number in range(1000)))
    read: list[bytes] = []
    tails = FileTails([log], most_history=25)
    tails.read(lambda _, data: read.append(data))
    tails.close()
    assert read == [b"line 0998\nline 0999\n"]


async def test_follow_reads_appended_lines(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"")

    arrived = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        following = group.create_task(follow(existing([str(tmp_path)]), lambda _name, _data: arrived.set(), pause=0.01))
        log.write_text(klog(BASE, "a.go:1", "hello") + "\n")
        await arrived.wait()
        following.cancel()


def test_two_requests_of_one_resource_are_separate() -> None:
    watching = Watching()
    logged = LoggedRequest(work="w", op_id="op-1")
    watching.feed(chunks(logged))
    watching.feed(chunks(replace(logged, action="update", version=2, at=BASE + 5, op_id="op-2")))
    assert [each.key.action for each in watching.told()] == ["create", "update"]


def test_failed_requests_are_reported_at_the_end() -> None:
    watching = Watching()
    logged = LoggedRequest(work="bad", until=3)
    watching.feed(chunks(logged))
    line = klog(BASE + 0.3, "base_controller.go:159", f'"controller failed to sync" err="is forbidden" key="{logged.resource}"', "E")  # fmt: skip
    watching.feed({AGENT: f"{line}\n".encode()})
    assert watching.told() == []
    assert not watching.news.has_problems
    assert [remaining_failure.verdict for remaining_failure in watching.news.remaining_failures()] == [
        RequestVerdict.FAILED
    ]
    assert watching.news.has_problems
    assert watching.news.summary() == "1 request: 1 failed"
