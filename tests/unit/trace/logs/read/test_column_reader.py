"""The column reader returns the same records as the record reader; complete requests equal the full judgement."""

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maestropy.trace.logs import tracer
from maestropy.trace.logs.log_records import LogRecord
from maestropy.trace.logs.match import attribution
from maestropy.trace.logs.model import Options, Trace
from maestropy.trace.logs.read import column_reader, lines, log_writers, record_reader, scan
from maestropy.trace.logs.read.inputs import log_inputs
from maestropy.trace.logs.read.log_writers import LogWriter
from tests import trace_request_generations as generations
from tests.trace_request_logs import AGENT, BASE, SERVERS, LoggedRequest, write

NOW = BASE + 86400
CREATE = LoggedRequest(work="nginx")
STORIES = (
    CREATE,
    LoggedRequest(work="nginx", action="update", version=2, at=BASE + 300),
    LoggedRequest(work="nginx", action="delete", version=2, at=BASE + 600, op_id="op-nginx-update-2"),
    *(LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(20)),
    *(LoggedRequest(work=f"stopped{last}", at=BASE + 40 + last, until=last) for last in range(1, 9)),
    *(LoggedRequest(work=f"lost{stage}", at=BASE + 60 + stage, without=frozenset({stage})) for stage in range(1, 9)),
)
DATA = Path(__file__).parents[4] / "data"


def read_in_full(path: Path) -> tuple[list[LogRecord], LogWriter]:
    """Read a file record by record, as slowly and as plainly as possible."""
    text = path.read_bytes()
    clock_hints = lines.clock_hints(text[: 256 << 10], modified=path.stat().st_mtime)
    clock = lines.RecordClock(around=clock_hints.around, zone=clock_hints.zone)
    writer = LogWriter(path=path.name, pod=log_writers.pod_of(path.name))
    records = []
    for raw in lines.joined(log_inputs.lines_between(text, number=1, offset=0)):
        first = raw.text.split(b"\n", 1)[0]
        is_record = lines.starts_record(first) and record_reader.is_known(first)
        said = record_reader.read(lines.unwrapped(raw), clock, file=0) if is_record else None
        if said is not None:
            writer.note(said)
            records.append(said.record)
    return records, writer


def read_at_once(path: Path) -> tuple[list[LogRecord], LogWriter]:
    found = scan.scan_all([str(path)], now=NOW)
    return sorted(found.records, key=lambda record: record.line), found.writers[0]


