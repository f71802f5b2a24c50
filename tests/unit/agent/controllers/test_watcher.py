"""Responses and watch events about one object arrive on different connections; the newer state wins."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maestropy.agent.controllers.watcher import ObjectRef, ObjectWatcher, WatchCallbacks
from maestropy.journal import emit
from maestropy.kube.client import KubeClient
from maestropy.kube.request import ResourceType
from tests import waiting
from tests.scripted_api import Answer, Asked, ScriptedApi, says

CONFIG_MAPS = ResourceType(group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True)
CM, OTHER = ObjectRef(CONFIG_MAPS, "ns", "cm"), ObjectRef(CONFIG_MAPS, "ns", "other")


def shown(version: int, *, uid: str = "u1", name: str = "cm") -> dict[str, Any]:
    """Return a ConfigMap as the API server shows it in a response or event."""
    metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class WatcherFixture:
    """A watcher whose watch sends the events of the test."""

    def __init__(self, watcher: ObjectWatcher, events: "asyncio.Queue[bytes]", reconciled: list[str]) -> None:
        self.watcher = watcher
        self._events = events
        self.reconciled = reconciled
        self._markers = 0

    async def send_event(self, kind: str, live: dict[str, Any]) -> None:
        """Send a watch event, and wait until it was handled."""
        self._events.put_nowait(_line(kind, live))
        version = int(live["metadata"]["resourceVersion"])
        self._markers += 1
        marker = shown(version, name="other", uid=f"marker{self._markers}")
        self._events.put_nowait(_line("ADDED", marker))
        await waiting.until(lambda: self.current_uid(OTHER) == marker["metadata"]["uid"])

    def current_uid(self, ref: ObjectRef) -> str | None:
        """Return the UID of the object, `gone`, or nothing if it has to be read from the API server."""
        known = self.watcher.read(ref)
        if not known.is_watched:
            return None
        return "gone" if known.live is None else str(known.live["metadata"]["uid"])


def _line(kind: str, live: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": live}).encode() + b"\n"


@asynccontextmanager
async def watched_config_maps(
    *listed: dict[str, Any], version: int, tracked: Sequence[ObjectRef] = (CM,)
) -> AsyncIterator[WatcherFixture]:
    """Yield a watcher of ConfigMaps, after the list of `version`."""
    events: asyncio.Queue[bytes] = asyncio.Queue()
    reconciled: list[str] = []

    async def flow() -> AsyncIterator[bytes]:
        while True:
            yield await events.get()

    async def respond(request: Asked) -> Answer:
        if "watch" in request.query:
            return Answer(chunks=flow())
        body = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": str(version)}}
        return says(body | {"items": [*listed, shown(1, name="other", uid="other")]})

    async with ScriptedApi(respond) as api, KubeClient(api.address()) as client, asyncio.TaskGroup() as group:
        watcher = ObjectWatcher(
            client,
            callbacks=WatchCallbacks(changed=reconciled.append, unwatched=reconciled.append),
            jitter=lambda: 0.0,
            journal=emit.Journal(emit.stderr(), clock=lambda: 0.0),
            group=group,
            is_ours=lambda live: live["metadata"]["uid"] == "ours",
        )
        watcher.track("marker", [OTHER])
        watcher.track("work", tracked)
        fixture = WatcherFixture(watcher, events, reconciled)
        await waiting.until(lambda: fixture.current_uid(OTHER) == "other")
        yield fixture
        for key in ("work", "marker"):
            watcher.track(key, ())


async def test_response_older_than_watched_deletion_is_ignored() -> None:
    async with watched_config_maps(shown(5), version=10) as fixture:
        response = shown(5)
        await fixture.send_event("DELETED", shown(11))
        fixture.watcher.observe(CM, response)
        assert fixture.current_uid(CM) == "gone"


async def test_response_older_than_list_without_object_is_ignored() -> None:
    async with watched_config_maps(version=10) as fixture:
        fixture.watcher.observe(CM, shown(5))
        assert fixture.current_uid(CM) == "gone"


async def test_response_about_previous_incarnation_is_ignored() -> None:
    async with watched_config_maps(shown(5), version=10) as fixture:
        await fixture.send_event("DELETED", shown(11))
        await fixture.send_event("ADDED", shown(12, uid="u2"))
        fixture.watcher.observe(CM, shown(5))
        assert fixture.current_uid(CM) == "u2"


@pytest.mark.parametrize("uid", ["u1", "u2"])
async def test_response_ahead_of_watch_is_current(uid: str) -> None:
    async with watched_config_maps(shown(5), version=10) as fixture:
        fixture.watcher.observe(CM, shown(20, uid=uid))
        await fixture.send_event("MODIFIED", shown(12))
        assert fixture.current_uid(CM) == uid
        fixture.reconciled.clear()
        await fixture.send_event("MODIFIED", shown(20, uid=uid))
        assert fixture.current_uid(CM) == uid
        # Our own write triggers no reconcile.
        assert "work" not in fixture.reconciled


async def test_creation_ahead_of_watch_is_current_until_deleted() -> None:
    async with watched_config_maps(version=10) as fixture:
        assert fixture.current_uid(CM) == "gone"
        fixture.watcher.observe(CM, shown(11))
        assert fixture.current_uid(CM) == "u1"
        await fixture.send_event("ADDED", shown(11))
        assert fixture.current_uid(CM) == "u1"
        await fixture.send_event("DELETED", shown(12))
        assert fixture.current_uid(CM) == "gone"


async def test_creation_ahead_of_watch_stays_cached_while_next_generation_expects_other_objects() -> None:
    async with watched_config_maps(version=10) as fixture:
        fixture.watcher.observe(CM, shown(11))
        fixture.watcher.expect("work", [OTHER])
        assert fixture.current_uid(CM) == "u1"
        fixture.watcher.track("work", [OTHER])
        assert fixture.current_uid(CM) == "gone"


async def test_object_deleted_before_tracking_is_gone() -> None:
    async with watched_config_maps(shown(5), version=10, tracked=[]) as fixture:
        await fixture.send_event("DELETED", shown(11))
        fixture.watcher.track("late", [CM])
        fixture.watcher.observe(CM, shown(5))
        assert fixture.current_uid(CM) == "gone"
        fixture.watcher.track("late", [])


async def test_existing_object_tracked_late_is_read_from_api_server() -> None:
    async with watched_config_maps(shown(5), version=10, tracked=[]) as fixture:
        fixture.watcher.track("late", [CM])
        assert fixture.current_uid(CM) is None
        fixture.watcher.observe(CM, shown(5))
        assert fixture.current_uid(CM) == "u1"
        fixture.watcher.track("late", [])


async def test_not_found_response_ends_with_creation() -> None:
    async with watched_config_maps(version=10) as fixture:
        await fixture.send_event("ADDED", shown(11))
        fixture.watcher.observe(CM, None)
        assert fixture.current_uid(CM) != "gone"


async def test_watch_event_of_own_write_triggers_no_reconcile() -> None:
    async with watched_config_maps(version=10) as fixture:
        fixture.reconciled.clear()
        with fixture.watcher.during_request(CM):
            await fixture.send_event("ADDED", shown(11))
            fixture.watcher.observe(CM, shown(11))
        assert "work" not in fixture.reconciled
        assert fixture.current_uid(CM) == "u1"


@pytest.mark.parametrize(
    ("kind", "change", "left"),
    [("MODIFIED", shown(12), "u1"), ("DELETED", shown(12), "gone"), ("ADDED", shown(12, uid="u2"), "u2")],
    ids=["changed", "deleted", "recreated"],
)
async def test_change_by_other_client_during_request_triggers_reconcile_after_it(
    kind: str, change: dict[str, Any], left: str
) -> None:
    async with watched_config_maps(version=10) as fixture:
        fixture.reconciled.clear()
        with fixture.watcher.during_request(CM):
            await fixture.send_event("ADDED", shown(11))
            await fixture.send_event(kind, change)
            fixture.watcher.observe(CM, shown(11))
            assert "work" not in fixture.reconciled
        assert "work" in fixture.reconciled
        assert fixture.current_uid(CM) == left


async def test_change_during_failed_request_triggers_reconcile() -> None:
    async with watched_config_maps(version=10) as fixture:
        fixture.reconciled.clear()
        with contextlib.suppress(TimeoutError), fixture.watcher.during_request(CM):
            await fixture.send_event("ADDED", shown(11))
            raise TimeoutError
        assert "work" in fixture.reconciled
        assert fixture.current_uid(CM) == "u1"


async def test_owned_object_is_cached_before_its_work_arrives() -> None:
    async with watched_config_maps(shown(5, uid="ours"), version=10, tracked=[]) as fixture:
        fixture.watcher.track("late", [CM])
        assert fixture.current_uid(CM) == "ours"
        fixture.watcher.track("late", [])


async def test_owned_object_changed_or_deleted_before_its_work_arrives() -> None:
    async with watched_config_maps(shown(5, uid="ours"), version=10, tracked=[]) as fixture:
        await fixture.send_event("MODIFIED", shown(11, uid="ours"))
        fixture.watcher.track("late", [CM])
        assert fixture.watcher.read(CM).live == shown(11, uid="ours")
        fixture.watcher.track("late", [])
        await fixture.send_event("MODIFIED", shown(12, uid="ours"))
        await fixture.send_event("DELETED", shown(13, uid="ours"))
        fixture.watcher.track("late", [CM])
        assert fixture.current_uid(CM) == "gone"
        fixture.watcher.track("late", [])
