"""Raw events as sources and agents send them, whole or spoiled: nothing of our own wire code takes part."""

import copy
import json
from typing import Any

from google.protobuf import timestamp_pb2

from maestropy.wire._pb import cloudevents_pb2 as pb
from tests.peers.differential.twins import CONSUMER, SOURCE

DATA_TYPE = "io.open-cluster-management.works.v1alpha1.manifestbundles"
SECOND = 1_760_000_000
Attribute = pb.CloudEventAttributeValue
MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm", "namespace": "default"},
    "data": {"x": "<1>&"},
}
BUNDLE: dict[str, Any] = {
    "manifests": [MANIFEST],
    "manifestConfigs": [
        {
            "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "cm", "namespace": "default"},
            "updateStrategy": {"type": "ServerSideApply"},
        }
    ],
    "deleteOption": {"propagationPolicy": "Foreground"},
}


def text(value: str) -> Attribute:
    return Attribute(ce_string=value)


def number(value: int) -> Attribute:
    return Attribute(ce_integer=value)


def moment(seconds: int = SECOND, nanos: int = 123_456_000) -> Attribute:
    return Attribute(ce_timestamp=timestamp_pb2.Timestamp(seconds=seconds, nanos=nanos))


def spec(action: str, resource: str, *, version: int = 0, data: Any = BUNDLE, name: str = "") -> pb.CloudEvent:
    """Return a request as a source makes it; `data` may be bytes, or None for none."""
    meta = {"name": name or resource, "namespace": CONSUMER, "uid": resource, "resourceVersion": str(version)}
    if version:
        meta["generation"] = version  # type: ignore[assignment]  # JSON
    made = pb.CloudEvent(
        id=f"{action}-{resource}-{version}", source=SOURCE, spec_version="1.0", type=f"{DATA_TYPE}.spec.{action}"
    )
    put(
        made,
        time=moment(),
        clustername=text(CONSUMER),
        originalsource=text(""),
        logtracing=text("{}"),
        metadata=text(json.dumps({**meta, "labels": {"a": "b"}})),
        resourceid=text(resource),
        resourceversion=number(version),
    )
    if action == "delete_request":
        put(made, deletiontimestamp=moment())
    elif data is not None:
        fill(made, data)
    return made


def status(
    resource: str, *, version: int = 1, sequence: str = "", kinds: tuple[str, ...] = ("Applied",)
) -> pb.CloudEvent:
    """Return a report as an agent makes it."""
    sequence = sequence or str((SECOND + version) << 22)
    conditions = [
        {
            "type": kind,
            "status": "True",
            "observedGeneration": version,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "reason": "R",
            "message": "m",
        }
        for kind in kinds
    ]
    made = pb.CloudEvent(
        id=f"status-{resource}-{sequence}",
        source=f"{CONSUMER}-work-agent",
        spec_version="1.0",
        type=f"{DATA_TYPE}.status.update_request",
    )
    put(
        made,
        time=moment(),
        clustername=text(CONSUMER),
        originalsource=text("maestro"),
        logtracing=text("{}"),
        metadata=text(json.dumps({"name": resource, "namespace": CONSUMER, "uid": resource, "resourceVersion": "0"})),
        resourceid=text(resource),
        resourceversion=number(version),
        sequenceid=text(sequence),
        statushash=text(f"hash-{sequence}"),
    )
    fill(made, {"conditions": conditions, "resourceStatus": []})
    return made


def put(made: pb.CloudEvent, **attributes: Attribute | None) -> pb.CloudEvent:
    """Set extensions, or take away those that are None."""
    for name, value in attributes.items():
        key = f"ce-{name}"
        if value is None:
            made.attributes.pop(key, None)
        else:
            made.attributes[key].CopyFrom(value)
    return made


def fill(made: pb.CloudEvent, data: Any) -> pb.CloudEvent:
    """Set the data."""
    made.attributes["contenttype"].CopyFrom(text("application/json"))
    made.binary_data = data if isinstance(data, bytes) else json.dumps(data, separators=(",", ":")).encode()
    return made


def bundle(*manifests: Any, **more: Any) -> dict[str, Any]:
    return {"manifests": list(manifests), **more}


def manifest(**changes: Any) -> dict[str, Any]:
    """Return the manifest with other fields; those given as None are left out; `meta` changes its metadata."""
    made = copy.deepcopy(MANIFEST)
    made["metadata"] |= changes.pop("meta", {})
    made |= changes
    made["metadata"] = {key: value for key, value in made["metadata"].items() if value is not None}
    return {key: value for key, value in made.items() if value is not None}


def request(made: pb.CloudEvent) -> bytes:
    return pb.PublishRequest(event=made).SerializeToString()
