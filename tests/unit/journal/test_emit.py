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
from maestropy.journal.fields import Key, Own

MORNING = 1768467600.0


class Tape(io.BytesIO):
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


class Stuck:
    """A pipe nobody reads, until somebody does."""

    def __init__(self, *, room: int = 0) -> None:
        self.room = room
        self.taken = b""

    def write(self, data: bytes, /) -> int | None:
        if not self.room:
            return None
        part, self.taken = data[: self.room], self.taken + data[: self.room]
        self.room -= len(part)
        return len(part)


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def write(self, data: bytes, /) -> int:
        raise self.error


def journal(sink: spool.Sink, verbosity: int = 0) -> Journal:
    return Journal(sink, clock=lambda: MORNING, verbosity=verbosity)


def test_the_place_is_the_line_that_speaks() -> None:
    tape = Tape()
    journal(tape).info("m")
    line = sys._getframe().f_lineno - 1
    assert tape.writes == [f'I0115 09:00:00.000000 {os.getpid():>7} test_emit.py:{line}] "m"\n'.encode()]


def test_two_calls_on_two_lines_have_two_places() -> None:
    tape = Tape()
    pen = journal(tape)
    for _ in range(2):
        pen.info("a")
        pen.warning("b")
    places = [line.split()[3] for line in b"".join(tape.writes).decode().splitlines()]
    assert places[:2] == places[2:]
    assert len(set(places)) == 2


def test_what_is_off_is_not_formatted() -> None:
    class Explosive:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    tape = Tape()
    pen = journal(tape, verbosity=2)
    pen.info("m", {"x": Explosive()}, v=3)
    assert not tape.writes
    assert pen.enabled(2)
    assert not pen.enabled(3)


@pytest.mark.parametrize(
    ("bound", "said", "body"),
    [
        pytest.param([{"op-id": "1"}], {"a": "2"}, '"m" op-id="1" a="2"', id="context-first"),
        pytest.param([{"a": "1", "b": "2"}], {"a": "3"}, '"m" b="2" a="3"', id="last-one-wins"),
        pytest.param([{"a": "1", "b": "2"}, {"a": "3"}], {}, '"m" b="2" a="3"', id="binding-again"),
        pytest.param([{"op-id": "1"}, {"logger": "x"}], {}, '"m" logger="x" op-id="1"', id="logger-leads"),
        pytest.param([{"token": "hunter2"}], {}, '"m" token="[redacted]"', id="context-is-redacted"),
    ],
)
def test_context(bound: list[dict[str, object]], said: dict[str, object], body: str) -> None:
    tape = Tape()
    pen = journal(tape)
    for fields in bound:
        pen = pen.bind(fields)
    pen.info("m", said)
    assert tape.bodies == [body]


def test_binding_by_name_leaves_the_parent_alone() -> None:
    tape = Tape()
    pen = journal(tape)
    pen.bind({"op-id": "1"}, resourceID="2").info("m")
    pen.info("m")
    assert tape.bodies == ['"m" op-id="1" resourceID="2"', '"m"']


def test_errors_tell_their_causes_without_secrets() -> None:
    tape = Tape()
    try:
        try:
            raise OSError("postgres://m:hunter2@db")
        except OSError as cause:
            raise ValueError("cannot connect") from cause
    except ValueError as err:
        journal(tape).error("m", {"a": 1}, err=err)
    assert tape.bodies == ['"m" err="cannot connect: postgres://m:[redacted]@db" a=1']


def test_messages_that_are_no_constants_are_redacted_too() -> None:
    tape = Tape()
    journal(tape).info("connect to postgres://m:hunter2@db")
    assert tape.bodies == ['"connect to postgres://m:[redacted]@db"']


def test_json_lines() -> None:
    tape = Tape()
    pen = Journal(tape, clock=lambda: MORNING, verbosity=4, format="json")
    pen.bind({"op-id": "1"}).info("m", {"a": {"b": 1}}, v=4)
    said = json.loads(tape.writes[0])
    caller = said.pop("caller")
    assert caller.startswith("test_emit.py:")
    assert said == {
        "ts": "2026-01-15T09:00:00.000000Z",
        "level": "info",
        "v": 4,
        "msg": "m",
        "op-id": "1",
        "a": {"b": 1},
    }


def test_a_value_that_cannot_be_printed_is_reported() -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no")

    tape = Tape()
    journal(tape).info("m", {"x": Bad()})
    assert tape.bodies == [f'"{Own.UNPRINTABLE}" {Key.MESSAGE}="m" {Key.REASON}="RuntimeError"']


async def _written(tape: Tape, writes: int) -> None:
    async with asyncio.timeout(5):
        while len(tape.writes) < writes:
            await asyncio.sleep(0.001)


