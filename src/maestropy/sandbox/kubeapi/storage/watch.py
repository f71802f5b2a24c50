"""Serve watch requests: the events of one resource after a resourceVersion, filtered by selectors, as lines of JSON."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.rules.selectors import Predicate
from maestropy.sandbox.kubeapi.storage.store import ObjectStore, StoredObject, StoreEvent

BOOKMARK_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The parameters of one watch."""

    resource: tuple[str, str]
    api_version: str
    kind: str
    namespace: str
    matches: Predicate
    version: int | None
    """Send events after this resourceVersion; None: send the present objects as ADDED first."""
    allows_bookmarks: bool
    sends_initial_events_end: bool
    seconds: float
    render: Callable[[StoredObject], bytes]

    def covers(self, stored: StoredObject | None) -> bool:
        """Whether the watch selects this object."""
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        return self.matches(stored.obj)


def line_for(event: StoreEvent, request: WatchRequest) -> bytes | None:
    """Return the watch event to send, if any. An object that no longer matches is sent as DELETED."""
    was_visible, is_visible = request.covers(event.before), request.covers(event.after)
    if is_visible:
        return _line("MODIFIED" if was_visible else "ADDED", request.render(event.last))
    if was_visible:
        deleted = event.last
        if event.after is not None and event.before is not None:
            # The last state that matched, with the resourceVersion of the change.
            metadata = {**event.before.obj["metadata"], "resourceVersion": str(event.version)}
            obj = {**event.before.obj, "metadata": metadata}
            deleted = StoredObject(resource=deleted.resource, obj=obj, raw=orjson.dumps(obj), version=event.version)
        return _line("DELETED", request.render(deleted))
    return None


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"


def _bookmark(request: WatchRequest, version: int, annotations: Mapping[str, str] | None = None) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = dict(annotations)
    obj = {"kind": request.kind, "apiVersion": request.api_version, "metadata": metadata}
    return _line("BOOKMARK", orjson.dumps(obj))


def _initial_events(store: ObjectStore, request: WatchRequest) -> bytes:
    """Return the present objects as ADDED events."""
    present = [stored for stored in store.select(request.resource, request.namespace) if request.covers(stored)]
    lines = [_line("ADDED", request.render(stored)) for stored in present]
    if request.sends_initial_events_end:
        lines.append(_bookmark(request, store.version, {"k8s.io/initial-events-end": "true"}))
    return b"".join(lines)


async def stream(store: ObjectStore, request: WatchRequest) -> AsyncIterator[bytes]:
    """Yield events until the timeout, until the store closes, or until the resourceVersion is compacted."""
    clock = asyncio.get_running_loop().time
    end = clock() + request.seconds
    cache = store.watch_cache(request.resource)
    position = store.version if request.version is None else request.version
    if request.version is None:
        yield _initial_events(store, request)
    next_bookmark = clock() + BOOKMARK_SECONDS
    while not store.is_closed:
        try:
            events = cache.events_since(position)
        except LookupError as error:
            expired = errors.expired(f"too old resource version: {position} ({error})")
            yield _line("ERROR", orjson.dumps(expired.to_status()))
            return
        if events:
            position = events[-1].version
            lines = b"".join(line for line in (line_for(event, request) for event in events) if line)
            if lines:
                yield lines
            continue
        now = clock()
        if now >= end:
            break
        if now >= next_bookmark:
            next_bookmark = now + BOOKMARK_SECONDS
            # No event of this resource is pending, so the watcher is up to date with the whole store.
            position = max(position, store.version)
            if request.allows_bookmarks:
                yield _bookmark(request, position)
        await cache.wait_for_event(min(end, next_bookmark) - now)
    if request.allows_bookmarks and not store.is_closed:
        yield _bookmark(request, max(position, store.version))
