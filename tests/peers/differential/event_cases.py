"""What both servers are sent: lives of bundles, whole and spoiled, and events made by chance.

A case is about one bundle and is played step by step; nothing here knows how a server should answer.
"""

import itertools
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import twin_events as make
from twin_events import Attribute, bundle, manifest, moment, number, text
from twins import SOURCE

from pymaestro.wire._pb import cloudevents_pb2 as pb

_attempts = itertools.count(1)
PUBLISH = "publish"
REPORT = "report"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A request to the sources' port or to the agents' port."""

    to: str
    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What happens to one bundle."""

    name: str
    resource: str
    steps: tuple[Step, ...]


def wish(made: pb.CloudEvent) -> Step:
    return Step(to=PUBLISH, request=make.request(made))


def word(made: pb.CloudEvent) -> Step:
    return Step(to=REPORT, request=make.request(made))


def again(made: pb.CloudEvent, ident: str) -> pb.CloudEvent:
    """Return the same event under another id, as a client's second attempt of the same change has."""
    other = pb.CloudEvent()
    other.CopyFrom(made)
    other.id = ident
    return other


def create(resource: str, **how: Any) -> pb.CloudEvent:
    return make.spec("create_request", resource, **how)


def update(resource: str, version: int, *, value: str = "2") -> pb.CloudEvent:
    data = bundle(manifest(data={"x": value}))
    return again(make.spec("update_request", resource, version=version, data=data), f"update-{resource}-{value}")


def delete(resource: str, *, ident: str = "") -> pb.CloudEvent:
    made = make.spec("delete_request", resource)
    return again(made, ident) if ident else made


def lives() -> Iterator[tuple[str, Callable[[str], list[Step]]]]:
    """Yield stories of bundles; each is told a name for its bundle."""
    yield "create", lambda r: [wish(create(r))]
    yield "create with version 5", lambda r: [wish(create(r, version=5))]
    yield "create, update", lambda r: [wish(create(r)), wish(update(r, 1))]
    yield "update with version 0", lambda r: [wish(create(r)), wish(update(r, 0))]
    yield "stale update", lambda r: [wish(create(r)), wish(update(r, 1)), wish(update(r, 1, value="3"))]
    yield "update of a version to come", lambda r: [wish(create(r)), wish(update(r, 9))]
    yield "update with a negative version", lambda r: [wish(create(r)), wish(update(r, -1))]
    yield "the same update twice", lambda r: [wish(create(r)), wish(update(r, 1)), wish(update(r, 1))]
    yield "update that changes nothing", lambda r: [wish(create(r)), wish(make.spec("update_request", r, version=1))]
    yield "the same create twice", lambda r: [wish(create(r)), wish(create(r))]
    yield "another create of the same bundle", lambda r: [wish(create(r)), wish(again(create(r), f"other-{r}"))]
    yield "update of a bundle that never was", lambda r: [wish(update(r, 1))]
    yield "delete of a bundle that never was", lambda r: [wish(delete(r))]
    yield "delete", lambda r: [wish(create(r)), wish(delete(r))]
    yield "delete twice", lambda r: [wish(create(r)), wish(delete(r)), wish(delete(r, ident=f"again-{r}"))]
    yield "update while deleting", lambda r: [wish(create(r)), wish(delete(r)), wish(update(r, 1))]
    yield "create while deleting", lambda r: [wish(create(r)), wish(delete(r)), wish(again(create(r), f"new-{r}"))]
    yield "status", lambda r: [wish(create(r)), word(make.status(r))]
    yield "status, newer status", lambda r: [wish(create(r)), word(make.status(r)), word(newer(r))]
    yield "status, older status", lambda r: [wish(create(r)), word(newer(r)), word(make.status(r))]
    yield "the same status twice", lambda r: [wish(create(r)), word(make.status(r)), word(make.status(r))]
    yield "status of an old version", lambda r: [wish(create(r)), wish(update(r, 1)), word(make.status(r))]
    yield "status of a version to come", lambda r: [wish(create(r)), word(make.status(r, version=7))]
    yield "status of version 0", lambda r: [wish(create(r)), word(make.status(r, version=0, sequence="77"))]
    yield "status of a bundle that never was", lambda r: [word(make.status(r))]
    yield "status, update keeps it", lambda r: [wish(create(r)), word(make.status(r)), wish(update(r, 1))]
    yield "status while deleting", lambda r: [wish(create(r)), wish(delete(r)), word(make.status(r))]
    yield "a whole life", whole_life
    yield "a life and a second one", lambda r: [*whole_life(r), wish(again(create(r), f"second-{r}"))]
    yield "gone without a deletion", lambda r: [wish(create(r)), word(gone(r))]
    yield "gone at another version", lambda r: [wish(create(r)), wish(delete(r)), word(gone(r, version=9))]
    yield "another source's update", lambda r: [wish(create(r)), wish(of_source(update(r, 1), "stranger"))]
    yield "another source's delete", lambda r: [wish(create(r)), wish(of_source(delete(r), "stranger"))]
    yield (
        "an update under another cluster",
        lambda r: [wish(create(r)), wish(make.put(update(r, 1), clustername=text("b")))],
    )
    yield (
        "a delete under another cluster",
        lambda r: [wish(create(r)), wish(make.put(delete(r), clustername=text("b")))],
    )


