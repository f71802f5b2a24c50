"""What stands where in a gRPC message, and which values are refused."""

import pytest

from maestropy.wire import envelope, errors, event
from maestropy.wire._pb import cloudevents_pb2 as pb

SPEC = event.Event(id="1", source="s", type=event.SPEC_CREATE, subject="about", data_schema="http://a/b")


def test_the_schema_is_a_string_because_go_readers_refuse_a_uri() -> None:
    assert envelope.to_message(SPEC).attributes["ce-dataschema"].WhichOneof("attr") == "ce_string"


def test_a_schema_of_either_type_is_read() -> None:
    message = envelope.to_message(SPEC)
    message.attributes["ce-dataschema"].ce_uri = "http://a/b"
    assert envelope.from_message(message) == SPEC == envelope.from_message(envelope.to_message(SPEC))


@pytest.mark.parametrize("name", ["ce-subject", "ce-dataschema"])
def test_words_that_are_none_are_refused(name: str) -> None:
    message = envelope.to_message(SPEC)
    message.attributes[name].CopyFrom(pb.CloudEventAttributeValue(ce_integer=5))
    with pytest.raises(errors.Malformed, match=name):
        envelope.from_message(message)
