"""Requests that a server must refuse, and what the refusal says: the table behind the tests of bad input.

`REFUSED_BY_SOURCES` and `REFUSED_BY_AGENTS` name the port. Codes and the fixed part of each text are those of Maestro
wherever Maestro refuses too; the rest of a text names the field and what to do.
"""

import json
from collections.abc import Iterator
from typing import Any

from maestropy.wire._pb import cloudevents_pb2 as pb
from maestropy.wire.events import event, grpc_binding
from tests.stack.secure_server import b64, bundle, report, request_of, spec, structured, without

Case = tuple[str, bytes, str, tuple[str, ...]]
"""A name, the request, the gRPC code, what the text must contain."""

DECODE = "failed to decode cloudevent: "
CONVERT = "failed to convert to cloudevent: "
INVALID = "failed to create resource: maestro-8: the manifest bundle in the resource is invalid, "
STATUS = "failed to decode status: "
CONVERT_STATUS = "failed to convert protobuf to cloudevent: "

ID = "hostile"
"""No row may ever have this id, nor one that begins with it."""

NUL = "a\x00b"
DEEP = b"[" * 100_000 + b"]" * 100_000
LONE = b'"\\ud800"'


def _manifest_with(value: bytes) -> bytes:
    return bundle().replace(b'"1"', value)


def _message(value: event.CloudEvent, **changes: Any) -> pb.CloudEvent:
    message = grpc_binding.to_message(value)
    for name, change in changes.items():
        setattr(message, name, change)
    return message


def _attribute(value: event.CloudEvent, name: str, **attribute: Any) -> bytes:
    message = grpc_binding.to_message(value)
    message.attributes[name].CopyFrom(pb.CloudEventAttributeValue(**attribute))
    return request_of(message)


def _members(**changes: Any) -> dict[str, Any]:
    found = {
        "specversion": "1.0",
        "id": "i",
        "source": "mw-client-example",
        "type": event.SPEC_CREATE,
        "datacontenttype": "application/json",
        "time": "2026-08-20T10:00:00Z",
        "resourceid": ID,
        "resourceversion": 0,
        "clustername": "cluster1",
        "data": json.loads(bundle()),
    } | changes
    return {name: value for name, value in found.items() if value is not None}


# Each field of a message as wire bytes, so that what no library would write can be sent too.
def _length_delimited(number: int, content: bytes) -> bytes:
    size, head = len(content), bytes([number << 3 | 2])
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + content


def _with_raw_string(field_number: int, content: bytes) -> bytes:
    message = grpc_binding.to_message(spec(ID)).SerializeToString() + _length_delimited(field_number, content)
    return _length_delimited(1, message)


