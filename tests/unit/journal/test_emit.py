import asyncio
import errno
import io
import json
import os
import subprocess
import sys
import threading

import pytest

from maestropy.journal import Journal, spool
from maestropy.journal.fields import LogKey
from maestropy.journal.phrases import JournalPhrase

MORNING = 1768467600.0


class RecordingSink(io.BytesIO):
    """A sink that remembers each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        self.writes.append(data)
        return len(data)

    @property
    def bodies(self) -> list[str]:
        return [line.partition("] ")[2] for line in b"".join(self.writes).decode().splitlines()]


class BlockedPipe:
    """A pipe that accepts only as many bytes as it has room for."""

    def __init__(self, *, room: int = 0) -> None:
        self.room = room
        self.taken = b""

    def write(self, data: bytes, /) -> int | None:
        if not self.room:
            return None
        part, self.taken = data[: self.room], self.taken + data[: self.room]
        self.room -= len(part)
        return len(part)


class BrokenSink:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def write(self, data: bytes, /) -> int:
        raise self.error


def new_journal(sink: spool.LogSink, verbosity: int = 0) -> Journal:
    return Journal(sink, clock=lambda: MORNING, verbosity=verbosity)


def test_caller_is_the_line_that_logs() -> None:
    sink = RecordingSink()
    new_journal(sink).info("m")
    line = sys._getframe().f_lineno - 1
    assert sink.writes == [f'I0115 09:00:00.000000 {os.getpid():>7} test_emit.py:{line}] "m"\n'.encode()]


def test_two_calls_on_two_lines_have_two_callers() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)
    for _ in range(2):
        journal.info("a")
        journal.warning("b")
    callers = [line.split()[3] for line in b"".join(sink.writes).decode().splitlines()]
    assert callers[:2] == callers[2:]
    assert len(set(callers)) == 2


def test_record_above_the_verbosity_is_not_formatted() -> None:
    class Unformattable:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    sink = RecordingSink()
    journal = new_journal(sink, verbosity=2)
    journal.info("m", {"x": Unformattable()}, v=3)
    assert not sink.writes
    assert journal.is_enabled(2)
    assert not journal.is_enabled(3)


@pytest.mark.parametrize(
    ("bound", "fields", "body"),
    [
        pytest.param([{"op-id": "1"}], {"a": "2"}, '"m" op-id="1" a="2"', id="bound-fields-first"),
        pytest.param([{"a": "1", "b": "2"}], {"a": "3"}, '"m" b="2" a="3"', id="last-one-wins"),
        pytest.param([{"a": "1", "b": "2"}, {"a": "3"}], {}, '"m" b="2" a="3"', id="bound-twice"),
        pytest.param([{"op-id": "1"}, {"logger": "x"}], {}, '"m" logger="x" op-id="1"', id="logger-leads"),
        pytest.param([{"token": "hunter2"}], {}, '"m" token="[redacted]"', id="bound-field-is-redacted"),
    ],
)
def test_bound_fields_are_merged(bound: list[dict[str, object]], fields: dict[str, object], body: str) -> None:
    sink = RecordingSink()
    journal = new_journal(sink)
    for bound_fields in bound:
        journal = journal.bind(bound_fields)
    journal.info("m", fields)
    assert sink.bodies == [body]


def test_bind_does_not_change_the_parent() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)
    journal.bind({"op-id": "1"}, resourceID="2").info("m")
    journal.info("m")
    assert sink.bodies == ['"m" op-id="1" resourceID="2"', '"m"']


def test_error_is_logged_with_its_causes_and_without_secrets() -> None:
    sink = RecordingSink()
    try:
        try:
            raise OSError("postgres://m:hunter2@db")
        except OSError as cause:
            raise ValueError("cannot connect") from cause
    except ValueError as err:
        new_journal(sink).error("m", {"a": 1}, err=err)
    assert sink.bodies == ['"m" err="cannot connect: postgres://m:[redacted]@db" a=1']


def test_message_is_redacted() -> None:
    sink = RecordingSink()
    new_journal(sink).info("connect to postgres://m:hunter2@db")
    assert sink.bodies == ['"connect to postgres://m:[redacted]@db"']


def test_json_format_writes_one_object_per_line() -> None:
    sink = RecordingSink()
    journal = Journal(sink, clock=lambda: MORNING, verbosity=4, format="json")
    journal.bind({"op-id": "1"}).info("m", {"a": {"b": 1}}, v=4)
    fields = json.loads(sink.writes[0])
    caller = fields.pop("caller")
    assert caller.startswith("test_emit.py:")
    assert fields == {
        "ts": "2026-01-15T09:00:00.000000Z",
        "level": "info",
        "v": 4,
        "msg": "m",
        "op-id": "1",
        "a": {"b": 1},
    }


def test_value_that_cannot_be_formatted_is_reported() -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no")

    sink = RecordingSink()
    new_journal(sink).info("m", {"x": Bad()})
    assert sink.bodies == [f'"{JournalPhrase.UNPRINTABLE}" {LogKey.MESSAGE}="m" {LogKey.REASON}="RuntimeError"']


async def _written(sink: RecordingSink, writes: int) -> None:
    async with asyncio.timeout(5):
        while len(sink.writes) < writes:
            await asyncio.sleep(0.001)


def test_lines_of_a_few_milliseconds_are_written_together() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)

    async def scenario() -> None:
        journal.info("a")
        journal.info("b")
        await asyncio.sleep(0)
        assert not sink.writes
        await _written(sink, 1)
        assert len(sink.writes) == 1
        journal.info("c")
        journal.flush()
        assert len(sink.writes) == 2
        journal.info("d")

    asyncio.run(scenario())
    journal.info("e")
    assert sink.bodies == ['"a"', '"b"', '"c"', '"d"', '"e"']


def test_loop_that_ended_before_its_flush_does_not_block_the_next_one() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)

    async def write() -> None:
        journal.info("a")

    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    task = loop.create_task(write())
    loop.run_forever()
    assert task.done()
    loop.close()

    async def scenario() -> None:
        journal.info("b")
        await _written(sink, 1)
        assert sink.bodies == ['"a"', '"b"']

    asyncio.run(scenario())


def test_buffer_is_flushed_when_it_is_full() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)

    async def scenario() -> None:
        for _ in range(300):
            journal.info("m", {"x": "y" * 10_000})

    asyncio.run(scenario())
    assert len(sink.bodies) == 300
    assert max(map(len, sink.writes)) <= spool.MAX_BYTES


async def test_lines_of_threads_are_not_lost() -> None:
    sink = RecordingSink()
    journal = new_journal(sink)

    def write() -> None:
        for _ in range(500):
            journal.info("thread")

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(500):
        journal.info("loop")
        await asyncio.sleep(0)
    for thread in threads:
        thread.join()
    journal.flush()
    assert sorted(sink.bodies) == ['"loop"'] * 500 + ['"thread"'] * 1500


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(BrokenPipeError(errno.EPIPE, "gone"), id="pipe-closed"),
        pytest.param(ValueError("write to closed file"), id="file-closed"),
        pytest.param(OSError(errno.ENOSPC, "full"), id="disk-full"),
    ],
)
def test_closed_sink_raises_nothing(error: Exception) -> None:
    new_journal(BrokenSink(error)).error("m")


def test_blocked_sink_gets_the_remaining_bytes_later() -> None:
    pipe = BlockedPipe(room=10)
    journal = new_journal(pipe)
    journal.info("a")
    assert len(pipe.taken) == 10
    pipe.room = 10_000
    journal.info("b")
    assert [line.partition(b"] ")[2] for line in pipe.taken.splitlines()] == [b'"a"', b'"b"']


async def test_blocked_sink_is_retried_without_new_lines() -> None:
    pipe = BlockedPipe()
    journal = new_journal(pipe)

    journal.info("a")
    await asyncio.sleep(0)
    assert not pipe.taken
    pipe.room = 10_000
    async with asyncio.timeout(5):
        while not pipe.taken:
            await asyncio.sleep(0.01)


def test_blocked_sink_drops_lines_beyond_the_limit_and_reports_their_number() -> None:
    pipe = BlockedPipe()
    journal = new_journal(pipe)
    for _ in range(300):
        journal.info("m", {"x": "y" * 10_000})
    pipe.room = 100_000_000
    journal.flush()
    lines = pipe.taken.decode().splitlines()
    kept = len(lines) - 1
    assert 90 < kept < 110
    assert lines[-1].endswith(f'"{JournalPhrase.LINES_LOST}" count={300 - kept}')


def test_non_blocking_pipe_gets_every_line() -> None:
    """Standard error may be a pipe that another process made non-blocking."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(reader, "rb", buffering=0) as out, os.fdopen(writer, "wb", buffering=0) as pipe:
        journal = new_journal(pipe)
        for _ in range(50):
            journal.info("m", {"x": "y" * 10_000})
        os.set_blocking(writer, True)

        def flush_and_close() -> None:
            journal.flush()
            pipe.close()

        done = threading.Thread(target=flush_and_close)
        done.start()
        lines = b"".join(iter(lambda: out.read(65536), b"")).splitlines()
        done.join()
    assert len(lines) == 50
    assert {len(line) for line in lines} == {len(lines[0])}


def test_buffered_lines_are_written_at_exit() -> None:
    program = (
        "import asyncio\n"
        "from maestropy.journal import Journal, stderr\n"
        "journal = Journal(stderr(), clock=lambda: 0.0)\n"
        "loop = asyncio.new_event_loop()\n"
        "loop.call_soon(lambda: (loop.stop(), journal.info('last line')))\n"
        "loop.run_forever()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stderr.count(b'"last line"') == 1


def test_a_record_with_a_traced_operation_names_its_trace() -> None:
    sink = RecordingSink()
    traces = {"op1": "0af7651916cd43dd8448eb211c80319c"}
    journal = Journal(sink, clock=lambda: MORNING, trace_id_of=lambda operation: traces.get(operation, ""))
    journal.info("m", {LogKey.OP_ID: "op1", LogKey.RESOURCE_ID: "r"})
    journal.info("m", {LogKey.OP_ID: "op2"})
    journal.info("m")
    journal.flush()
    trace_id = 'trace_id="0af7651916cd43dd8448eb211c80319c"'
    assert sink.bodies == [f'"m" op-id="op1" resourceID="r" {trace_id}', '"m" op-id="op2"', '"m"']