def test_lines_of_a_moment_leave_in_one_write() -> None:
    tape = Tape()
    pen = journal(tape)

    async def scenario() -> None:
        pen.info("a")
        pen.info("b")
        await asyncio.sleep(0)
        assert not tape.writes
        await _written(tape, 1)
        assert len(tape.writes) == 1
        pen.info("c")
        pen.flush()
        assert len(tape.writes) == 2
        pen.info("d")

    asyncio.run(scenario())
    pen.info("e")
    assert tape.bodies == ['"a"', '"b"', '"c"', '"d"', '"e"']


def test_a_loop_that_ended_early_does_not_silence_the_next() -> None:
    tape = Tape()
    pen = journal(tape)

    async def speak() -> None:
        pen.info("a")

    loop = asyncio.new_event_loop()
    loop.call_soon(loop.stop)
    task = loop.create_task(speak())
    loop.run_forever()
    assert task.done()
    loop.close()

    async def scenario() -> None:
        pen.info("b")
        await _written(tape, 1)
        assert tape.bodies == ['"a"', '"b"']

    asyncio.run(scenario())


def test_a_long_turn_does_not_collect_without_end() -> None:
    tape = Tape()
    pen = journal(tape)

    async def scenario() -> None:
        for _ in range(300):
            pen.info("m", {"x": "y" * 10_000})

    asyncio.run(scenario())
    assert len(tape.bodies) == 300
    assert max(map(len, tape.writes)) <= spool.MAX_BYTES


def test_threads_lose_nothing() -> None:
    tape = Tape()
    pen = journal(tape)

    async def scenario() -> None:
        def speak() -> None:
            for _ in range(500):
                pen.info("thread")

        threads = [threading.Thread(target=speak) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(500):
            pen.info("loop")
            await asyncio.sleep(0)
        for thread in threads:
            thread.join()

    asyncio.run(scenario())
    pen.flush()
    assert sorted(tape.bodies) == ['"loop"'] * 500 + ['"thread"'] * 1500


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(BrokenPipeError(errno.EPIPE, "gone"), id="pipe-closed"),
        pytest.param(ValueError("write to closed file"), id="file-closed"),
        pytest.param(OSError(errno.ENOSPC, "full"), id="disk-full"),
    ],
)
def test_a_closed_stream_stops_nobody(error: Exception) -> None:
    journal(Broken(error)).error("m")


def test_a_stuck_stream_gets_the_rest_later() -> None:
    pipe = Stuck(room=10)
    pen = journal(pipe)
    pen.info("a")
    assert len(pipe.taken) == 10
    pipe.room = 10_000
    pen.info("b")
    assert [line.partition(b"] ")[2] for line in pipe.taken.splitlines()] == [b'"a"', b'"b"']


def test_a_stuck_stream_is_tried_again_without_new_lines() -> None:
    pipe = Stuck()
    pen = journal(pipe)

    async def scenario() -> None:
        pen.info("a")
        await asyncio.sleep(0)
        assert not pipe.taken
        pipe.room = 10_000
        async with asyncio.timeout(5):
            while not pipe.taken:
                await asyncio.sleep(0.01)

    asyncio.run(scenario())


def test_a_stuck_stream_costs_bounded_memory_and_tells_what_it_lost() -> None:
    pipe = Stuck()
    pen = journal(pipe)
    for _ in range(300):
        pen.info("m", {"x": "y" * 10_000})
    pipe.room = 100_000_000
    pen.flush()
    lines = pipe.taken.decode().splitlines()
    kept = len(lines) - 1
    assert 90 < kept < 110
    assert lines[-1].endswith(f'"{Own.LINES_LOST}" count={300 - kept}')


def test_a_full_pipe_without_blocking() -> None:
    """The real thing: standard error may be a pipe that another process made non-blocking."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with os.fdopen(reader, "rb", buffering=0) as out, os.fdopen(writer, "wb", buffering=0) as pipe:
        pen = journal(pipe)
        for _ in range(50):
            pen.info("m", {"x": "y" * 10_000})
        os.set_blocking(writer, True)
        done = threading.Thread(target=lambda: (pen.flush(), pipe.close()))
        done.start()
        lines = b"".join(iter(lambda: out.read(65536), b"")).splitlines()
        done.join()
    assert len(lines) == 50
    assert {len(line) for line in lines} == {len(lines[0])}


def test_the_last_words_are_written_at_exit() -> None:
    program = (
        "import asyncio\n"
        "from maestropy.journal import Journal, stderr\n"
        "pen = Journal(stderr(), clock=lambda: 0.0)\n"
        "loop = asyncio.new_event_loop()\n"
        "loop.call_soon(lambda: (loop.stop(), pen.info('last words')))\n"
        "loop.run_forever()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stderr.count(b'"last words"') == 1
