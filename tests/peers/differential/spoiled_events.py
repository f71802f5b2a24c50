"""Requests with one thing changed, one after the other: what does a server do with each?"""

import json
from typing import Any

import twin_events as make
from event_cases import Stories, create, wish, word
from spoiled_values import DATA, METADATA, NAMES, TYPES, VALUES, with_attribute
from twin_events import text

from maestropy.wire._pb import cloudevents_pb2 as pb


def spoiled(kind: str) -> Stories:
    """Yield single requests, each with one thing changed; `kind` is what is spoiled."""
    if kind == "wishes":
        for name in NAMES:
            for called, value in VALUES.items():
                yield (
                    f"create, {name} {called}",
                    lambda r, n=name, v=value: [wish(with_attribute(create(r), n, v))],
                )
        for called, meta in METADATA.items():
            yield (
                f"create, metadata with {called}",
                lambda r, m=meta: [wish(make.put(create(r), metadata=text(json.dumps(m)))), word(make.status(r))],
            )
        for called, data in DATA.items():
            yield f"create, data {called}", lambda r, d=data: [wish(create(r, data=d))]
            yield f"update, data {called}", lambda r, d=data: [wish(create(r)), wish(update_with(r, d))]
        for called in TYPES:
            yield f"create, type {called!r}", lambda r, t=called: [wish(typed(create(r), t))]
        for field, values in {"id": ("",), "source": ("",), "spec_version": ("", "0.3", "2.0")}.items():
            for value in values:
                yield (
                    f"create, {field} {value!r}",
                    lambda r, f=field, v=value: [wish(with_field(create(r), f, v))],
                )
        yield "create, structured", lambda r: [wish(structured(create(r)))]
        yield "create, data as text", lambda r: [wish(as_text(create(r)))]
        yield "create, no attributes", lambda r: [wish(bare(create(r)))]
        yield "create, an attribute without prefix", lambda r: [wish(unprefixed(create(r)))]
        yield "create, upper case attribute", lambda r: [wish(upper(create(r)))]
    else:
        for name in NAMES:
            for called, value in VALUES.items():
                yield (
                    f"status, {name} {called}",
                    lambda r, n=name, v=value: [wish(create(r)), word(with_attribute(make.status(r), n, v))],
                )
        for called in ("none", "not JSON", "object", "list", "null", "text", "number"):
            yield (
                f"status, data {called}",
                lambda r, c=called: [wish(create(r)), word(without_data(make.status(r), DATA[c]))],
            )
        for called in (*TYPES, f"{make.DATA_TYPE}.status.update_request", f"{make.DATA_TYPE}.status.resync_response"):
            yield f"status, type {called!r}", lambda r, t=called: [wish(create(r)), word(typed(make.status(r), t))]
        for field, values in {"id": ("",), "source": ("",), "spec_version": ("", "0.3", "2.0")}.items():
            for value in values:
                yield (
                    f"status, {field} {value!r}",
                    lambda r, f=field, v=value: [wish(create(r)), word(with_field(make.status(r), f, v))],
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
