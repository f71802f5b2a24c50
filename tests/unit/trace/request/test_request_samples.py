"""Every sample line of every generation is recognised, with its stage and its resource."""

import csv
from pathlib import Path

import pytest

from maestropy.trace.request import lines, reading
from maestropy.trace.request.hits import What

DATA = Path(__file__).parents[3] / "data"
RESOURCE = "83dcf85d-3b0a-5f98-a940-fa44f1d2d465"
AROUND = 1768500000.0


def samples(name: str) -> list[tuple[str, bytes]]:
    """Return (stage, record) of a file of samples; rows of a CSV without their columns."""
    found: list[tuple[str, bytes]] = []
    stage = ""
    raws: list[lines.Raw] = []

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
            raws.append(lines.Raw(1, 0, text.encode()))
    flush()
    return found


def said(record: bytes) -> reading.Said | None:
    return reading.read(lines.Raw(1, 0, record), lines.Clock(around=AROUND), file=0)


IGNORED = (b'"Requeue manifestwork"',)


@pytest.mark.parametrize("name", ["trace_request_samples_g4.txt", "trace_request_samples_g2.txt"])
def test_every_sample_of_a_stage_is_recognised(name: str) -> None:
    wrong = []
    for stage, record in samples(name):
        if stage == "errors" or any(each in record for each in IGNORED) or not lines.starts_record(record):
            continue
        found = said(record)
        if found is None:
            wrong.append((stage, "not recognised", record[:150]))
            continue
        hit = found.hit
        allowed = {int(stage), 3} if hit.what is What.STORED else {int(stage)}
        if hit.stage not in allowed:
            wrong.append((stage, hit.what.name, record[:150]))
        has_no_id = hit.what is What.NO_CLIENTS or (hit.what in (What.APPLIED, What.APPLY_FAILED, What.REMOVED))
        if hit.resource not in (RESOURCE, "nginx-work") and not (has_no_id and not hit.resource):
            wrong.append((stage, f"resource {hit.resource!r}", record[:150]))
    assert not wrong


@pytest.mark.parametrize(
    ("phrase", "what", "detail"),
    [
        (b'"Failed to publish resource"', What.PUBLISH_FAILED, "the cloudevents client is not ready"),
        (b'"Failed to handle the event"', What.PUBLISH_FAILED, "error handing event Resources-Create"),
        (b'"Event is processed by another worker"', What.OTHER_INSTANCE, ""),
        (b'"recreate the listener for channel', What.LISTENER_LOST, "events"),
        (b'"the cloudevents client is disconnected"', What.DISCONNECTED, "EOF"),
        (b'"subscribed to mqtt broker"', What.SUBSCRIBED, "sources/maestro/consumers/mgmt-1/sourceevents"),
        (b'"failed to handle status event"', What.STATUS_FAILED, "unmatched consumer name mgmt-2"),
        (b'"failed to send event, unregister', What.STREAM_BROKEN, "transport is closing"),
        (b'"Re-published undelivered resource"', What.REPUBLISHED, ""),
    ],
)
def test_errors_and_connections(phrase: bytes, what: What, detail: str) -> None:
    record = next(record for stage, record in samples("trace_request_samples_g4.txt") if phrase in record)
    found = said(record)
    assert found is not None
    assert (found.hit.what, detail in found.hit.detail) == (what, True)


def test_ids_of_a_whole_event_are_read_out_of_its_escaped_text() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "9" and b'event="{' in r)
    found = said(record)
    assert found is not None
    hit = found.hit
    assert (hit.resource, hit.version, hit.sequence, hit.op[:8], hit.name) == (
        RESOURCE, 2, 2011726299982204928, "7b0f4a52", "nginx-work",
    )  # fmt: skip
    assert found.verbosity == 4


def test_a_record_that_is_cut_off_still_gives_its_ids() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "5")
    found = said(record[: record.index(b'"statushash"')])
    assert found is not None
    assert (found.hit.resource, found.hit.version) == (RESOURCE, 1)


@pytest.mark.parametrize(
    ("text", "around", "expected"),
    [
        (b"0115 09:00:01", 1768500000.0, "2026-01-15T09:00:01"),
        (b"1231 23:59:59", 1767312000.0, "2025-12-31T23:59:59"),
        (b"0229 00:00:00", 1768500000.0, "2024-02-29T00:00:00"),
    ],
    ids=["this-year", "new-year-has-come", "leap-day"],
)
def test_the_year_is_the_last_that_fits(text: bytes, around: float, expected: str) -> None:
    from datetime import UTC, datetime

    found = datetime.fromtimestamp(lines.klog_second(text, around=around), tz=UTC)
    assert found.isoformat()[:19] == expected


def test_the_zone_is_found_from_sequence_ids() -> None:
    record = next(r for s, r in samples("trace_request_samples_g4.txt") if s == "5" and b"Sending event" in r)
    shifted = record.replace(b"I0115 09:00:01", b"I0115 11:00:01")
    assert lines.bearings(shifted, modified=0.0).zone == 7200.0
    assert lines.bearings(record, modified=0.0).zone == 0.0