def _unreadable(convert: str, code: str) -> Iterator[Case]:
    yield "no bytes at all", b"", code, (convert, "carries no event", "set PublishRequest.event")
    yield "garbage", b"\xff\xfe\x00garbage", code, (convert, "not a PublishRequest")
    yield "an empty event", request_of(pb.CloudEvent()), code, (convert, "unknown Message encoding")
    yield "only unknown fields", b"\xf2\x3e\x03abc", code, (convert, "carries no event")
    yield "invalid UTF-8 in source", _with_raw_string(2, b"\xff\xfe"), code, (convert, "not a PublishRequest")
    yield "a lone surrogate in source", _with_raw_string(2, b"\xed\xa0\x80"), code, (convert, "not a PublishRequest")
    for version in ("", "9", "1.00"):
        odd = request_of(_message(spec(ID), spec_version=version))
        yield f"specversion {version!r}", odd, code, (convert, "unknown Message encoding", "set it to 1.0")
    for name in ("ce-id", "ce-source", "ce-type", "ce-specversion", "ce-data", "ce-datacontenttype"):
        twice = _attribute(spec(ID), name, ce_integer=7)
        yield f"the attribute {name} beside the field", twice, code, (convert, name, "not allowed")
    yield "an attribute name that is none", _attribute(spec(ID), "ce-a_b", ce_string="x"), code, (convert, "'ce-a_b'")
    yield "an attribute without a value", _attribute(spec(ID), "ce-empty"), code, (convert, "'ce-empty'", "no value")
    yield "time as a number", _attribute(spec(ID), "ce-time", ce_integer=5), code, (convert, "ce-time", "RFC 3339")
    yield "time as other text", _attribute(spec(ID), "ce-time", ce_string="soon"), code, (convert, "ce-time")
    for label, seconds, nanos in (
        ("before the year 1", -(2**40), 0),
        ("after the year 9999", 2**50, 0),
        ("with a second of nanoseconds", 5, 10**9),
        ("with negative nanoseconds", 5, -1),
    ):
        stamp = {"seconds": seconds, "nanos": nanos}
        yield f"time {label}", _attribute(spec(ID), "ce-time", ce_timestamp=stamp), code, (convert, "ce-time")
        other = _attribute(spec(ID), "ce-other", ce_timestamp=stamp)
        yield f"an attribute's timestamp {label}", other, code, (convert, "ce-other")
    yield "data in protobuf", _proto_data(), code, (convert, "proto_data", "binary_data")
    for label, members, fragment in (
        ("not JSON", b"{nojson", "structured event"),
        ("empty", b"", "structured event"),
        ("a list", b"[]", "structured event"),
        ("specversion 7", json.dumps(_members(specversion="7")).encode(), "specversion"),
        ("without specversion", json.dumps(_members(specversion=None)).encode(), "specversion"),
        ("id a number", json.dumps(_members(id=7)).encode(), "attribute id"),
        ("data_base64 not base64", json.dumps(_members(data=None, data_base64="*")).encode(), "data_base64"),
        ("both data and data_base64", json.dumps(_members(data_base64="e30=")).encode(), "data_base64"),
        ("an extension that is an object", json.dumps(_members(metadata={})).encode(), "metadata"),
        ("an extension name that is none", json.dumps(_members(**{"a-b": "x"})).encode(), "'a-b'"),
        ("an extension named as a field", json.dumps(_members(ID="x")).encode(), "'ID'"),
        ("a number beyond 32 bits", json.dumps(_members(other=2**31)).encode(), "other"),
        ("a number beyond 64 bits", json.dumps(_members(other=2**70)).encode(), "other"),
        ("a fraction", json.dumps(_members(other=1.5)).encode(), "other"),
        ("1e999999", json.dumps(_members(other="X")).encode().replace(b'"X"', b"1e999999"), "other"),
        ("time before the year 1", json.dumps(_members(time="0001-01-01T00:00:00+01:00")).encode(), "time"),
        ("a time that does not exist", json.dumps(_members(time="2026-02-30T00:00:00Z")).encode(), "2026-02-30"),
    ):
        yield f"structured, {label}", structured(members), code, (convert, fragment)
    deep = json.dumps(_members(data="X")).encode().replace(b'"X"', DEEP)
    yield "structured, nested 100000 times", structured(deep), code, (convert, "structured event")


def _proto_data() -> bytes:
    message = grpc_binding.to_message(spec(ID))
    message.proto_data.type_url = "type.googleapis.com/google.protobuf.Empty"
    return request_of(message)


def _types(code: str, *, agents: bool) -> Iterator[Case]:
    good = report(ID) if agents else spec(ID)
    for kind in ("", "nonsense", "a.b.c.d", event.HEARTBEAT):
        text = f"failed to parse cloud event type {kind}, unsupported cloudevents type format: {kind}"
        yield f"type {kind!r}", request_of(_message(good, type=kind)), code, (text,)
    half = request_of(_message(good, type=f"{event.MANIFEST_BUNDLES}.half.create_request"))
    yield "subresource half", half, code, ("failed to parse cloud event type ", "unsupported subresource half")
    long = request_of(_message(good, type=f"{event.MANIFEST_BUNDLES}.spec." + "a" * 1_000_000))
    yield "an action of a megabyte", long, code, ("type",)


