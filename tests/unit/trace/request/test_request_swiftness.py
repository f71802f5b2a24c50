"""Reading many records at once says what reading each in full says; judging plainly what judging in full does."""

import gzip
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import trace_request_generations as generations
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_request_logs import AGENT, BASE, SERVERS, Story, write

from maestropy.trace.request import attach, inputs, lines, reading, scan, sources, survey
from maestropy.trace.request.hits import Hit
from maestropy.trace.request.inputs import Writer
from maestropy.trace.request.model import Options, Trace

NOW = BASE + 86400
CREATE = Story(work="nginx")
STORIES = (
    CREATE,
    Story(work="nginx", action="update", version=2, at=BASE + 300),
    Story(work="nginx", action="delete", version=2, at=BASE + 600, op="op-nginx-update-2"),
    *(Story(work=f"w{number}", at=BASE + number) for number in range(20)),
    *(Story(work=f"stopped{last}", at=BASE + 40 + last, until=last) for last in range(1, 9)),
    *(Story(work=f"lost{stage}", at=BASE + 60 + stage, without=frozenset({stage})) for stage in range(1, 9)),
)
DATA = Path(__file__).parents[3] / "data"


def read_in_full(path: Path) -> tuple[list[Hit], Writer]:
    """Read a file record by record, as slowly and as plainly as possible."""
    text = path.read_bytes()
    bearings = lines.bearings(text[: 256 << 10], modified=path.stat().st_mtime)
    clock = lines.Clock(around=bearings.around, zone=bearings.zone)
    writer = Writer(path=path.name, pod=inputs.pod_of(path.name))
    hits = []
    for raw in lines.joined(sources.lines_between(text, number=1, offset=0)):
        first = raw.text.split(b"\n", 1)[0]
        is_record = lines.starts_record(first) and reading.is_known(first)
        said = reading.read(lines.unwrapped(raw), clock, file=0) if is_record else None
        if said is not None:
            writer.note(said)
            hits.append(said.hit)
    return hits, writer


def read_at_once(path: Path) -> tuple[list[Hit], Writer]:
    found = scan.everything([str(path)], now=NOW)
    return sorted(found.hits, key=lambda hit: hit.line), found.writers[0]


def described(writer: Writer) -> tuple[object, ...]:
    return (writer.hits, writer.stages, writer.seen, writer.generations, writer.roles, writer.verbosity,
            writer.consumers, writer.instances, writer.started)  # fmt: skip


def check(path: Path) -> None:
    slow, fast = read_in_full(path), read_at_once(path)
    assert fast[0] == slow[0]
    assert described(fast[1]) == described(slow[1])


def as_written(_: Path) -> None:
    return


def with_windows_ends(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def stamped(path: Path) -> None:
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(b"2026-01-15T09:00:01.123456789Z " + line if line[:1] in b"IWEF2" else line for line in text)
    )


def by_a_runtime(path: Path) -> None:
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(b"2026-01-15T09:00:01.123456789Z stdout F " + line if line[:1] in b"IWEF" else line for line in text)
    )


def with_labels(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'{\\"name\\"', b'{\\"labels\\":{\\"name\\":\\"x\\"},\\"name\\"'))


def with_other_letters(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"w1\\", "wörk\\".encode()).replace(b"w2", b"w\xff2"))


def without_operations(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b" op-id=", b" other="))


FORMS = [as_written, with_windows_ends, stamped, by_a_runtime, with_labels, with_other_letters, without_operations]


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("form", FORMS, ids=lambda each: each.__name__)
def test_many_records_at_once_say_the_same(tmp_path: Path, form: Callable[[Path], None], generation: str) -> None:
    for file in write(tmp_path, STORIES, generation).iterdir():
        form(file)
        check(file)


@pytest.mark.parametrize("name", ["trace_request_go_v2.log", "trace_request_go_v4.log", "trace_request_samples_g4.txt",
                                  "trace_request_samples_g2.txt"])  # fmt: skip
def test_records_of_real_servers_say_the_same(name: str) -> None:
    check(DATA / name)


