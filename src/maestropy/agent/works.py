"""The works this agent knows, in memory: what is wanted, and what it last said about each.

One writer per work: everything here is changed on the event loop without a pause in between, and a work that is going
away never comes back to life by a late update.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from maestropy.wire import packing, work
from maestropy.wire.status import WorkStatus


@dataclass(slots=True)
class Held:
    """One work."""

    wanted: work.ManifestWork
    """Without its spec; each wish is another one of these."""
    spec: bytes = b""
    """The spec, packed. Empty if there never was one that could be read."""
    problem: str = ""
    """Why the newest spec cannot be followed; the last good one stays applied."""
    status: WorkStatus = field(default_factory=WorkStatus)
    said: str = ""
    """The hash of the status the server has."""
    posted: str = ""
    """The hash of the status that is on its way to the server."""
    followed: work.ManifestWork | None = None
    """The wish that was last tried whole, and until when (monotonic) only what changes needs to be looked at."""
    followed_until: float = 0.0

    def wish(self) -> work.ManifestWork:
        """Return the work with its spec."""
        if not self.spec:
            return self.wanted
        return work.ManifestWork({**self.wanted.body, "spec": packing.unpack(self.spec)})

    @property
    def id(self) -> str:
        """The resource id."""
        return self.wanted.uid

    @property
    def name(self) -> str:
        """The name under which its record stands."""
        return self.wanted.name

    @property
    def is_leaving(self) -> bool:
        """Whether somebody asked for its deletion."""
        return bool(self.wanted.deletion_timestamp)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left on the cluster; only the server may not know yet."""
        return self.is_leaving and self.status.is_deleted

    def reported(self) -> work.ManifestWork:
        """Return the work with its status, as it is told to the server."""
        told = self.wanted.with_status(self.status)
        # Nothing holds a work that is gone; so the Go agent says, too.
        return told.with_metadata(finalizers=None) if self.status.is_deleted else told


class Works:
    """All works, by id and by name."""

    def __init__(self) -> None:
        self._by_id: dict[str, Held] = {}
        self._by_name: dict[str, Held] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Held]:
        return iter(list(self._by_id.values()))

    def get(self, work_id: str) -> Held | None:
        """Return a work by its id."""
        return self._by_id.get(work_id)

    def named(self, name: str) -> Held | None:
        """Return a work by its name."""
        return self._by_name.get(name)

    def put(self, incoming: work.ManifestWork, *, problem: str = "") -> Held | None:
        """Take what the server sent; returns the work if that changed anything."""
        held = self._by_id.get(incoming.uid)
        if held is not None and held.is_over and (not incoming.deletion_timestamp or _is_successor(held, incoming)):
            # The server forgot it and somebody asked for it anew, before we heard that the server knows of its end.
            self.drop(held)
            held = None
        if held is None and incoming.deletion_timestamp and incoming.name in self._by_name:
            # Nobody has this id, and what stands under its name belongs to another work.
            return None
        if held is None:
            held = Held(wanted=_without_spec(incoming), spec=_packed(incoming), problem=problem)
            self._by_id[held.id] = self._by_name[held.name] = held
            return held
        if not _is_news(held, incoming):
            return None
        if held.name != incoming.name:
            self._by_name.pop(held.name, None)
        if problem or incoming.deletion_timestamp:
            held.wanted = _renewed(held, _without_spec(incoming))
        else:
            held.wanted, held.spec = _without_spec(incoming), _packed(incoming)
        held.problem = problem
        self._by_name[held.name] = held
        return held

    def drop(self, held: Held) -> None:
        """Forget a work that is gone; a later one with the same id stays."""
        if self._by_id.get(held.id) is held:
            del self._by_id[held.id]
        if self._by_name.get(held.name) is held:
            del self._by_name[held.name]

    def versions(self) -> dict[str, int]:
        """Return what a spec resync tells the server."""
        return {held.id: held.wanted.generation for held in self}


def _is_news(held: Held, incoming: work.ManifestWork) -> bool:
    if incoming.deletion_timestamp:
        return not held.is_leaving or _is_successor(held, incoming)
    if held.is_leaving:
        return False
    return incoming.generation == 0 or incoming.generation >= held.wanted.generation


def _is_successor(held: Held, incoming: work.ManifestWork) -> bool:
    """Whether the server speaks of a later work of the same id: the end of the earlier one is not what it waits for."""
    # Both are written alike, in UTC and to the second.
    return incoming.creation_timestamp > held.wanted.creation_timestamp


def _renewed(held: Held, incoming: work.ManifestWork) -> work.ManifestWork:
    """Return the wish after a deletion or an unreadable spec: the last one that could be read stays, and its name."""
    known = held.wanted
    changed = known.with_annotations(incoming.tracing).with_metadata(
        generation=incoming.generation or known.generation,
        creationTimestamp=incoming.creation_timestamp or known.creation_timestamp or None,
        deletionTimestamp=incoming.deletion_timestamp or None,
    )
    # A work that was never read whole has nothing to keep but what the newest event says.
    return changed if held.spec else incoming.with_metadata(generation=changed.generation)


def _without_spec(found: work.ManifestWork) -> work.ManifestWork:
    return work.ManifestWork({name: value for name, value in found.body.items() if name != "spec"})


def _packed(found: work.ManifestWork) -> bytes:
    return packing.pack(found.spec) if found.spec else b""