def status_resyncs() -> Iterator[tuple[str, Callable[[str], list[Step]]]]:
    """Yield sources that ask again for statuses; each must be played alone, because such a question is about all."""
    for called, known in {
        "nothing known": [],
        "another hash known": [("self", "other")],
        "the same hash known": [("self", f"hash-{(make.SECOND + 1) << 22}")],
        "another bundle known": [("stranger", "other")],
    }.items():
        yield (
            f"status resync, {called}",
            lambda r, k=known: [wish(create(r)), word(make.status(r)), wish(status_question(r, k))],
        )


def status_question(resource: str, known: list[tuple[str, str]]) -> pb.CloudEvent:
    hashes = [{"resourceID": resource if each == "self" else each, "statusHash": value} for each, value in known]
    made = pb.CloudEvent(
        id=f"resync-{resource}", source=SOURCE, spec_version="1.0", type=f"{make.DATA_TYPE}.status.resync_request"
    )
    make.put(made, time=moment(), clustername=text(""), originalsource=text(""))
    return make.fill(made, {"statusHashes": hashes})


def whole_life(resource: str) -> list[Step]:
    return [
        wish(create(resource)),
        word(make.status(resource)),
        wish(update(resource, 1)),
        word(make.status(resource, version=2)),
        wish(delete(resource)),
        word(gone(resource, version=2)),
    ]


def newer(resource: str) -> pb.CloudEvent:
    return make.status(resource, sequence=str((make.SECOND + 5) << 22), kinds=("Applied", "Available"))


def gone(resource: str, *, version: int = 1) -> pb.CloudEvent:
    return make.status(resource, version=version, sequence=str((make.SECOND + 9) << 22), kinds=("Deleted",))


def of_source(made: pb.CloudEvent, source: str) -> pb.CloudEvent:
    made.source = source
    return made


VALUES: dict[str, Attribute | None] = {
    "absent": None,
    "empty": text(""),
    "text": text("text"),
    "blank": text(" "),
    "zero": number(0),
    "one": number(1),
    "minus one": number(-1),
    "one as text": text("1"),
    "five as text": text("5"),
    "fraction as text": text("1.5"),
    "huge as text": text("99999999999"),
    "true": Attribute(ce_boolean=True),
    "bytes": Attribute(ce_bytes=b"ab"),
    "uri": Attribute(ce_uri="http://a/b"),
    "reference": Attribute(ce_uri_ref="/a/b"),
    "moment": moment(),
    "object as text": text("{}"),
    "list as text": text("[]"),
    "null as text": text("null"),
    "not JSON": text("{no"),
    "unset": Attribute(),
}
NAMES = (
    "clustername",
    "resourceversion",
    "metadata",
    "originalsource",
    "logtracing",
    "time",
    "deletiontimestamp",
    "sequenceid",
    "statushash",
    "subject",
    "dataschema",
    "unknown",
)


def with_attribute(made: pb.CloudEvent, name: str, value: Attribute | None) -> pb.CloudEvent:
    return make.put(made, **{name: value})


METADATA: dict[str, Any] = {
    "labels": {"name": "w", "labels": {"a": "b"}, "annotations": {"k": "<v>&"}},
    "number for a name": {"name": 5},
    "no name": {"labels": {}},
    "finalizers": {"name": "w", "finalizers": ["a/b"], "ownerReferences": []},
    "timestamps of its own": {"name": "w", "creationTimestamp": "2020-01-01T00:00:00Z"},
    "creationTimestamp null": {"name": "w", "creationTimestamp": None},
    "unicode": {"name": "wörk", "annotations": {"k": "日本 😀"}},
    "big number": {"name": "w", "generation": 9007199254740993},
}

