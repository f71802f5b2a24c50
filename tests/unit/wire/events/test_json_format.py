"""The data of events that were stored or logged whole."""

from typing import Any

import pytest

from maestropy.trace.logs.read import cloudevents
from maestropy.wire.events import event, json_format

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