def _sources() -> Iterator[Case]:
    yield from _unreadable(CONVERT, "UNKNOWN")
    yield from _types("UNKNOWN", agents=False)
    for action in ("frobnicate", "resync_response", "watch_request"):
        unknown = request_of(_message(spec(ID), type=f"{event.MANIFEST_BUNDLES}.spec.{action}"))
        yield f"action {action}", unknown, "UNKNOWN", (f"unsupported action {action}",)
    other = request_of(_message(spec(ID), type="io.a.b.spec.create_request"))
    yield "data type io.a.b", other, "UNKNOWN", ("unsupported cloudevents data type io.a.b", event.MANIFEST_BUNDLES)
    yield from _mandatory(spec(ID), (event.RESOURCE_ID, event.RESOURCE_VERSION, event.CLUSTER_NAME), "UNKNOWN", DECODE)
    for name in (event.RESOURCE_ID, event.CLUSTER_NAME):
        for label, text in (
            ("empty", ""),
            ("with a newline", "hostile\nline"),
            ("with NUL", NUL),
            ("of 10 KB", "x" * 10_240),
            ("with a zero-width space", "hostile\u200b"),
        ):
            odd = grpc_binding.encode_publish(spec(ID, extensions={name: text}))
            yield f"{name} {label}", odd, "UNKNOWN", (DECODE, f"failed to get {name} extension", "printable")
    for label, version in (("-1", -1), ("'-5'", "-5"), ("beyond 32 bits", "2147483648"), ("with letters", "abc")):
        odd = grpc_binding.encode_publish(spec(ID, extensions={event.RESOURCE_VERSION: version}))
        yield f"resourceversion {label}", odd, "UNKNOWN", (DECODE, "failed to get resourceversion extension")
    yield "no source", request_of(_message(spec(ID), source="")), "UNKNOWN", (DECODE, "source")
    yield "no id", request_of(_message(spec(ID), id="")), "UNKNOWN", (DECODE, "no id")
    for name in ("id", "source"):
        yield f"NUL in {name}", request_of(_message(spec(ID), **{name: NUL})), "UNKNOWN", (DECODE, name)
    yield (
        "a source of 10 KB",
        request_of(_message(spec(ID), source="s" * 10_240)),
        "UNKNOWN",
        (CONVERT, "source", "1024"),
    )
    for name in (event.METADATA, event.LOG_TRACING, event.ORIGINAL_SOURCE, "other"):
        odd = grpc_binding.encode_publish(spec(ID, extensions={name: NUL}))
        yield f"NUL in {name}", odd, "UNKNOWN", (DECODE, name)
    for name in ("subject", "content_type", "data_schema"):
        yield f"NUL in {name}", grpc_binding.encode_publish(spec(ID, **{name: NUL})), "UNKNOWN", (DECODE, "NUL")
    yield from _metadata()
    yield from _data()
    yield (
        "wrong consumer",
        grpc_binding.encode_publish(spec(ID, extensions={event.CLUSTER_NAME: "nobody"})),
        "UNKNOWN",
        (
            (
                "failed to create resource: maestro-9: Unable to create Resource: ERROR: insert or update on table "
                '"resources" violates foreign key constraint "fk_resources_consumers" (SQLSTATE 23503)'
            ),
            "'nobody'",
            "create it first",
        ),
    )
    missing = grpc_binding.encode_publish(spec(ID, type=event.SPEC_UPDATE))
    yield (
        "update of nothing",
        missing,
        "UNKNOWN",
        (f"failed to get resource: maestro-7: Resource with id='{ID}' not found",),
    )
    yield from _resyncs()


