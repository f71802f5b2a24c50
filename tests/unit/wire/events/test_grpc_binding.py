"""CloudEvents are converted to gRPC messages and back; invalid attributes are rejected."""

from dataclasses import replace

import pytest

from maestropy.wire import errors
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding
from maestropy.wire.timestamps import Timestamp

SPEC = event.CloudEvent(id="1", source="s", type=event.SPEC_CREATE, subject="about", data_schema="http://a/b")


def test_data_schema_is_sent_as_string_because_go_rejects_a_uri() -> None:
    assert grpc_binding.to_message(SPEC).attributes["ce-dataschema"].WhichOneof("attr") == "ce_string"


def test_data_schema_is_read_as_string_or_uri() -> None:
    message = grpc_binding.to_message(SPEC)
    message.attributes["ce-dataschema"].ce_uri = "http://a/b"
    assert grpc_binding.from_message(message) == SPEC == grpc_binding.from_message(grpc_binding.to_message(SPEC))


@pytest.mark.parametrize("resync_id", ["r1", "", 1, True])
@pytest.mark.parametrize("cluster", [None, "c1", ""])
def test_answer_to_a_resync_is_the_message_of_the_same_event(resync_id: event.Attribute, cluster: str | None) -> None:
    extensions = {"resyncid": resync_id, "resourceversion": 3, "metadata": "{}", "deletiontimestamp": Timestamp(1, 2)}
    if cluster is not None:
        extensions["clustername"] = cluster
    answer = replace(SPEC, time=Timestamp(3, 4), extensions=extensions, data=b"{}")
    encoded = pb.CloudEvent.FromString(grpc_binding.encode_event(answer))
    assert encoded == grpc_binding.to_message(answer)
    assert grpc_binding.from_message(encoded) == answer
    # Another one of the same answer: what is its own is not kept.
    other = replace(answer, id="2", extensions={"resyncid": resync_id}, data=b"")
    assert pb.CloudEvent.FromString(grpc_binding.encode_event(other)) == grpc_binding.to_message(other)


@pytest.mark.parametrize("name", ["ce-subject", "ce-dataschema"])
def test_attribute_that_is_no_string_is_rejected(name: str) -> None:
    message = grpc_binding.to_message(SPEC)
    message.attributes[name].CopyFrom(pb.CloudEventAttributeValue(ce_integer=5))
    with pytest.raises(errors.MalformedMessage, match=name):
        grpc_binding.from_message(message)
