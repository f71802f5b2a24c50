"""Lives of bundles that both servers are told, whole ones and such with strange turns.

A case is about one bundle and is played step by step; nothing here knows how a server should answer.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from maestropy.wire._pb import cloudevents_pb2 as pb
from tests.peers.differential import twin_events as make
from tests.peers.differential.twin_events import bundle, manifest, moment, text
from tests.peers.differential.twins import CONSUMER, SOURCE

Stories = Iterator[tuple[str, Callable[[str], list["Step"]]]]
"""Names, and what happens to a bundle of the name that each is told."""
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


def spec_request(made: pb.CloudEvent) -> Step:
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


def lives() -> Stories:
    """Yield stories of bundles; each is told a name for its bundle."""
    yield "create", lambda r: [spec_request(create(r))]
    yield "create with version 5", lambda r: [spec_request(create(r, version=5))]
    yield "create, update", lambda r: [spec_request(create(r)), spec_request(update(r, 1))]
    yield "update with version 0", lambda r: [spec_request(create(r)), spec_request(update(r, 0))]
    yield (
        "stale update",
        lambda r: [spec_request(create(r)), spec_request(update(r, 1)), spec_request(update(r, 1, value="3"))],
    )
    yield "update of a version to come", lambda r: [spec_request(create(r)), spec_request(update(r, 9))]
    yield "update with a negative version", lambda r: [spec_request(create(r)), spec_request(update(r, -1))]
    yield (
        "the same update twice",
        lambda r: [spec_request(create(r)), spec_request(update(r, 1)), spec_request(update(r, 1))],
    )
    yield (
        "update that changes nothing",
        lambda r: [spec_request(create(r)), spec_request(make.spec("update_request", r, version=1))],
    )
    yield "the same create twice", lambda r: [spec_request(create(r)), spec_request(create(r))]
    yield (
        "another create of the same bundle",
        lambda r: [spec_request(create(r)), spec_request(again(create(r), f"other-{r}"))],
    )
    yield "update of a bundle that never was", lambda r: [spec_request(update(r, 1))]
    yield "delete of a bundle that never was", lambda r: [spec_request(delete(r))]
    yield "delete", lambda r: [spec_request(create(r)), spec_request(delete(r))]
    yield (
        "delete twice",
        lambda r: [spec_request(create(r)), spec_request(delete(r)), spec_request(delete(r, ident=f"again-{r}"))],
    )
    yield (
        "update while deleting",
        lambda r: [spec_request(create(r)), spec_request(delete(r)), spec_request(update(r, 1))],
    )
    yield (
        "create while deleting",
        lambda r: [spec_request(create(r)), spec_request(delete(r)), spec_request(again(create(r), f"new-{r}"))],
    )
    yield "status", lambda r: [spec_request(create(r)), word(make.status(r))]
    yield "status, newer status", lambda r: [spec_request(create(r)), word(make.status(r)), word(newer(r))]
    yield "status, older status", lambda r: [spec_request(create(r)), word(newer(r)), word(make.status(r))]
    yield "the same status twice", lambda r: [spec_request(create(r)), word(make.status(r)), word(make.status(r))]
    yield (
        "status of an old version",
        lambda r: [spec_request(create(r)), spec_request(update(r, 1)), word(make.status(r))],
    )
    yield "status of a version to come", lambda r: [spec_request(create(r)), word(make.status(r, version=7))]
    yield "status of version 0", lambda r: [spec_request(create(r)), word(make.status(r, version=0, sequence="77"))]
    yield "status of a bundle that never was", lambda r: [word(make.status(r))]
    yield (
        "status, update keeps it",
        lambda r: [spec_request(create(r)), word(make.status(r)), spec_request(update(r, 1))],
    )
    yield "status while deleting", lambda r: [spec_request(create(r)), spec_request(delete(r)), word(make.status(r))]
    yield "a whole life", whole_life
    yield "a life and a second one", lambda r: [*whole_life(r), spec_request(again(create(r), f"second-{r}"))]
    yield "gone without a deletion", lambda r: [spec_request(create(r)), word(gone(r))]
    yield (
        "gone at another version",
        lambda r: [spec_request(create(r)), spec_request(delete(r)), word(gone(r, version=9))],
    )
    yield (
        "another source's update",
        lambda r: [spec_request(create(r)), spec_request(of_source(update(r, 1), "stranger"))],
    )
    yield "another source's delete", lambda r: [spec_request(create(r)), spec_request(of_source(delete(r), "stranger"))]
    yield (
        "an update under another cluster",
        lambda r: [spec_request(create(r)), spec_request(make.put(update(r, 1), clustername=text("b")))],
    )
    yield (
        "a delete under another cluster",
        lambda r: [spec_request(create(r)), spec_request(make.put(delete(r), clustername=text("b")))],
    )


def status_resyncs() -> Stories:
    """Yield sources that ask again for statuses; each must be played alone, because such a question is about all."""
    for called, known in {
        "nothing known": [],
        "another hash known": [("self", "other")],
        "the same hash known": [("self", f"hash-{(make.SECOND + 1) << 22}")],
        "another bundle known": [("stranger", "other")],
    }.items():
        yield (
            f"status resync, {called}",
            functools.partial(
                lambda k, r: [spec_request(create(r)), word(make.status(r)), spec_request(status_question(r, k))], known
            ),
        )


def spec_resyncs() -> Stories:
    """Yield agents that say what they have; each must be played alone, because the answer is about all."""
    for called, known in {"nothing": [], "the newest": [("self", 1)], "an older version": [("self", 0)]}.items():
        yield (
            f"spec resync, {called} known",
            functools.partial(lambda k, r: [spec_request(create(r)), word(spec_question(r, k))], known),
        )
    yield "spec resync, a stranger known", lambda r: [word(spec_question(r, [("self", 3)]))]


def spec_question(resource: str, known: list[tuple[str, int]]) -> pb.CloudEvent:
    versions = [{"resourceID": resource, "resourceVersion": version} for _, version in known]
    made = pb.CloudEvent(
        id=f"resync-{resource}",
        source=f"{CONSUMER}-work-agent",
        spec_version="1.0",
        type=f"{make.DATA_TYPE}.spec.resync_request",
    )
    make.put(made, time=moment(), clustername=text(CONSUMER), originalsource=text(""))
    return make.fill(made, {"resourceVersions": versions})


def status_question(resource: str, known: list[tuple[str, str]]) -> pb.CloudEvent:
    hashes = [{"resourceID": resource if each == "self" else each, "statusHash": value} for each, value in known]
    made = pb.CloudEvent(
        id=f"resync-{resource}", source=SOURCE, spec_version="1.0", type=f"{make.DATA_TYPE}.status.resync_request"
    )
    make.put(made, time=moment(), clustername=text(""), originalsource=text(""))
    return make.fill(made, {"statusHashes": hashes})


def whole_life(resource: str) -> list[Step]:
    return [
        spec_request(create(resource)),
        word(make.status(resource)),
        spec_request(update(resource, 1)),
        word(make.status(resource, version=2)),
        spec_request(delete(resource)),
        word(gone(resource, version=2)),
    ]


def newer(resource: str) -> pb.CloudEvent:
    return make.status(resource, sequence=str((make.SECOND + 5) << 22), kinds=("Applied", "Available"))


def gone(resource: str, *, version: int = 1) -> pb.CloudEvent:
    return make.status(resource, version=version, sequence=str((make.SECOND + 9) << 22), kinds=("Deleted",))


def of_source(made: pb.CloudEvent, source: str) -> pb.CloudEvent:
    made.source = source
    return made


def cases(stories: Stories, *, prefix: str) -> list[Case]:
    """Give every story a bundle of its own, and another one when a test is run again."""
    found = []
    attempt = next(_attempts)
    for count, (name, story) in enumerate(stories, 1):
        resource = f"{prefix}{attempt}-{count:03}"
        found.append(Case(name=name, resource=resource, steps=tuple(story(resource))))
    return found
