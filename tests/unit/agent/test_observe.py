"""What answers told and what the watch tells arrive on different connections: whichever is late must not win."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from scripted_api import Answer, Asked, ScriptedApi, says

from maestropy.agent.observe import Observer, Place, Wakes
from maestropy.journal import emit
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ResourceType

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
CM, OTHER = Place(CONFIG_MAPS, "ns", "cm"), Place(CONFIG_MAPS, "ns", "other")


def sight(version: int, *, uid: str = "u1", name: str = "cm") -> dict[str, Any]:
    """Return a ConfigMap as the API server shows it in an answer or in an event."""
    metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Stage:
    """An observer whose watch says what the test writes."""

    def __init__(self, observer: Observer, told: "asyncio.Queue[bytes]", woken: list[str]) -> None:
        self.observer = observer
        self._told = told
        self.woken = woken
        self._rounds = 0

    async def tells(self, kind: str, found: dict[str, Any]) -> None:
        """Let the watch tell something, and wait until it was heard."""
        self._told.put_nowait(_line(kind, found))
        version = int(found["metadata"]["resourceVersion"])
        self._rounds += 1
        marker = sight(version, name="other", uid=f"marker{self._rounds}")
        self._told.put_nowait(_line("ADDED", marker))
        await self.until(lambda: self.version_of(OTHER) == marker["metadata"]["uid"])

    def version_of(self, place: Place) -> str | None:
        """Return the uid of the object, `gone`, or nothing if it has to be asked for."""
        known = self.observer.look(place)
        if not known.is_watched:
            return None
        return "gone" if known.live is None else str(known.live["metadata"]["uid"])

    async def until(self, predicate: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not predicate():
                await asyncio.sleep(0.001)


def _line(kind: str, found: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


@asynccontextmanager
async def stage(*listed: dict[str, Any], version: int, tracked: Sequence[Place] = (CM,)) -> AsyncIterator[Stage]:
    """Yield an observer that watches ConfigMaps, after the list of `version`."""
    told: asyncio.Queue[bytes] = asyncio.Queue()
    woken: list[str] = []

    async def flow() -> AsyncIterator[bytes]:
        while True:
            yield await told.get()

    async def answer(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return Answer(chunks=flow())
        body = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
        return says(body | {"items": [*listed, sight(1, name="other", uid="other")]})

    async with ScriptedApi(answer) as api, KubeClient(api.address()) as client, asyncio.TaskGroup() as group:
        observer = Observer(
            client,
            wakes=Wakes(changed=woken.append, unwatched=woken.append),
            jitter=lambda: 0.0,
            journal=emit.Journal(emit.stderr(), clock=lambda: 0.0),
            group=group,
            is_ours=lambda found: found["metadata"]["uid"] == "ours",
        )
        observer.track("marker", [OTHER])
        observer.track("work", tracked)
        found = Stage(observer, told, woken)
        await found.until(lambda: found.version_of(OTHER) == "other")
        yield found
        for key in ("work", "marker"):
            observer.track(key, ())


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


def test_an_answer_that_the_deletion_overtook_is_not_believed() -> None:
    async def scenario() -> None:
        async with stage(sight(5), version=10) as seen:
            answered = sight(5)
            await seen.tells("DELETED", sight(11))
            seen.observer.learn(CM, answered)
            assert seen.version_of(CM) == "gone"

    run(scenario)


def test_an_answer_of_before_a_list_without_the_object_is_not_believed() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            seen.observer.learn(CM, sight(5))
            assert seen.version_of(CM) == "gone"

    run(scenario)


def test_an_answer_about_an_earlier_life_is_not_believed() -> None:
    async def scenario() -> None:
        async with stage(sight(5), version=10) as seen:
            await seen.tells("DELETED", sight(11))
            await seen.tells("ADDED", sight(12, uid="u2"))
            seen.observer.learn(CM, sight(5))
            assert seen.version_of(CM) == "u2"

    run(scenario)


@pytest.mark.parametrize("uid", ["u1", "u2"])
def test_an_answer_ahead_of_the_watch_is_believed(uid: str) -> None:
    async def scenario() -> None:
        async with stage(sight(5), version=10) as seen:
            seen.observer.learn(CM, sight(20, uid=uid))
            await seen.tells("MODIFIED", sight(12))
            assert seen.version_of(CM) == uid
            seen.woken.clear()
            await seen.tells("MODIFIED", sight(20, uid=uid))
            assert seen.version_of(CM) == uid
            # Of our own writes nobody has to be woken.
            assert "work" not in seen.woken

    run(scenario)


def test_a_creation_ahead_of_the_watch_is_believed_and_its_end_is_heard() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            assert seen.version_of(CM) == "gone"
            seen.observer.learn(CM, sight(11))
            assert seen.version_of(CM) == "u1"
            await seen.tells("ADDED", sight(11))
            assert seen.version_of(CM) == "u1"
            await seen.tells("DELETED", sight(12))
            assert seen.version_of(CM) == "gone"

    run(scenario)


def test_a_creation_ahead_of_the_watch_is_remembered_while_the_next_wish_expects_other_objects() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            seen.observer.learn(CM, sight(11))
            seen.observer.expect("work", [OTHER])
            assert seen.version_of(CM) == "u1"
            seen.observer.track("work", [OTHER])
            assert seen.version_of(CM) == "gone"

    run(scenario)


def test_an_object_that_went_before_it_was_tracked_is_known_to_be_gone() -> None:
    async def scenario() -> None:
        async with stage(sight(5), version=10, tracked=[]) as seen:
            await seen.tells("DELETED", sight(11))
            seen.observer.track("late", [CM])
            seen.observer.learn(CM, sight(5))
            assert seen.version_of(CM) == "gone"
            seen.observer.track("late", [])

    run(scenario)


def test_an_object_that_is_there_is_asked_for_when_it_is_tracked_late() -> None:
    async def scenario() -> None:
        async with stage(sight(5), version=10, tracked=[]) as seen:
            seen.observer.track("late", [CM])
            assert seen.version_of(CM) is None
            seen.observer.learn(CM, sight(5))
            assert seen.version_of(CM) == "u1"
            seen.observer.track("late", [])

    run(scenario)


def test_an_answer_that_an_object_is_missing_does_not_outlive_its_creation() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            await seen.tells("ADDED", sight(11))
            seen.observer.learn(CM, None)
            assert seen.version_of(CM) != "gone"

    run(scenario)


def test_an_echo_that_overtakes_its_answer_wakes_nobody() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            seen.woken.clear()
            with seen.observer.asking(CM):
                await seen.tells("ADDED", sight(11))
                seen.observer.learn(CM, sight(11))
            assert "work" not in seen.woken
            assert seen.version_of(CM) == "u1"

    run(scenario)


@pytest.mark.parametrize(
    ("kind", "change", "left"),
    [("MODIFIED", sight(12), "u1"), ("DELETED", sight(12), "gone"), ("ADDED", sight(12, uid="u2"), "u2")],
    ids=["changed", "deleted", "created-anew"],
)
def test_what_somebody_else_does_during_a_request_wakes_after_it(kind: str, change: dict[str, Any], left: str) -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            seen.woken.clear()
            with seen.observer.asking(CM):
                await seen.tells("ADDED", sight(11))
                await seen.tells(kind, change)
                seen.observer.learn(CM, sight(11))
                assert "work" not in seen.woken
            assert "work" in seen.woken
            assert seen.version_of(CM) == left

    run(scenario)


def test_what_is_told_during_a_request_without_an_answer_wakes_too() -> None:
    async def scenario() -> None:
        async with stage(version=10) as seen:
            seen.woken.clear()
            with contextlib.suppress(TimeoutError), seen.observer.asking(CM):
                await seen.tells("ADDED", sight(11))
                raise TimeoutError
            assert "work" in seen.woken
            assert seen.version_of(CM) == "u1"

    run(scenario)


def test_an_object_of_ours_is_known_before_its_work_is() -> None:
    async def scenario() -> None:
        async with stage(sight(5, uid="ours"), version=10, tracked=[]) as seen:
            seen.observer.track("late", [CM])
            assert seen.version_of(CM) == "ours"
            seen.observer.track("late", [])

    run(scenario)


def test_an_object_of_ours_that_went_or_changed_before_its_work_came() -> None:
    async def scenario() -> None:
        async with stage(sight(5, uid="ours"), version=10, tracked=[]) as seen:
            await seen.tells("MODIFIED", sight(11, uid="ours"))
            seen.observer.track("late", [CM])
            assert seen.observer.look(CM).live == sight(11, uid="ours")
            seen.observer.track("late", [])
            await seen.tells("MODIFIED", sight(12, uid="ours"))
            await seen.tells("DELETED", sight(13, uid="ours"))
            seen.observer.track("late", [CM])
            assert seen.version_of(CM) == "gone"
            seen.observer.track("late", [])

    run(scenario)