def _mandatory(good: event.CloudEvent, names: tuple[str, ...], code: str, prefix: str) -> Iterator[Case]:
    for name in names:
        fragments = (prefix, f"failed to get {name} extension", "missing")
        yield f"no {name}", without(good, f"ce-{name}"), code, fragments
        wrong: tuple[dict[str, Any], ...] = ({"ce_boolean": True}, {"ce_bytes": b"x"}, {"ce_timestamp": {"seconds": 5}})
        wrong += ({"ce_string": "x"},) if name == event.RESOURCE_VERSION else ({"ce_integer": 5},)
        for value in wrong:
            odd = _attribute(good, f"ce-{name}", **value)
            yield f"{name} as {next(iter(value))}", odd, code, (prefix, f"failed to get {name} extension", "set it to")


def _metadata() -> Iterator[Case]:
    failed = "failed to unmarshal metadata extension to object"
    for label, text in (
        ("not JSON", "nojson"),
        ("a list", "[]"),
        ("null", "null"),
        ("empty", ""),
        ("nested 100000 times", f'{{"a":{DEEP.decode()}}}'),
        ("with a number out of range", '{"a":1e999999}'),
        ("with an escaped NUL", '{"a":"\\u0000"}'),
        ("with a lone surrogate", '{"a":"\\ud800"}'),
    ):
        odd = grpc_binding.encode_publish(spec(ID, extensions={event.METADATA: text}))
        yield f"metadata {label}", odd, "UNKNOWN", (DECODE, failed)
    yield "metadata as bytes", _attribute(spec(ID), "ce-metadata", ce_bytes=b"{}"), "UNKNOWN", (DECODE, failed)


def _data() -> Iterator[Case]:
    for label, data, fragments in (
        ("not JSON", b"nojson", ("failed to unmarshal event data",)),
        ("with a raw NUL", _manifest_with(b'"a\x00b"'), ("failed to unmarshal event data",)),
        ("not UTF-8", _manifest_with(b'"\xff\xfe"'), ("failed to unmarshal event data", "UTF-8")),
        ("a list", b"[]", ("failed to unmarshal event data", "manifests")),
        ("manifests an object", b'{"manifests":{}}', ("failed to unmarshal event data", "manifests")),
        ("two documents", b"{}{}", ("failed to unmarshal event data",)),
        ("nested 100000 times", _manifest_with(DEEP), ("event data", "nested deeper")),
        ("nested 100000 times, in manifests", b'{"manifests":' + DEEP + b"}", ("event data",)),
        ("with 1e999999", _manifest_with(b"1e999999"), ("event data", "number", "string")),
        ("with 1e-999999", _manifest_with(b"1e-999999"), ("event data", "number", "string")),
        ("with an escaped NUL", _manifest_with(b'"a\\u0000b"'), ("event data", "\\u0000", "remove it")),
        ("with a lone surrogate", _manifest_with(LONE), ("failed to unmarshal event data",)),
        ("with a key of a lone surrogate", _manifest_with(b"{" + LONE + b":1}"), ("failed to unmarshal event data",)),
    ):
        yield f"data {label}", grpc_binding.encode_publish(spec(ID, data=data)), "UNKNOWN", (DECODE, *fragments)
    for label, manifest, fragments in (
        ("without apiVersion and name", {"kind": "ConfigMap"}, ("[apiVersion: Required", "metadata.name: Required")),
        ("a number", 5, ("manifests[0]",)),
    ):
        data = json.dumps({"manifests": [manifest]}).encode()
        yield f"a manifest {label}", grpc_binding.encode_publish(spec(ID, data=data)), "UNKNOWN", (INVALID, *fragments)
    twice = b'{"manifests":[],"manifests":[{"kind":"ConfigMap"}]}'
    yield "a member given twice", grpc_binding.encode_publish(spec(ID, data=twice)), "UNKNOWN", (INVALID, "duplicate")
    for label, data in (("deep", _manifest_with(DEEP)), ("out of range", _manifest_with(b"1e999999"))):
        odd = grpc_binding.encode_publish(spec("existing", type=event.SPEC_UPDATE, data=data))
        yield f"update with data {label}", odd, "UNKNOWN", (DECODE, "event data")
    odd = structured(_members(data=None, data_base64=b64(b"nojson")))
    yield "structured, data_base64 not JSON", odd, "UNKNOWN", (DECODE, "failed to unmarshal event data")


