"""Watch events and the watch cache."""

from typing import Any

import pytest

from maestropy.sandbox.kubeapi.storage import watch
from maestropy.sandbox.kubeapi.storage.store import ObjectStore, StoredObject, StoreEvent


def stored(version: int, **labels: str) -> StoredObject:
    obj = {"kind": "ConfigMap", "metadata": {"name": "n", "resourceVersion": str(version), "labels": labels}}
    return StoredObject(resource=("", "configmaps"), obj=obj, raw=b"{}", version=version)


@pytest.mark.parametrize(
    ("before", "after", "event_type"),
    [
        pytest.param(None, {"in": "y"}, b"ADDED", id="created"),
        pytest.param({"in": "y"}, {"in": "y", "more": "y"}, b"MODIFIED", id="updated"),
        pytest.param({"in": "y"}, None, b"DELETED", id="deleted"),
        pytest.param({}, {"in": "y"}, b"ADDED", id="starts-to-match"),
        pytest.param({"in": "y"}, {}, b"DELETED", id="stops-matching"),
        pytest.param({}, {}, None, id="never-matches"),
    ],
)
def test_watch_event_type(before: Any, after: Any, event_type: bytes | None) -> None:
    old = stored(1, **before) if before is not None else None
    new = stored(2, **after) if after is not None else None
    event = StoreEvent(version=2, before=old, after=new, last=new or stored(2, **(before or {})))
    request = watch.WatchRequest(
        resource=("", "configmaps"),
        api_version="v1",
        kind="ConfigMap",
        namespace="",
        matches=lambda obj: obj["metadata"]["labels"].get("in") == "y",
        version=0,
        allows_bookmarks=False,
        sends_initial_events_end=False,
        seconds=1,
        render=lambda obj: obj.raw,
    )
    line = watch.line_for(event, request)
    assert (line is None) if event_type is None else (line is not None and event_type in line)


def test_watch_cache_is_bounded_and_rejects_compacted_versions() -> None:
    store = ObjectStore(history=3)
    for number in range(20):
        store.put(
            ("", "configmaps"),
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "uid": "u", "n": number}},
        )
    cache = store.watch_cache(("", "configmaps"))
    with pytest.raises(LookupError):
        cache.events_since(1)
    assert [event.version for event in cache.events_since(store.version - 2)] == [store.version - 1, store.version]
