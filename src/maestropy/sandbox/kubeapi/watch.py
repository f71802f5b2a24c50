"""What does a watcher see? Events of one resource from a version on, through its selectors, as lines of JSON."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import problems
from maestropy.sandbox.kubeapi.selectors import Predicate
from maestropy.sandbox.kubeapi.store import Event, Store, Stored

BOOKMARK_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one watcher asked for."""

    resource: tuple[str, str]
    api_version: str
    kind: str
    namespace: str
    matches: Predicate
    version: int | None
    """Events after this one; nothing means: begin with what is there."""
    bookmarks: bool
    announce_end_of_list: bool
    seconds: float
    render: Callable[[Stored], bytes]

    def covers(self, stored: Stored | None) -> bool:
        """Whether the watcher sees this state at all."""
        if stored is None or (self.namespace and stored.namespace != self.namespace):
            return False
        return self.matches(stored.obj)


def line_for(event: Event, wish: Wish) -> bytes | None:
    """Return what the watcher is told of an event: an object that stops matching is gone for it."""
    was, is_now = wish.covers(event.before), wish.covers(event.after)
    if is_now:
        return _line("MODIFIED" if was else "ADDED", wish.render(event.last))
    if was:
        gone = event.last
        if event.after is not None and event.before is not None:
            # The last state the watcher may see, under the version that took it away.
            metadata = {**event.before.obj["metadata"], "resourceVersion": str(event.version)}
            obj = {**event.before.obj, "metadata": metadata}
            gone = Stored(resource=gone.resource, obj=obj, raw=orjson.dumps(obj), version=event.version)
        return _line("DELETED", wish.render(gone))
    return None


def _line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + raw + b"}\n"


def _bookmark(wish: Wish, version: int, annotations: Mapping[str, str] | None = None) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        metadata["annotations"] = dict(annotations)
    obj = {"kind": wish.kind, "apiVersion": wish.api_version, "metadata": metadata}
    return _line("BOOKMARK", orjson.dumps(obj))


def _present(store: Store, wish: Wish) -> bytes:
    """Return what is there as if it had just come."""
    present = [stored for stored in store.select(wish.resource, wish.namespace) if wish.covers(stored)]
    lines = [_line("ADDED", wish.render(stored)) for stored in present]
    if wish.announce_end_of_list:
        lines.append(_bookmark(wish, store.version, {"k8s.io/initial-events-end": "true"}))
    return b"".join(lines)


async def stream(store: Store, wish: Wish) -> AsyncIterator[bytes]:
    """Yield events until the time is over, the store closes, or the history no longer reaches back far enough."""
    clock = asyncio.get_running_loop().time
    end = clock() + wish.seconds
    log = store.log(wish.resource)
    position = store.version if wish.version is None else wish.version
    if wish.version is None:
        yield _present(store, wish)
    next_bookmark = clock() + BOOKMARK_SECONDS
    while not store.closed:
        try:
            events = log.since(position)
        except LookupError as forgotten:
            expired = problems.gone(f"too old resource version: {position} ({forgotten})")
            yield _line("ERROR", orjson.dumps(expired.to_status()))
            return
        if events:
            position = events[-1].version
            lines = b"".join(line for line in (line_for(event, wish) for event in events) if line)
            if lines:
                yield lines
            continue
        now = clock()
        if now >= end:
            break
        if now >= next_bookmark:
            next_bookmark = now + BOOKMARK_SECONDS
            # Nothing of this resource is pending, so the watcher is up to date with everything.
            position = max(position, store.version)
            if wish.bookmarks:
                yield _bookmark(wish, position)
        await log.news(min(end, next_bookmark) - now)
    if wish.bookmarks and not store.closed:
        yield _bookmark(wish, max(position, store.version))