@pytest.mark.parametrize("generation", ["G2", "G4"])
@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_records_across_the_border_of_blocks_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generation: str, size: int
) -> None:
    monkeypatch.setattr(sources, "_CHUNK", size)
    for file in write(tmp_path, STORIES[:12], generation).iterdir():
        check(file)
        compressed = file.with_suffix(".log.gz")
        compressed.write_bytes(gzip.compress(file.read_bytes()))
        assert [hit[:4] for hit in read_at_once(compressed)[0]] == [hit[:4] for hit in read_at_once(file)[0]]


NOISE = (
    b"",
    b"\tgoes on",
    b" >",
    b"\xff\xfe\0rubbish",
    b"I0115 09:00:01.1" + b"x" * 300,
    b'{"log":"torn',
    b"2026-01-15T09",
    b'I0115 99:99:99.000000       1 a.go:1] "Received event"',
    b'I0115 09:00:01.500000       1 reflector.go:561] "Caches populated" type="v1.Secret" reflector="a.go:1"',
    b"[pod/maestro-0/service] I0115 09:00:02.000000       1 a.go:1] x",
    b'I0115 09:00:02.000000       1 a.go:1] "no clients registered on this instance"',
)


def cut(line: bytes, at: int) -> list[bytes]:
    return [line[: at % (len(line) + 1)]]


def without_head(line: bytes, at: int) -> list[bytes]:
    return [line[at % 40 :]]


def twice(line: bytes, _: int) -> list[bytes]:
    return [line, line]


def followed(line: bytes, at: int) -> list[bytes]:
    return [line, NOISE[at % len(NOISE)]]


def in_two(line: bytes, at: int) -> list[bytes]:
    place = min(len(line), 60 + at)  # behind the head: half a head is no record in either way of reading
    return [line[:place], line[place:]]


def behind_another(line: bytes, _: int) -> list[bytes]:
    return [b"I0115 09:00:01.000000       1 a.go:1] " + line]


DAMAGES = st.lists(
    st.tuples(
        st.integers(1, 1000),
        st.integers(0, 1000),
        st.sampled_from([cut, without_head, twice, followed, in_two, behind_another]),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=DAMAGES, pod=st.sampled_from([SERVERS[0], AGENT]), generation=st.sampled_from(["G2", "G4"]))
def test_damaged_records_say_the_same(
    tmp_path: Path, damages: Sequence[tuple[int, int, Callable[[bytes, int], list[bytes]]]], pod: str, generation: str
) -> None:
    folder = tmp_path / generation
    if not folder.exists():
        write(folder, [CREATE, Story(work="other", at=BASE + 1), STORIES[2]], generation)
    text = (folder / f"{pod}.log").read_bytes().split(b"\n")
    text[3:3] = text[9:9] = [NOISE[-3]]
    for line, at, damage in damages:
        # The first line says what kind of file it is.
        place = 1 + line % (len(text) - 1)
        text[place : place + 1] = damage(text[place], at)
    file = tmp_path / "damaged.log"
    file.write_bytes(b"\n".join(text))
    check(file)


def in_order(trace: Trace) -> tuple[float, str]:
    return trace.start, trace.key.resource


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("clock", [0.0, 3.5], ids=["right", "ahead"])
def test_a_plain_verdict_is_the_full_one(tmp_path: Path, generation: str, clock: float) -> None:
    stories = [replace(each, agent_clock=clock) for each in STORIES]
    read = scan.everything([str(write(tmp_path, stories, generation))], now=NOW)
    known = survey.surroundings(read.hits, read.writers, options=Options())
    grouping = attach.owners(read.hits).grouped()
    court = survey.Court(hits=read.hits, known=known, options=Options())
    found = sorted(survey.traces(read.hits, known, options=Options()), key=in_order)
    full = [trace for number in grouping.places for trace in court.judged(number, grouping)]
    full.sort(key=in_order)
    assert found == full
    assert [each.stages for each in found] == [each.stages for each in full]
    assert [each.status_updates for each in found] == [each.status_updates for each in full]
    stages = [[(stage.state, stage.first) for stage in each.stages] for each in full]
    brief = sorted(survey.traces(read.hits, known, options=Options(), is_brief=True), key=in_order)
    assert [[(stage.state, stage.first) for stage in each.stages] for each in brief] == stages
    assert not any(stage.hits for each in brief for stage in each.stages)
    assert [[(stage.state, stage.first) for stage in each.without_records().stages] for each in found] == stages
