"""An adapter: a name, and a function for each kind of resource it looks after. Pure.

adapter = Adapter("controlplane")

@adapter.reconciles("Cluster")
def control_plane(event: Event, cluster: Resource) -> Wish: ...
"""

import inspect
from collections.abc import Callable
from typing import TypeVar

from maestropy.adapter.errors import BadAdapter, UnknownKind
from maestropy.adapter.wish import Handler
from maestropy.sdk.targeting import Target
from maestropy.wire import names

Function = TypeVar("Function", bound=Handler)


class Adapter:
    """Functions from an event and a resource to what is wanted for it."""

    def __init__(self, name: str, *, target: Target | None = None) -> None:
        problems = names.dns1123_label(name)
        if problems:
            raise BadAdapter(f"the adapter's name is {name!r}: {problems[0]}")
        self.name = name
        """Its name in reports and labels; also its source id in Maestro, unless the environment names another."""
        self.target = target
        """Where new works go; None means the cluster that MANAGEMENT_CLUSTER_CONSUMER names."""
        self._handlers: dict[str, Handler] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of resources it looks after."""
        return tuple(self._handlers)

    def reconciles(self, kind: str) -> Callable[[Function], Function]:
        """Make a function the one for resources of `kind`.

        It is called for every event, also when nothing changed: it must return the same for the same resource, and do
        nothing by itself.
        """

        def take(function: Function) -> Function:
            if kind in self._handlers:
                raise BadAdapter(f"adapter {self.name!r} has two functions for {kind}; keep one")
            if inspect.iscoroutinefunction(function):
                raise BadAdapter(f"the function for {kind} is async; make it a plain one: the kit does what takes time")
            self._handlers[kind] = function
            return function

        return take

    def kind_named(self, kind: str) -> str:
        """Return a kind as this adapter writes it; raises UnknownKind.

        An event whose data does not name its kind has it from its type, which is in lower case; labels and paths must
        not depend on that.
        """
        found = next((each for each in self._handlers if each.lower() == kind.lower()), None)
        if found is None:
            known = ", ".join(self.kinds) or "none"
            raise UnknownKind(f"adapter {self.name!r} has no function for {kind}; it has some for: {known}")
        return found

    def handler(self, kind: str) -> Handler:
        """Return the function for a kind; raises UnknownKind."""
        return self._handlers[self.kind_named(kind)]
