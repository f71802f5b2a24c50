"""The data of events that were stored or logged whole, and the attributes of stored ones."""

from typing import Any

import msgspec
import pytest

from maestropy.trace.logs.read import cloudevents
from maestropy.wire import errors
from maestropy.wire.events import attribute_limits, event, json_format, stored_event

STATUS = "eyJjb25kaXRpb25zIjpbeyJ0eXBlIjoiQXBwbGllZCIsInN0YXR1cyI6IlRydWUifV19"


@pytest.mark.parametrize(
    ("document", "data"),
    [
        pytest.param({"data": {"a": 1}}, {"a": 1}, id="object"),
        pytest.param({"data": {"a": 1}, "data_base64": STATUS}, {"a": 1}, id="both"),
        pytest.param({"data_base64": STATUS}, {"conditions": [{"type": "Applied", "status": "True"}]}, id="base64"),
        pytest.param({"data_base64": "?"}, None, id="no-base64"),
        pytest.param({"data_base64": "eA=="}, None, id="no-json"),
        pytest.param({"data_base64": 7}, None, id="no-text"),
        pytest.param({}, None, id="absent"),
    ],
)
def test_data_of_a_parsed_event(document: dict[str, Any], data: object) -> None:
    assert json_format.parsed_data(document) == data


def test_status_in_the_log_of_a_go_server_behind_pubsub_is_read() -> None:
    logged = {"id": "i", "source": "agent", "type": event.STATUS_UPDATE, "resourceid": "w", "resourceversion": "1"}
    in_base64 = cloudevents.of_whole({**logged, "data_base64": STATUS})
    as_object = {"conditions": [{"type": "Applied", "status": "True"}]}
    assert in_base64 == cloudevents.of_whole({**logged, "data": as_object})
    assert in_base64.content


ENVELOPE: dict[str, Any] = {
    "specversion": "1.0",
    "id": "e1",
    "source": "s",
    "type": event.SPEC_CREATE,
    "datacontenttype": "application/json",
    "time": "2026-11-17T10:11:12.123456789Z",
    "clustername": "c1",
    "resourceid": "w1",
    "resourceversion": 7,
}


@pytest.mark.parametrize(
    ("changes", "is_plain"),
    [
        pytest.param({}, True, id="usual"),
        pytest.param({"time": "", "datacontenttype": "", "subject": "x", "dataschema": "y"}, True, id="context"),
        pytest.param({"orphan": True, "other": -3, "Upper": "u"}, True, id="extensions"),
        pytest.param({"time": "2026-11-17T10:11:12+02:00"}, True, id="zone"),
        pytest.param({"subject": None}, False, id="null"),
        pytest.param({"x": 7.0}, False, id="whole-float"),
        pytest.param({"data_base64": "eA=="}, False, id="data"),
        pytest.param({f"x{number}": "v" for number in range(100)}, False, id="many"),
        pytest.param({"n" * 65: "v"}, False, id="long-name"),
    ],
)
def test_plain_envelope_is_parsed_like_any_other(changes: dict[str, Any], *, is_plain: bool) -> None:
    document = msgspec.json.encode(ENVELOPE | changes)
    members = attribute_limits.bounded(json_format.split(document, label="it"))
    expected = json_format.from_members(members)
    assert stored_event.from_envelope(document) == expected
    assert (json_format.plain_attributes(document) is not None) is is_plain


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"id": 7}, "attribute id must be a string", id="context-number"),
        pytest.param({"time": "yesterday"}, "is not an RFC 3339 timestamp", id="time"),
        pytest.param({"time": "2026-02-30T10:11:12Z"}, "is not a date that exists", id="date"),
        pytest.param({"x": 1.5}, "must be a whole number", id="fraction"),
        pytest.param({"x": 2**31}, "is beyond the 32 bits", id="large"),
        pytest.param({"x": None}, "must be a string, a number or a boolean", id="null"),
        pytest.param({"x-y": "v"}, "use letters and digits", id="name"),
        pytest.param({"Data": "v"}, "has an attribute of that name", id="reserved"),
    ],
)
def test_invalid_envelope_is_rejected_with_the_reason(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(errors.MalformedMessage, match=problem):
        stored_event.from_envelope(msgspec.json.encode(ENVELOPE | changes))
