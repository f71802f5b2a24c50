"""CloudEvents are converted to gRPC messages and back; invalid attributes are rejected."""

import pytest

from maestropy.wire import errors
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding

SPEC = event.CloudEvent(id="1", source="s", type=event.SPEC_CREATE, subject="about", data_schema="http://a/b")


def test_data_schema_is_sent_as_string_because_go_rejects_a_uri() -> None:
    assert grpc_binding.to_message(SPEC).attributes["ce-dataschema"].WhichOneof("attr") == "ce_string"


def test_data_schema_is_read_as_string_or_uri() -> None:
    message = grpc_binding.to_message(SPEC)
    message.attributes["ce-dataschema"].ce_uri = "http://a/b"
    assert grpc_binding.from_message(message) == SPEC == grpc_binding.from_message(grpc_binding.to_message(SPEC))


@pytest.mark.parametrize("name", ["ce-subject", "ce-dataschema"])
def test_attribute_that_is_no_string_is_rejected(name: str) -> None:
    message = grpc_binding.to_message(SPEC)
    message.attributes[name].CopyFrom(pb.CloudEventAttributeValue(ce_integer=5))
    with pytest.raises(errors.MalformedMessage, match=name):
        grpc_binding.from_message(message)
