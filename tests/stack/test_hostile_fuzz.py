"""Whatever is published: it is taken, or refused with a reason that is not "our fault", and what is stored is sound."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maestropy.store.dsn import Dsn
from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding, stored_event
from tests import waiting
from tests.stack.secure_server import (
    BUNDLES,
    CONSUMER,
    Channel,
    Running,
    add_consumers,
    bundle,
    refusal,
    report,
    request_of,
    running,
    send,
    spec,
    structured,
    subscribe,
)

pytestmark = pytest.mark.long

TAKEN_OR_REFUSED = frozenset(
    {"OK", "UNKNOWN", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "PERMISSION_DENIED", "ABORTED"}
)
SOON = settings(max_examples=350, deadline=None, suppress_health_check=list(HealthCheck))


class Target:
    """A server that runs while examples are tried on it."""

    def __init__(self, runner: asyncio.Runner, server: Running, channels: dict[str, Channel]) -> None:
        self._runner = runner
        self.server = server
        self._channels = channels

    def run(self, work: Callable[["Target"], Any]) -> Any:
        return self._runner.run(work(self))

    def try_on(self, port: str, request: bytes) -> None:
        code, text = self._runner.run(refusal(self._channels[port], request))
        assert code in TAKEN_OR_REFUSED, (code, text)
        assert code == "OK" or text

    def channel(self, port: str) -> Channel:
        return self._channels[port]


@pytest.fixture
def target(database: Dsn) -> Iterator[Target]:
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def start() -> Target:
            await add_consumers(database, CONSUMER, "cluster2")
            server = await stack.enter_async_context(running(database, verbosity=10))
            channels = {"sources": server.sources(), "agents": server.agents()}
            for name in IDS:
                await send(channels["sources"], grpc_binding.encode_publish(spec(name)))
            return Target(runner, server, channels)

        async def stop(found: Target) -> None:
            await found.channel("sources").close()
            await found.channel("agents").close()
            await stack.aclose()

        found = runner.run(start())
        yield found
        found.run(_is_sound)
        runner.run(stop(found))


IDS = ("one", "two", "three")

ports = st.sampled_from(["sources", "agents"])
texts = st.text(max_size=12) | st.sampled_from(["", "\x00", "0", "-1", "99999999999", "null", "{}", "a\nb", "1e400"])
names = st.sampled_from(IDS) | texts
stamps = st.builds(
    lambda seconds, nanos: {"seconds": seconds, "nanos": nanos},
    st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**12), 10**12),
    st.integers(-(2**31), 2**31 - 1) | st.integers(0, 10**9 - 1),
)
values = st.one_of(
    st.builds(lambda text: {"ce_string": text}, texts),
    st.builds(lambda number: {"ce_integer": number}, st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3)),
    st.builds(lambda flag: {"ce_boolean": flag}, st.booleans()),
    st.builds(lambda raw: {"ce_bytes": raw}, st.binary(max_size=8)),
    st.builds(lambda stamp: {"ce_timestamp": stamp}, stamps),
    st.builds(lambda text: {"ce_uri": text}, texts),
    st.just({}),
)
attributes = st.sampled_from(
    ["ce-time", "ce-subject", "ce-dataschema", "contenttype", "ce-other", "ce-id", "ce-Data"]
    + [f"ce-{name}" for name in spec("x").extensions]
    + [f"ce-{name}" for name in report("x").extensions]
    + ["ce-deletiontimestamp"]
)
spec_types = st.sampled_from([event.SPEC_CREATE, event.SPEC_CREATE, event.SPEC_UPDATE, event.SPEC_DELETE])
types = st.builds(
    lambda data_type, half, action: f"{data_type}.{half}.{action}",
    st.sampled_from([event.MANIFEST_BUNDLES] * 4 + ["a.b.c", "x"]),
    st.sampled_from(["spec", "status", "half"]),
    st.sampled_from([*event.EventAction, "x"]),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["manifests", "metadata", "name", "kind", "apiVersion", "conditions", "type", "status"])
            | texts,
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
data = st.one_of(
    documents.map(lambda document: json.dumps(document).encode()),
    st.builds(lambda document: json.dumps({"manifests": [document]}).encode(), documents),
    st.builds(lambda value: bundle().replace(b'"1"', json.dumps(value).encode()), documents),
    st.builds(lambda raw: bundle().replace(b'"1"', raw), st.binary(max_size=12)),
    st.binary(max_size=20),
    st.just(b""),
    st.just(bundle()),
)


def _mutate(draw: Callable[[Any], Any], port: str) -> pb.CloudEvent:
    """Draw a good event with one thing or two that are not, or are merely strange."""
    if port == "sources":
        good = spec(draw(st.uuids().map(str) | names), type=draw(spec_types))
    else:
        good = report(draw(names), sequence=str(draw(st.integers(2**62, 2**63))))
    message = grpc_binding.to_message(good)
    message.id = draw(st.uuids().map(str))
    match draw(st.sampled_from(["type", "id", "data", "data", "add", "add", "add", "remove", "nothing"])):
        case "type":
            message.type = draw(types)
        case "id":
            message.id = draw(texts)
        case "data":
            message.binary_data = draw(data)
        case "remove":
            message.attributes.pop(draw(attributes), None)
        case "add":
            for name, value in draw(st.dictionaries(attributes, values, max_size=2)).items():
                message.attributes[name].CopyFrom(pb.CloudEventAttributeValue(**value))
    return message


@st.composite
def events(draw: Callable[[Any], Any]) -> tuple[str, bytes]:
    port = draw(ports)
    message = _mutate(draw, port)
    if draw(st.integers(0, 9)) == 0:
        members = {"specversion": "1.0", "id": "i", "source": "s", "type": event.SPEC_CREATE} | draw(
            st.dictionaries(st.sampled_from(["resourceid", "clustername", "data", "time", "ID"]) | texts, documents)
        )
        return port, structured(members)
    return port, request_of(message)


@st.composite
def damaged(draw: Callable[[Any], Any]) -> tuple[str, bytes]:
    port = draw(ports)
    good = bytearray(request_of(_mutate(draw, port)))
    for place, byte in draw(st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=6)):
        good[place % len(good)] = byte
    return port, bytes(good[: draw(st.integers(0, 2 * len(good)))])


@given(case=events())
@SOON
def test_events_that_are_nearly_right(target: Target, case: tuple[str, bytes]) -> None:
    target.try_on(*case)


@given(case=damaged())
@SOON
def test_requests_that_were_damaged(target: Target, case: tuple[str, bytes]) -> None:
    target.try_on(*case)


@given(port=ports, request_bytes=st.binary(max_size=200))
@SOON
def test_any_bytes(target: Target, port: str, request_bytes: bytes) -> None:
    target.try_on(port, request_bytes)


async def _is_sound(target: Target) -> None:
    """Check that everything which was stored can be read, delivered, told and listed."""
    server = target.server
    assert not server.lines("a call failed unexpectedly")
    rows = await server.sql("SELECT id, payload, status FROM resources")
    for row in rows:
        assert stored_event.from_document(row["payload"]).extensions[event.RESOURCE_ID] == row["id"]
        if row["status"] not in (None, "null"):
            assert stored_event.from_document(row["status"]).extensions[event.RESOURCE_ID] == row["id"]
    streams = [subscribe(target.channel("agents"), cluster_name=name) for name in (CONSUMER, "cluster2")]
    for stream in streams:
        await stream.initial_metadata()

    async def all_delivered() -> bool:
        found = await server.sql("SELECT count(*) FROM events WHERE reconciled_date IS NULL")
        return bool(found[0][0] == 0)

    await waiting.until(all_delivered, what="the delivery of every pending event")
    for stream in streams:
        stream.cancel()
    async with server.http("rest") as rest:
        pages = [await rest.get(BUNDLES, params={"size": 50, "page": page + 1}) for page in range(len(rows) // 50 + 1)]
    listed = [item["id"] for page in pages for item in page.json()["items"]]
    assert sorted(listed) == sorted(row["id"] for row in rows)
    errors = {line["msg"] for line in server.everything() if line["level"] == "error"}
    assert errors <= {"failed to handle status event"}  # of which the agent is told
