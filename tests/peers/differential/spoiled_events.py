"""Requests with one thing changed, one after the other: what does a server do with each?"""

import functools
import json
from typing import Any

from maestropy.wire._pb import cloudevents_pb2 as pb
from tests.peers.differential import twin_events as make
from tests.peers.differential.event_cases import Stories, create, spec_request, word
from tests.peers.differential.spoiled_values import DATA, METADATA, NAMES, TYPES, VALUES, with_attribute
from tests.peers.differential.twin_events import text


def spoiled(kind: str) -> Stories:
    """Yield single requests, each with one thing changed; `kind` is what is spoiled."""
    if kind == "spec requests":
        for name in NAMES:
            for called, value in VALUES.items():
                yield (
                    f"create, {name} {called}",
                    functools.partial(lambda n, v, r: [spec_request(with_attribute(create(r), n, v))], name, value),
                )
        for called, meta in METADATA.items():
            yield (
                f"create, metadata with {called}",
                functools.partial(
                    lambda m, r: [
                        spec_request(make.put(create(r), metadata=text(json.dumps(m)))),
                        word(make.status(r)),
                    ],
                    meta,
                ),
            )
        for called, data in DATA.items():
            yield f"create, data {called}", functools.partial(lambda d, r: [spec_request(create(r, data=d))], data)
            yield (
                f"update, data {called}",
                functools.partial(lambda d, r: [spec_request(create(r)), spec_request(update_with(r, d))], data),
            )
        for called in TYPES:
            yield (
                f"create, type {called!r}",
                functools.partial(lambda t, r: [spec_request(typed(create(r), t))], called),
            )
        for field, values in {"id": ("",), "source": ("",), "spec_version": ("", "0.3", "2.0")}.items():
            for word_ in values:
                yield (
                    f"create, {field} {word_!r}",
                    functools.partial(lambda f, v, r: [spec_request(with_field(create(r), f, v))], field, word_),
                )
        yield "create, structured", lambda r: [spec_request(structured(create(r)))]
        yield "create, data as text", lambda r: [spec_request(as_text(create(r)))]
        yield "create, no attributes", lambda r: [spec_request(bare(create(r)))]
        yield "create, an attribute without prefix", lambda r: [spec_request(unprefixed(create(r)))]
        yield "create, upper case attribute", lambda r: [spec_request(upper(create(r)))]
    else:
        for name in NAMES:
            for called, value in VALUES.items():
                yield (
                    f"status, {name} {called}",
                    functools.partial(
                        lambda n, v, r: [spec_request(create(r)), word(with_attribute(make.status(r), n, v))],
                        name,
                        value,
                    ),
                )
        for called in ("none", "not JSON", "object", "list", "null", "text", "number"):
            yield (
                f"status, data {called}",
                functools.partial(
                    lambda c, r: [spec_request(create(r)), word(without_data(make.status(r), DATA[c]))], called
                ),
            )
        for called in (*TYPES, f"{make.DATA_TYPE}.status.update_request", f"{make.DATA_TYPE}.status.resync_response"):
            yield (
                f"status, type {called!r}",
                functools.partial(lambda t, r: [spec_request(create(r)), word(typed(make.status(r), t))], called),
            )
        for field, values in {"id": ("",), "source": ("",), "spec_version": ("", "0.3", "2.0")}.items():
            for word_ in values:
                yield (
                    f"status, {field} {word_!r}",
                    functools.partial(
                        lambda f, v, r: [spec_request(create(r)), word(with_field(make.status(r), f, v))], field, word_
                    ),
                )


def update_with(resource: str, data: Any) -> pb.CloudEvent:
    return make.spec("update_request", resource, version=1, data=data)


def typed(made: pb.CloudEvent, kind: str) -> pb.CloudEvent:
    made.type = kind
    return made


def with_field(made: pb.CloudEvent, field: str, value: str) -> pb.CloudEvent:
    setattr(made, field, value)
    return made


def without_data(made: pb.CloudEvent, data: Any) -> pb.CloudEvent:
    made.ClearField("binary_data")
    return made if data is None else make.fill(made, data)


def structured(made: pb.CloudEvent) -> pb.CloudEvent:
    """Return the event as one JSON document, which nobody sends but everybody may."""
    document: dict[str, Any] = {
        "specversion": "1.0",
        "id": made.id,
        "source": made.source,
        "type": made.type,
        "datacontenttype": "application/json",
        "data": json.loads(made.binary_data),
    }
    for key, value in made.attributes.items():
        if key.startswith("ce-") and key != "ce-time":
            document[key[3:]] = value.ce_integer if value.HasField("ce_integer") else value.ce_string
    whole = pb.CloudEvent(id=made.id, source=made.source, spec_version="1.0", type=made.type)
    whole.attributes["contenttype"].CopyFrom(text("application/cloudevents+json"))
    whole.binary_data = json.dumps(document).encode()
    return whole


def as_text(made: pb.CloudEvent) -> pb.CloudEvent:
    made.text_data = made.binary_data.decode()
    return made


def bare(made: pb.CloudEvent) -> pb.CloudEvent:
    made.attributes.clear()
    return made


def unprefixed(made: pb.CloudEvent) -> pb.CloudEvent:
    made.attributes["plain"].CopyFrom(text("x"))
    return made


def upper(made: pb.CloudEvent) -> pb.CloudEvent:
    made.attributes["ce-MyOwn"].CopyFrom(text("x"))
    return made
