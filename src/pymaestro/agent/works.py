"""The works this agent knows, in memory: what is wanted, and what it last said about each.

One writer per work: everything here is changed on the event loop without a pause in between, and a work that is going
away never comes back to life by a late update.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pymaestro.wire import work
from pymaestro.wire.status import WorkStatus


@dataclass(slots=True)
class Held:
    """One work."""

    wanted: work.ManifestWork
    problem: str = ""
    """Why the newest spec cannot be followed; the last good one stays applied."""
    status: WorkStatus = field(default_factory=WorkStatus)
    said: str = ""
    """The hash of the status the server has."""

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

    def reported(self) -> work.ManifestWork:
        """Return the work with its status, as it is told to the server."""
        return self.wanted.with_status(self.status)


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
        if held is None:
            held = Held(wanted=incoming, problem=problem)
            self._by_id[held.id] = self._by_name[held.name] = held
            return held
        if not _is_news(held, incoming):
            return None
        if held.name != incoming.name:
            self._by_name.pop(held.name, None)
        held.wanted = _merged(held.wanted, incoming, problem=problem)
        held.problem = problem
        self._by_name[held.name] = held
        return held

    def drop(self, work_id: str) -> None:
        """Forget a work that is gone."""
        held = self._by_id.pop(work_id, None)
        if held is not None and self._by_name.get(held.name) is held:
            del self._by_name[held.name]

    def versions(self) -> dict[str, int]:
        """Return what a spec resync tells the server."""
        return {held.id: held.wanted.generation for held in self}


def _is_news(held: Held, incoming: work.ManifestWork) -> bool:
    if incoming.deletion_timestamp:
        return not held.is_leaving
    if held.is_leaving:
        return False
    return incoming.generation == 0 or incoming.generation >= held.wanted.generation


def _merged(known: work.ManifestWork, incoming: work.ManifestWork, *, problem: str) -> work.ManifestWork:
    """Return the new wish; a deletion or an unreadable spec keeps the last spec that could be read."""
    if not incoming.deletion_timestamp and not problem:
        return incoming
    generation = incoming.generation or known.generation
    return work.ManifestWork({**incoming.body, "spec": known.spec}).with_metadata(generation=generation)