DATA: dict[str, Any] = {
    "none": None,
    "not JSON": b"nojson",
    "empty bytes": b"",
    "object": {},
    "list": [],
    "null": b"null",
    "text": b'"text"',
    "number": b"5",
    "manifests empty": bundle(),
    "manifests null": {"manifests": None},
    "manifests object": {"manifests": {}},
    "manifests of text": {"manifests": ["x"]},
    "manifests of null": {"manifests": [None]},
    "manifest empty": bundle({}),
    "two": bundle(manifest(), manifest(meta={"name": "other"})),
    "two equal": bundle(manifest(), manifest()),
    "no apiVersion": bundle(manifest(apiVersion=None)),
    "apiVersion empty": bundle(manifest(apiVersion="")),
    "apiVersion of three": bundle(manifest(apiVersion="a/b/c")),
    "apiVersion without version": bundle(manifest(apiVersion="apps/")),
    "apiVersion without group": bundle(manifest(apiVersion="/v1")),
    "apiVersion upper case": bundle(manifest(apiVersion="Apps/V1")),
    "apiVersion number": bundle(manifest(apiVersion=1)),
    "no kind": bundle(manifest(kind=None)),
    "kind number": bundle(manifest(kind=5)),
    "kind odd": bundle(manifest(kind="no such kind!")),
    "no name": bundle(manifest(meta={"name": None})),
    "name empty": bundle(manifest(meta={"name": ""})),
    "name odd": bundle(manifest(meta={"name": "Bad_Name"})),
    "name number": bundle(manifest(meta={"name": 5})),
    "name and generateName": bundle(manifest(meta={"generateName": "x"})),
    "generateName": bundle(manifest(meta={"name": None, "generateName": "x"})),
    "namespace odd": bundle(manifest(meta={"namespace": "Bad_NS"})),
    "namespace empty": bundle(manifest(meta={"namespace": ""})),
    "namespace number": bundle(manifest(meta={"namespace": 7})),
    "no namespace": bundle(manifest(meta={"namespace": None})),
    "resourceVersion": bundle(manifest(meta={"resourceVersion": "5"})),
    "uid": bundle(manifest(meta={"uid": "u"})),
    "grace period": bundle(manifest(meta={"deletionGracePeriodSeconds": 5})),
    "labels": bundle(manifest(meta={"labels": {"a": "b", "a.b/c": ""}})),
    "label key odd": bundle(manifest(meta={"labels": {"bad key!": "x"}})),
    "label value odd": bundle(manifest(meta={"labels": {"a": "bad value!"}})),
    "label value long": bundle(manifest(meta={"labels": {"a": "x" * 64}})),
    "label number": bundle(manifest(meta={"labels": {"a": 5}})),
    "labels list": bundle(manifest(meta={"labels": ["a"]})),
    "annotation key odd": bundle(manifest(meta={"annotations": {"bad key!": "x"}})),
    "annotation number": bundle(manifest(meta={"annotations": {"a": 5}})),
    "finalizers": bundle(manifest(meta={"finalizers": ["example.com/f"]})),
    "finalizer odd": bundle(manifest(meta={"finalizers": ["bad finalizer!"]})),
    "finalizers of numbers": bundle(manifest(meta={"finalizers": [5]})),
    "several mistakes": bundle(manifest(apiVersion=None, kind=None, meta={"name": None})),
    "a mistake in the second": bundle(manifest(), manifest(kind=None)),
    "metadata text": bundle(manifest() | {"metadata": "x"}),
    "metadata null": bundle(manifest() | {"metadata": None}),
    "no metadata": bundle({"apiVersion": "v1", "kind": "ConfigMap"}),
    "unknown key": bundle(manifest(), unknown=1),
    "configs null": bundle(manifest(), manifestConfigs=None),
    "configs empty": bundle(manifest(), manifestConfigs=[]),
    "configs object": bundle(manifest(), manifestConfigs={}),
    "config unknown": bundle(manifest(), manifestConfigs=[{"x": 1}]),
    "executer": bundle(
        manifest(), executer={"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}}}
    ),
    "executer text": bundle(manifest(), executer="x"),
    "deleteOption empty": bundle(manifest(), deleteOption={}),
    "deleteOption null": bundle(manifest(), deleteOption=None),
    "deleteOption text": bundle(manifest(), deleteOption="x"),
    "deleteOption odd": bundle(manifest(), deleteOption={"propagationPolicy": "Never"}),
    "unicode": bundle(manifest(data={"ключ": "日本 😀 \u2028"})),
    "markup": bundle(manifest(data={"a": "<b>&'\""})),
    "numbers": bundle(manifest(data={"a": 1, "b": -1.5, "c": 1e3, "d": True, "e": None})),
    "big number": bundle(manifest(data={"a": 9007199254740993})),
    "float without fraction": b'{"manifests":[{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"f":1.0}]}',
    "key twice": b'{"manifests":[],"manifests":[{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}]}',
    "deep": bundle(manifest(data=json.loads('{"a":' * 100 + "1" + "}" * 100))),
    "100 kB": bundle(manifest(data={"a": "x" * 100_000})),
    "600 kB": bundle(manifest(data={"a": "x" * 600_000})),
    "3 MB": bundle(manifest(data={"a": "x" * 3_000_000})),
    "5 MB": bundle(manifest(data={"a": "x" * 5_000_000})),
    "zero character": bundle(manifest(data={"a": "\x00"})),
    "blank around": b'  {"manifests": [] }\n',
    "trailing text": b'{"manifests":[]} x',
}

TYPES = (
    "",
    "nonsense",
    "a.b",
    "a.b.c.d.e",
    f"{make.DATA_TYPE}.spec.create_request",
    f"{make.DATA_TYPE}.spec.frobnicate",
    f"{make.DATA_TYPE}.spec.",
    f"{make.DATA_TYPE}.spec.watch_request",
    f"{make.DATA_TYPE}.spec.resync_response",
    f"{make.DATA_TYPE}.status.create_request",
    f"{make.DATA_TYPE}.other.create_request",
    "io.open-cluster-management.works.v1alpha1.manifests.spec.create_request",
    "io.open-cluster-management.cloudevents.heartbeat",
)


def spoiled(kind: str) -> Iterator[tuple[str, Callable[[str], list[Step]]]]:
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


def by_chance(seed: int, count: int) -> Iterator[tuple[str, Callable[[str], list[Step]]]]:
    """Yield lives in which any request may have any attribute changed."""
    for count_ in range(count):
        yield f"chance {count_}", lambda r, s=seed + count_: _life(random.Random(s), r)


def _life(chance: random.Random, resource: str) -> list[Step]:
    steps = [wish(_changed(chance, create(resource), often=0.2))]
    for count in range(chance.randint(1, 3)):
        what = chance.choice(["update", "status", "status", "delete", "create"])
        if what == "update":
            made = update(resource, chance.choice([0, 1, 1, 2, 9]), value=f"v{count}")
            steps.append(wish(_changed(chance, made, often=0.4)))
        elif what == "status":
            sequence = str((make.SECOND + chance.randint(0, 9)) << 22)
            kinds = chance.choice([("Applied",), ("Applied", "Available"), ("Applied",)])
            made = make.status(resource, version=chance.choice([1, 1, 2]), sequence=sequence, kinds=kinds)
            steps.append(word(_changed(chance, made, often=0.4)))
        elif what == "delete":
            steps.append(wish(_changed(chance, delete(resource, ident=f"delete-{resource}-{count}"), often=0.3)))
        else:
            steps.append(wish(_changed(chance, again(create(resource), f"create-{resource}-{count}"), often=0.3)))
    return steps


def _changed(chance: random.Random, made: pb.CloudEvent, *, often: float) -> pb.CloudEvent:
    if chance.random() < often:
        for _ in range(chance.randint(1, 2)):
            with_attribute(made, chance.choice(NAMES), VALUES[chance.choice(sorted(VALUES))])
    return made


def cases(stories: Iterator[tuple[str, Callable[[str], list[Step]]]], *, prefix: str) -> list[Case]:
    """Give every story a bundle of its own, and another one when a test is run again."""
    found = []
    attempt = next(_attempts)
    for count, (name, story) in enumerate(stories, 1):
        resource = f"{prefix}{attempt}-{count:03}"
        found.append(Case(name=name, resource=resource, steps=tuple(story(resource))))
    return found
