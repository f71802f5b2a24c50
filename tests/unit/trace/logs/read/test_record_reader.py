"""Every sample line of every generation is recognised, with its stage and its resource."""

import csv
import json
import re
from pathlib import Path

import pytest

from maestropy.trace.logs.log_records import RecordKind
from maestropy.trace.logs.read import lines, record_reader

DATA = Path(__file__).parents[4] / "data"
RESOURCE = "83dcf85d-3b0a-5f98-a940-fa44f1d2d465"
AROUND = 1768500000.0


def samples(name: str) -> list[tuple[str, bytes]]:
    """Return (stage, record) of a file of samples; rows of a CSV without their columns."""
    found: list[tuple[str, bytes]] = []
    stage = ""
    raws: list[lines.RawRecord] = []

    def flush() -> None:
        found.extend((stage, record.text) for record in lines.joined(raws))
        raws.clear()

    for line in (DATA / name).read_text().splitlines():
        if line.startswith("# stage"):
            flush()
            stage = line.removeprefix("# stage ")
        elif line.startswith('"pod_name"'):
            flush()
        else:
            text = next(csv.reader([line]))[-1] if line.startswith('"') else line
            raws.append(lines.RawRecord(1, 0, text.encode()))
    flush()
    return found


def parse(record: bytes) -> record_reader.ParsedRecord | None:
    return record_reader.read(lines.RawRecord(1, 0, record), lines.RecordClock(around=AROUND), file=0)


IGNORED = (b'"Requeue manifestwork"',)


@pytest.mark.parametrize("name", ["trace_request_samples_g4.txt", "trace_request_samples_g2.txt"])
def test_every_sample_of_a_stage_is_recognised(name: str) -> None:
    wrong = []
    for stage, line in samples(name):
        if stage == "errors" or any(text in line for text in IGNORED) or not lines.starts_record(line):
            continue
        parsed = parse(line)
        if parsed is None:
            wrong.append((stage, "not recognised", line[:150]))
            continue
        record = parsed.record
        allowed = {int(stage), 3} if record.kind is RecordKind.STORED else {int(stage)}
        if record.stage not in allowed:
            wrong.append((stage, record.kind.name, line[:150]))
        has_no_id = record.kind is RecordKind.NO_CLIENTS or (
            record.kind in (RecordKind.APPLIED, RecordKind.APPLY_FAILED, RecordKind.REMOVED)
        )
        if record.resource not in (RESOURCE, "nginx-work") and not (has_no_id and not record.resource):
            wrong.append((stage, f"resource {record.resource!r}", line[:150]))
    assert not wrong


@pytest.mark.parametrize(
    ("phrase", "kind", "detail"),
    [
        (b'"Failed to publish resource"', RecordKind.PUBLISH_FAILED, "the cloudevents client is not ready"),
        (b'"Failed to handle the event"', RecordKind.PUBLISH_FAILED, "error handing event Resources-Create"),
        (b'"Event is processed by another worker"', RecordKind.OTHER_INSTANCE, ""),
        (b'"recreate the listener for channel', RecordKind.LISTENER_LOST, "events"),
        (b'"the cloudevents client is disconnected"', RecordKind.DISCONNECTED, "EOF"),
        (b'"subscribed to mqtt broker"', RecordKind.SUBSCRIBED, "sources/maestro/consumers/mgmt-1/sourceevents"),
        (b'"failed to handle status event"', RecordKind.STATUS_FAILED, "unmatched consumer name mgmt-2"),
        (b'"failed to send event, unregister', RecordKind.STREAM_BROKEN, "transport is closing"),
        (b'"Re-published undelivered resource"', RecordKind.REPUBLISHED, ""),
    ],
)
def test_errors_and_connections_are_recognised(phrase: bytes, kind: RecordKind, detail: str) -> None:
    line = next(line for _, line in samples("trace_request_samples_g4.txt") if phrase in line)
    parsed = parse(line)
    assert parsed is not None
    assert (parsed.record.kind, detail in parsed.record.detail) == (kind, True)


def test_ids_are_read_from_an_escaped_event() -> None:
    line = next(line for s, line in samples("trace_request_samples_g4.txt") if s == "9" and b'event="{' in line)
    parsed = parse(line)
    assert parsed is not None
    record = parsed.record
    assert (record.resource, record.version, record.sequence, record.op_id[:8], record.name) == (
        RESOURCE, 2, 2011726299982204928, "7b0f4a52", "nginx-work",
    )  # fmt: skip
    assert parsed.verbosity == 4


def test_truncated_record_has_its_ids() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "5")
    found = parse(record[: record.index(b'"statushash"')])
    assert found is not None
    assert (found.record.resource, found.record.version) == (RESOURCE, 1)