def _resyncs() -> Iterator[Case]:
    failed = "failed to respond resync status request"
    for label, data in (("not JSON", b"nojson"), ("of the wrong kind", b'{"statusHashes":5}'), ("deep", DEEP)):
        odd = grpc_binding.encode_publish(spec(ID, type=event.STATUS_RESYNC_REQUEST, data=data))
        yield f"a resync {label}", odd, "UNKNOWN", (failed, "statusHashes")
    nobody = grpc_binding.encode_publish(spec(ID, type=event.STATUS_RESYNC_REQUEST, source=NUL, data=b""))
    yield "a resync of a source with NUL", nobody, "UNKNOWN", (failed, "source")


def _agents() -> Iterator[Case]:
    yield from _unreadable(CONVERT_STATUS, "INVALID_ARGUMENT")
    yield from _types("INVALID_ARGUMENT", agents=True)
    other = request_of(_message(report(ID), type="io.a.b.c.status.update_request"))
    yield "data type io.a.b.c", other, "INVALID_ARGUMENT", ("failed to find service for event type io.a.b.c",)
    request = grpc_binding.encode_publish(spec(ID))
    yield "a spec", request, "FAILED_PRECONDITION", ("unsupported event type", "agents send statuses")
    names = (event.RESOURCE_ID, event.RESOURCE_VERSION, event.CLUSTER_NAME, event.SEQUENCE_ID, event.ORIGINAL_SOURCE)
    yield from _mandatory(report(ID), names, "FAILED_PRECONDITION", STATUS)
    for label, change, fragment in (
        ("originalsource other", {event.ORIGINAL_SOURCE: "elsewhere"}, "unmatched original source id elsewhere"),
        ("sequenceid not a number", {event.SEQUENCE_ID: "abc"}, "sequence"),
        ("NUL in resourceid", {event.RESOURCE_ID: NUL}, "resourceid"),
        ("NUL in another attribute", {event.RESOURCE_ID: "existing", "other": NUL}, "other"),
        ("NUL in statushash", {event.RESOURCE_ID: "existing", event.STATUS_HASH: NUL}, "statushash"),
    ):
        odd = grpc_binding.encode_publish(report(ID, extensions=change))
        yield label, odd, "FAILED_PRECONDITION", (STATUS, fragment)
    for name in ("id", "source", "subject"):
        odd = grpc_binding.encode_publish(report("existing", **{name: NUL}))
        yield f"NUL in {name}", odd, "FAILED_PRECONDITION", (STATUS, name)
    for label, data in (
        ("not JSON", b"nojson"),
        ("a list", b"[]"),
        ("deep", b'{"conditions":[],"x":' + DEEP + b"}"),
        ("with 1e999999", b'{"x":1e999999}'),
        ("with an escaped NUL", b'{"x":"\\u0000"}'),
        ("with a lone surrogate", b'{"x":' + LONE + b"}"),
        ("not UTF-8", b'{"x":"\xff"}'),
        ("conditions a text", b'{"conditions":"x"}'),
    ):
        odd = grpc_binding.encode_publish(report("existing", data=data))
        yield f"data {label}", odd, "FAILED_PRECONDITION", (STATUS, "event data")
    moved = grpc_binding.encode_publish(report("existing", extensions={event.CLUSTER_NAME: "cluster2"}))
    wrong = "failed to handle status event: unmatched consumer name cluster2 for resource existing"
    yield "another's bundle", moved, "FAILED_PRECONDITION", (wrong,)
    resync = grpc_binding.encode_publish(report(ID, type=event.SPEC_RESYNC_REQUEST))
    absent = ("failed to respond resync spec request", "subscribe first")
    yield "a resync without a subscription", resync, "FAILED_PRECONDITION", absent


REFUSED_BY_SOURCES = tuple(_sources())
REFUSED_BY_AGENTS = tuple(_agents())
