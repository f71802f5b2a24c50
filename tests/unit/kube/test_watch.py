"""Watches over real HTTP, and their failures."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.kube import errors, watch
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.kube.watch import Added, Change, Deleted, Modified, ResourceWatch, Synced, WatchTiming
from tests.scripted_api import Answer, Asked, ScriptedApi, fails, says

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
QUICK = WatchTiming(open_for=60, idle=5, first_delay=0.001, longest_delay=0.002)


def pod(name: str, version: int, *, uid: str = "") -> dict[str, Any]:
    metadata = {"namespace": "ns", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": metadata}


def full(name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", **pod(name, version, **more)}


def listed(version: int, *pods: dict[str, Any], token: str = "") -> Answer:
    metadata = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return says({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": list(pods)})


def event(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}})


EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 5 (9)"}


def streams(*chunks: bytes, stay: bool = False, torn: bool = False) -> Answer:
    async def flow() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if stay:
            await asyncio.Future()

    return Answer(chunks=flow(), torn=torn)


class Sequenced:
    """Answers lists and watches in the order written; the last watch stays open."""

    def __init__(self, *, lists: Sequence[Answer], watches: Sequence[Answer]) -> None:
        self._lists, self._watches = iter(lists), iter(watches)

    async def __call__(self, received: Asked) -> Answer:
        if "watch" in received.query:
            return next(self._watches, None) or streams(stay=True)
        return next(self._lists)


def run(script: Callable[[Asked], Awaitable[Answer]], count: int, **more: Any) -> tuple[list[Change], ScriptedApi]:
    async def scenario() -> tuple[list[Change], ScriptedApi]:
        found: list[Change] = []
        async with (
            ScriptedApi(script) as api,
            KubeClient(api.address(), settings=ClientSettings(page_size=2)) as client,
            aclosing(
                ResourceWatch(client, PODS, jitter=lambda: 0.5, **({"timing": QUICK} | more)).changes()
            ) as changes,
        ):
            while len(found) < count:
                found.append(await anext(changes))
        return found, api

    return asyncio.run(scenario())


def test_list_then_watch() -> None:
    script = Sequenced(
        lists=[listed(5, pod("a", 3), pod("b", 4))],
        watches=[
            streams(
                event("ADDED", full("c", 6)),
                event("MODIFIED", full("a", 7)),
                event("DELETED", full("b", 8)),
                event("ADDED", full("b", 9, uid="second-incarnation")),
                stay=True,
            )
        ],
    )
    changes, api = run(script, 7, namespace="ns", selector=ObjectSelector(labels="x=y"))
    assert changes == [
        Added(full("a", 3)),
        Added(full("b", 4)),
        Synced("5"),
        Added(full("c", 6)),
        Modified(full("a", 7)),
        Deleted(full("b", 8)),
        Added(full("b", 9, uid="second-incarnation")),
    ]
    first, second = api.asked
    assert (first.path, second.path) == ("/api/v1/namespaces/ns/pods",) * 2
    assert first.query == {"labelSelector": "x=y", "limit": "2"}
    assert second.query == {
        "labelSelector": "x=y",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "90",
    }


def test_events_split_between_chunks() -> None:
    text = event("ADDED", full("ä€😀", 6)) + b"\n" + event("MODIFIED", full("ä€😀", 7))
    chunks = [text[at : at + 1] for at in range(len(text))]
    changes, _ = run(Sequenced(lists=[listed(5)], watches=[streams(*chunks, stay=True)]), 3)
    assert changes == [Synced("5"), Added(full("ä€😀", 6)), Modified(full("ä€😀", 7))]


def test_watch_resumes_at_its_version() -> None:
    script = Sequenced(
        lists=[listed(5, pod("a", 3))],
        watches=[
            streams(event("MODIFIED", full("a", 6))),
            streams(bookmark(20)),
            streams(event("MODIFIED", full("a", 21)), event("ADDED", full("b", 22))[:-9], torn=True),
            streams(event("ADDED", full("b", 22)), stay=True),
        ],
    )
    changes, api = run(script, 5)
    assert changes[1:] == [Synced("5"), Modified(full("a", 6)), Modified(full("a", 21)), Added(full("b", 22))]
    assert [received.query["resourceVersion"] for received in api.asked if "watch" in received.query] == [
        "5",
        "6",
        "20",
        "21",
    ]


@pytest.mark.parametrize(
    "expired",
    [streams(event("ERROR", EXPIRED)), fails(410, "Expired")],
    ids=["as-an-event", "as-an-answer"],
)
def test_expired_version_is_listed_again_with_all_changes(expired: Answer) -> None:
    script = Sequenced(
        lists=[
            listed(5, pod("same", 1), pod("edited", 2), token="x"),
            listed(5, pod("gone", 3), pod("replaced", 4, uid="first-incarnation"), token=""),
            listed(
                90, pod("same", 1), pod("edited", 80), pod("replaced", 81, uid="second-incarnation"), pod("new", 82)
            ),
        ],
        watches=[expired],
    )
    troubles: list[errors.KubeError] = []
    changes, _ = run(script, 11, on_error=troubles.append)
    assert changes[4] == Synced("5")
    assert changes[5:] == [
        Modified(full("edited", 80)),
        Deleted(full("replaced", 4, uid="first-incarnation"), is_final_state_known=False),
        Added(full("replaced", 81, uid="second-incarnation")),
        Added(full("new", 82)),
        Deleted(full("gone", 3), is_final_state_known=False),
        Synced("90"),
    ]
    assert [type(error) for error in troubles] == [errors.Gone]


def test_expired_pages_are_replaced_by_one_list_request() -> None:
    script = Sequenced(
        lists=[
            listed(5, pod("a", 1), pod("b", 2), token="x"),
            fails(410, "Expired"),
            listed(9, pod("b", 2), pod("c", 3)),
        ],
        watches=[],
    )
    changes, api = run(script, 5)
    assert changes == [
        Added(full("a", 1)),
        Added(full("b", 2)),
        Added(full("c", 3)),
        Deleted(full("a", 1), is_final_state_known=False),
        Synced("9"),
    ]
    assert [received.query.get("limit") for received in api.asked][:3] == ["2", "2", None]


@pytest.mark.parametrize(
    "failure",
    [
        fails(503, "ServiceUnavailable"),
        fails(403, "Forbidden"),
        fails(429, "TooManyRequests", Retry_After="0"),
        Answer(200, b"<p>hi</p>"),
        Answer(200, b"{}"),
        streams(torn=True),
    ],
    ids=["unavailable", "forbidden", "throttled", "page", "no-version", "torn"],
)
def test_watch_retries_after_failures(failure: Answer) -> None:
    changes, _ = run(Sequenced(lists=[failure, failure, failure, failure, failure, listed(5)], watches=[]), 1)
    assert changes == [Synced("5")]


@pytest.mark.parametrize(
    "broken",
    [
        streams(b"nonsense\n"),
        streams(b'{"type": "ADDED"}\n'),
        streams(b'{"type": 7, "object": {}}\n'),
        streams(b"[]\n"),
        streams(event("ERROR", {"kind": "Status", "code": 500, "message": "etcd"})),
        fails(500, "InternalError"),
        streams(),
    ],
    ids=["no-json", "no-object", "no-type", "list", "error-event", "internal-error", "ends-at-once"],
)
def test_broken_watch_resumes_without_a_new_list(broken: Answer) -> None:
    troubles: list[errors.KubeError] = []
    script = Sequenced(lists=[listed(5)], watches=[broken, streams(event("ADDED", full("a", 6)), stay=True)])
    changes, api = run(script, 2, on_error=troubles.append)
    assert changes == [Synced("5"), Added(full("a", 6))]
    assert len(troubles) == 1
    assert len([received for received in api.asked if "watch" not in received.query]) == 1


def test_silent_connection_is_closed() -> None:
    timing = WatchTiming(open_for=60, idle=0.05, first_delay=0.001, longest_delay=0.002)
    script = Sequenced(
        lists=[listed(5)], watches=[streams(stay=True), streams(event("ADDED", full("a", 6)), stay=True)]
    )
    changes, _ = run(script, 2, timing=timing)
    assert changes == [Synced("5"), Added(full("a", 6))]


def test_missing_resource_type_raises_not_found() -> None:
    with pytest.raises(errors.NotFound):
        run(Sequenced(lists=[fails(404, "NotFound")], watches=[]), 1)


def test_metadata_only_objects_have_their_kind() -> None:
    slim = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", **pod("a", 3)}
    script = Sequenced(lists=[listed(5, slim)], watches=[])
    changes, api = run(script, 2, selector=ObjectSelector(metadata_only=True))
    assert changes[0] == Added(full("a", 3))
    assert "as=PartialObjectMetadataList" in api.asked[0].header("accept")


def test_repeated_event_is_yielded_once() -> None:
    again = event("ADDED", full("a", 3))
    script = Sequenced(
        lists=[listed(5, pod("a", 3))],
        watches=[streams(again, event("DELETED", full("x", 6)), event("MODIFIED", full("a", 7)), stay=True)],
    )
    changes, _ = run(script, 3)
    assert changes == [Added(full("a", 3)), Synced("5"), Modified(full("a", 7))]


@given(st.lists(st.binary(max_size=20)), st.lists(st.integers(0, 100)))
async def test_lines_do_not_depend_on_the_chunks(lines: list[bytes], cuts: list[int]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    text = b"".join(line + b"\n" for line in lines) + b"unfinished"
    edges = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]

    async def pieces() -> AsyncIterator[bytes]:
        for start, end in itertools.pairwise(edges):
            yield text[start:end]

    assert [line async for line in watch.split_lines(pieces())] == [line for line in lines if line.strip()]
