"""Attacks by the attributes of CloudEvents: their number and their size."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from maestropy.sandbox.server_process import ServerProcess
from maestropy.server.decide import admission
from maestropy.store.dsn import Dsn
from maestropy.wire import errors
from maestropy.wire.events import event, grpc_binding, json_format, mqtt_binding, stored_event
from tests.attacks import processes
from tests.stack.secure_server import CONSUMER, add_consumers, channel, refusal, spec

MANY = 170_000


def with_attributes(name: str, **extensions: str) -> event.CloudEvent:
    plain = spec(name)
    return replace(plain, extensions={**plain.extensions, **extensions})


async def test_many_attributes(database: Dsn, tmp_path: Path) -> None:
    """170,000 attributes in each of eight events -> rejected with the limit, unread; /livez answers, short log lines"""
    await add_consumers(database, CONSUMER)
    log = tmp_path / "server.log"
    many = with_attributes("many", **{f"x{number}": "v" for number in range(MANY)})
    requests = [grpc_binding.encode_publish(replace(many, id=f"event-{number}")) for number in range(8)]
    async with ServerProcess(database, log=log) as server, channel(server.ports.sources) as client:
        livez = f"http://127.0.0.1:{server.ports.health}/livez"
        async with asyncio.TaskGroup() as group:
            answers = [group.create_task(refusal(client, request)) for request in requests]
            seconds = await processes.answer_seconds(livez, count=10)
        assert {answer.result()[0] for answer in answers} == {"UNKNOWN"}
        assert {"attributes; put the content into its data" in answer.result()[1] for answer in answers} == {True}
        assert seconds[-1] < 2
        assert (await refusal(client, grpc_binding.encode_publish(spec("good")))) == ("OK", "")
    assert max(map(len, log.read_text().splitlines())) < 20_000


@pytest.mark.parametrize(
    ("changes", "extensions", "problem"),
    [
        ({"type": "t" * 3_000_000}, {}, "attribute type has 3000000 characters"),
        ({"id": "i" * 3_000_000}, {}, "attribute id has 3000000 characters"),
        ({"source": "s" * 3_000_000}, {}, "attribute source has 3000000 characters"),
        ({}, {"x" * 100: "v"}, "has 100 characters, more than 64"),
        ({}, {"extra": "v" * 70_000}, "attribute extra has 70000 characters"),
        ({}, {"metadata": '{"a":"' + "v" * 2**20 + '"}'}, "attribute metadata has"),
    ],
    ids=["type", "id", "source", "name", "value", "metadata"],
)
def test_long_attributes(changes: dict[str, str], extensions: dict[str, str], problem: str) -> None:
    """an attribute with a name or a value of megabytes -> rejected with its name, before anything is logged"""
    long = replace(with_attributes("long", **extensions), **changes)  # type: ignore[arg-type]
    with pytest.raises(errors.MalformedMessage, match=problem):
        grpc_binding.decode_publish(grpc_binding.encode_publish(long))
    with pytest.raises(errors.MalformedMessage, match=problem):
        json_format.decode(json_format.encode(long))


def test_many_attributes_of_other_encodings() -> None:
    """many attributes in structured mode or over MQTT -> rejected as well"""
    many = with_attributes("many", **{f"x{number}": "v" for number in range(100)})
    with pytest.raises(errors.MalformedMessage, match="attributes, more than 64"):
        json_format.decode(json_format.encode(many))
    message = mqtt_binding.encode(many)
    with pytest.raises(errors.MalformedMessage, match="attributes, more than 64"):
        mqtt_binding.decode(message.content_type, properties=message.properties, payload=message.payload)


def test_stored_event_with_many_attributes() -> None:
    """an event with 170,000 attributes that an older version has stored -> its resource is sent without them"""
    many = with_attributes("many", **{f"x{number}": "v" for number in range(MANY)})
    parts = stored_event.to_parts(many)
    started = time.process_time()
    sent = stored_event.from_parts(parts)
    assert time.process_time() - started < 0.5
    assert sent.extensions == spec("many").extensions
    assert (sent.id, sent.source, sent.data) == (many.id, many.source, many.data)


def test_event_with_some_attributes_of_its_own() -> None:
    """a client with forty attributes of its own and metadata of 300 KB -> is served as before"""
    metadata = msgspec.json.encode({"name": "n", "annotations": {"a": "v" * 300_000}}).decode()
    own = with_attributes("own", metadata=metadata, **{f"x{number}": "v" for number in range(40)})
    assert grpc_binding.decode_publish(grpc_binding.encode_publish(own)).extensions == own.extensions
    assert stored_event.from_parts(stored_event.to_parts(own)).extensions == own.extensions


@pytest.mark.parametrize("resource_id", ["a/b", "../../x", "/", ".", ".."])
def test_resource_id_that_is_a_path(resource_id: str) -> None:
    """a resource ID with a slash, which REST cannot delete -> rejected with the reason; stored ones can be deleted"""
    path = with_attributes("path", resourceid=resource_id)
    with pytest.raises(errors.MalformedMessage, match="it has a slash, or is a dot or two"):
        admission.read_spec_request(path, event.EventAction.CREATE_REQUEST)
    assert admission.read_spec_request(path, event.EventAction.DELETE_REQUEST).id == resource_id