def described(writer: LogWriter) -> tuple[object, ...]:
    return (writer.record_count, writer.stages, writer.kinds, writer.generations, writer.roles, writer.verbosity,
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


def with_odd_rows(path: Path) -> None:
    """Give one record in five another key, a value without quotes, an escape, a byte that is no text, or no end."""
    odd = (
        (b" resourceID=", b' other="1" resourceID='),
        (b" resourceID=", b" attempt=1 resourceID="),
        (b' op-id="', b' op-id="\\"'),
        (b'"eventid', b'"\xff'),
        (b'"}', b'"'),
    )
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(line.replace(*odd[at // 5 % len(odd)]) if at % 5 == 0 else line for at, line in enumerate(text))
    )


def without_tracing(path: Path) -> None:
    without_operations(path)
    path.write_bytes(path.read_bytes().replace(b'"logtracing"', b'"other"'))


FORMS = [as_written, with_windows_ends, stamped, by_a_runtime, with_labels, with_other_letters, without_operations,
         without_tracing, with_odd_rows]  # fmt: skip


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("form", FORMS, ids=lambda each: each.__name__)
def test_column_reader_equals_record_reader(tmp_path: Path, form: Callable[[Path], None], generation: str) -> None:
    for file in write(tmp_path, STORIES, generation).iterdir():
        form(file)
        check(file)


@pytest.mark.parametrize("name", ["trace_request_go_v2.log", "trace_request_go_v4.log", "trace_request_samples_g4.txt",
                                  "trace_request_samples_g2.txt"])  # fmt: skip
def test_column_reader_equals_record_reader_on_real_logs(name: str) -> None:
    check(DATA / name)


def test_regular_records_are_read_as_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One odd record leaves the others of its message to the fast path, and few are read in full."""
    read_one_by_one: list[bytes] = []
    read = record_reader.read

    def counted(raw: lines.RawRecord, clock: lines.RecordClock, *, file: int) -> record_reader.ParsedRecord | None:
        read_one_by_one.append(raw.text)
        return read(raw, clock, file=file)

    stories = [LoggedRequest(work=f"w{number}", at=BASE + number) for number in range(200)]
    file = write(tmp_path, stories, "G4") / f"{SERVERS[0]}.log"
    text = file.read_bytes().split(b"\n")
    place = next(at for at in range(len(text) // 2, len(text)) if b'"Received event"' in text[at])
    text[place] = text[place].replace(b'"resourceversion":', b'"resourceversion":"x",')
    file.write_bytes(b"\n".join(text))
    monkeypatch.setattr(record_reader, "read", counted)
    found = scan.scan_all([str(file)], now=NOW)
    assert len(found.records) > 1000
    assert text[place] in read_one_by_one
    assert len([each for each in read_one_by_one if b'"Received event"' in each]) <= 16
    assert len(read_one_by_one) < len(found.records) / 10


@pytest.mark.parametrize("generation", ["G2", "G4"])
@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_records_across_block_borders_are_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generation: str, size: int
) -> None:
    monkeypatch.setattr(log_inputs, "_CHUNK", size)
    for file in write(tmp_path, STORIES[:12], generation).iterdir():
        check(file)
        compressed = file.with_suffix(".log.gz")
        compressed.write_bytes(gzip.compress(file.read_bytes()))
        assert [record[:4] for record in read_at_once(compressed)[0]] == [
            record[:4] for record in read_at_once(file)[0]
        ]


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


OTHER_ID = b"375d73bf-ed32-5170-9550-922188651177"
INJECTIONS = (
    b' manifestWorkName=\\"%b\\" y' % OTHER_ID,
    b" manifestWorkName=%b y" % OTHER_ID,
    b"x resourceID=",
    b'x\\" resourceID=\\"%b\\" z=\\"' % OTHER_ID,
    b'x\\" eventType=\\"io.open-cluster-management.works.v1alpha1.manifestbundles.spec.delete_request\\" y=\\"',
    b'x\\" extensions={\\"resourceid\\":\\"%b\\"} ' % OTHER_ID,
    b" extensions={",
    b" context=<\\n\\tresourceid: %b\\n >" % OTHER_ID,
    b"x\\\\",
)
"""Texts as Go quotes them, which look like fields of the record they are in."""


def with_injected_value(line: bytes, at: int) -> list[bytes]:
    """Put a text that looks like fields into one of the values, or into a value before or behind all others."""
    text = INJECTIONS[at % len(INJECTIONS)]
    places = [place for place in range(len(line)) if line.startswith(b'="', place)]
    if not places or at % 4 == 0:
        return [line + b' err="%b"' % text]
    place = places[at % len(places)] + 2
    return [line[:place] + text + line[place:]]


def with_injected_block(line: bytes, at: int) -> list[bytes]:
    text = INJECTIONS[at % len(INJECTIONS)].replace(b"\\", b"")
    return [line + b" err=<", b"\t" + text, b'\tresourceID="%b"' % OTHER_ID, b' > key="k"']


def with_failed_controller(line: bytes, at: int) -> list[bytes]:
    """Put an error of one of the agent's controllers behind a line."""
    named = (
        b"",
        b' logger="ManifestWorkController.UnhandledError"',
        b' logger="AvailableStatusController"',
        b' controller="AppliedManifestWorkController"',
        b' controllerName="AppliedManifestWorkFinalizer"',
    )
    head = b'E0115 09:00:01.318456       1 base_controller.go:159] "controller failed to sync" err="boom"'
    return [line, head + named[at % len(named)] + b' key="%b"' % CREATE.resource.encode()]


DAMAGES = st.lists(
    st.tuples(
        st.integers(1, 1000),
        st.integers(0, 1000),
        st.sampled_from(
            [
                cut,
                without_head,
                twice,
                followed,
                in_two,
                behind_another,
                with_injected_value,
                with_injected_block,
                with_failed_controller,
            ]
        ),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=DAMAGES, pod=st.sampled_from([SERVERS[0], AGENT]), generation=st.sampled_from(["G2", "G4"]))
def test_damaged_records_are_read_equally(
    tmp_path: Path, damages: Sequence[tuple[int, int, Callable[[bytes, int], list[bytes]]]], pod: str, generation: str
) -> None:
    folder = tmp_path / generation
    if not folder.exists():
        write(folder, [CREATE, LoggedRequest(work="other", at=BASE + 1), STORIES[2]], generation)
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


def test_deep_metadata_is_left_to_the_full_reader() -> None:
    metadata = json.dumps('{"name":"a","x":' + "[" * 50_000 + "]" * 50_000 + "}")
    fields = b'"resourceid":"r","resourceversion":"1","sequenceid":"1","clustername":"c","logtracing":"{}"'
    rest = b'eventType="t" extensions={%b,"metadata":%b}' % (fields, metadata.encode())
    assert column_reader._read_events([rest]) is None


@pytest.mark.parametrize("generation", generations.GENERATIONS)
@pytest.mark.parametrize("clock", [0.0, 3.5], ids=["right", "ahead"])
def test_complete_requests_equal_full_judgement(tmp_path: Path, generation: str, clock: float) -> None:
    logged_requests = [replace(each, agent_clock=clock) for each in STORIES]
    read = scan.scan_all([str(write(tmp_path, logged_requests, generation))], now=NOW)
    environment = tracer.read_environment(read.records, read.writers, options=Options())
    records_by_resource = attribution.attribute(read.records).by_resource()
    resource_judge = tracer.ResourceJudge(records=read.records, environment=environment, options=Options())
    found = sorted(tracer.traces(read.records, environment, options=Options()), key=in_order)
    full = [
        trace for number in records_by_resource.indices for trace in resource_judge.judged(number, records_by_resource)
    ]
    full.sort(key=in_order)
    assert found == full
    assert [each.stages for each in found] == [each.stages for each in full]
    assert [each.status_updates for each in found] == [each.status_updates for each in full]
    stages = [[(stage.state, stage.first) for stage in each.stages] for each in full]
    brief = sorted(tracer.traces(read.records, environment, options=Options(), evidence="brief"), key=in_order)
    assert [[(stage.state, stage.first) for stage in each.outline] for each in brief] == stages
    assert not any(stage.records for each in brief for stage in each.outline)
    assert [[(stage.state, stage.first) for stage in each.outline] for each in found] == stages
    again = sorted(tracer.traces(read.records, environment, options=Options(), evidence="again"), key=in_order)
    assert [each.details.value for each in again] == [each.details.value for each in full]