@pytest.mark.parametrize(
    ("text", "around", "expected"),
    [
        (b"0115 09:00:01", 1768500000.0, "2026-01-15T09:00:01"),
        (b"1231 23:59:59", 1767312000.0, "2025-12-31T23:59:59"),
        (b"0229 00:00:00", 1768500000.0, "2024-02-29T00:00:00"),
    ],
    ids=["this-year", "new-year-has-come", "leap-day"],
)
def test_year_is_the_last_possible_one(text: bytes, around: float, expected: str) -> None:
    from datetime import UTC, datetime

    found = datetime.fromtimestamp(lines.klog_second(text, around=around), tz=UTC)
    assert found.isoformat()[:19] == expected


def test_time_zone_is_derived_from_sequence_ids() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "5" and b"Sending event" in r)
    shifted = record.replace(b"I0115 09:00:01", b"I0115 11:00:01")
    assert lines.clock_hints(shifted, modified=0.0).zone == 7200.0
    assert lines.clock_hints(record, modified=0.0).zone == 0.0


A, B = "375d73bf-ed32-5170-9550-922188651177", "6b707e8f-1e77-5ffa-8b9d-1b2c5a0f3b11"
FAILED = 'E0115 09:00:01.195000       1 base_controller.go:159] "controller failed to sync" '
NOT_FIELDS = (
    f'x manifestWorkName="{A}" y',
    f"x manifestWorkName={A} y",
    f'x resourceID="{A}"',
    f'x" resourceID="{A}" z="',
    f'x appliedManifestWorkName="{"f" * 64}-{A}"',
    f'] "controller failed to sync" err="boom" key="{A}"',
    "x resourceID=",
    "x manifestWorkName= y",
)


@pytest.mark.parametrize("text", NOT_FIELDS)
def test_text_in_quoted_error_is_no_field(text: str) -> None:
    quoted = json.dumps(text)
    found = parse(f'{FAILED}err={quoted} logger="ManifestWorkController.UnhandledError" key="{B}"'.encode())
    assert found is not None
    assert (found.record.resource, found.record.detail) == (B, text)


@pytest.mark.parametrize("text", NOT_FIELDS)
def test_text_in_block_is_no_field(text: str) -> None:
    record = f'{FAILED}err=<\n\tInvalid value\n\t{text}\n > logger="ManifestWorkController" key="{B}"'
    found = parse(record.encode())
    assert found is not None
    assert (found.record.resource, found.record.detail) == (B, f"Invalid value\n{text}")


def test_field_after_a_long_block_is_read() -> None:
    text = "".join(f"\tline {number}\n" for number in range(500))
    parts = f'{FAILED}err=<\n{text} > key="{B}"'.encode().split(b"\n")
    (raw,) = lines.joined(lines.RawRecord(1, 0, part) for part in parts)
    assert raw == lines.whole(lines.RawRecord(1, 0, parts[0]), parts[1:])
    found = parse(raw.text)
    assert found is not None
    assert found.record.resource == B


def test_text_in_op_id_does_not_change_the_action() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "1")
    op_id = 'x" eventType="io.open-cluster-management.works.v1alpha1.manifestbundles.spec.delete_request" y="'
    injected = re.sub(rb'op-id="[^"]*"', lambda _: b"op-id=" + json.dumps(op_id).encode(), record)
    found, usual = parse(injected), parse(record)
    assert found is not None
    assert usual is not None
    assert found.record == usual.record._replace(op_id=op_id)


@pytest.mark.parametrize(
    "damage",
    [b'"resourceversion":' + b"9" * 5000, b'"sequenceid":"' + b"9" * 5000 + b'"', '"resourceversion":"²"'.encode()],
    ids=["version", "sequence", "no-decimal"],
)
def test_number_that_is_too_long_is_left_out(damage: bytes) -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "1")
    found = parse(record.removesuffix(b"}") + b"," + damage + b"}")
    assert found is not None
    assert (found.record.resource, found.record.sequence) == (RESOURCE, 0)


def test_long_fraction_of_a_second_is_cut() -> None:
    assert lines.rfc3339(b"2026-01-15T09:00:01.5" + b"0" * 5000 + b"Z") == 1768467601.5


@pytest.mark.parametrize("moment", [b"1e300", b"9e999", b"9" * 5000])
def test_time_that_no_calendar_has_is_left_out(moment: bytes) -> None:
    assert lines.json_time(b'{"ts":' + moment + b',"msg":"x"}') == 0.0


FUTURE = (9223372036854775807, 99999999999999999999, 2143860714501046272)


@pytest.mark.parametrize("sequence", FUTURE, ids=["largest", "too-large", "same-day-next-year"])
def test_foreign_sequence_id_does_not_date_the_log(sequence: int) -> None:
    status = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "5" and b"Sending event" in r)
    usual = lines.clock_hints(status, modified=1768500000.0)
    foreign = re.sub(rb'"sequenceid":"\d+"', b'"sequenceid":"%d"' % sequence, status)
    assert foreign != status
    assert lines.clock_hints(b"\n".join([foreign, status, foreign]), modified=1768500000.0) == usual
