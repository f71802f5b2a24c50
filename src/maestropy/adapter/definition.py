"""Define an adapter: a name, and one handler function per kind of resource. Pure.

adapter = Adapter("controlplane")

@adapter.reconciles("Cluster")
def control_plane(event: Event, cluster: Resource) -> DesiredState: ...
"""

import inspect
from collections.abc import Callable
from typing import TypeVar

from maestropy.adapter.decide import pipeline
from maestropy.adapter.decide.pipeline import Pipeline, PipelineOptions
from maestropy.adapter.desired_state import Handler
from maestropy.adapter.errors import BadAdapter, UnknownKind
from maestropy.adapter.event import Event
from maestropy.sdk.targeting import Target
from maestropy.wire import kubernetes_names

Function = TypeVar("Function", bound=Handler)


class Adapter:
    """A named set of handlers: functions from an event and a resource to the desired state."""

    def __init__(self, name: str, *, target: Target | None = None) -> None:
        problems = kubernetes_names.dns1123_label(name)
        if problems:
            raise BadAdapter(f"the adapter's name is {name!r}: {problems[0]}")
        self.name = name
        """The name in statuses and labels; also the source ID in Maestro, unless the environment sets another."""
        self.target = target
        """How the consumer of new works is chosen; None means the one that MANAGEMENT_CLUSTER_CONSUMER names."""
        self._handlers: dict[str, Handler] = {}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of resources that have a handler."""
        return tuple(self._handlers)

    def reconciles(self, kind: str) -> Callable[[Function], Function]:
        """Register a function as the handler of resources of `kind`.

        It is called for every event, also when nothing changed: it must return the same for the same resource and
        must have no side effects.
        """

        def register(function: Function) -> Function:
            if kind in self._handlers:
                raise BadAdapter(f"adapter {self.name!r} has two functions for {kind}; keep one")
            if inspect.iscoroutinefunction(function):
                raise BadAdapter(f"the function for {kind} is async; make it a plain function: it must do no I/O")
            self._handlers[kind] = function
            return function

        return register

    def declared_kind(self, kind: str) -> str:
        """Return a kind as this adapter spells it; raises UnknownKind.

        An event whose data does not name its kind takes it from its type, which is in lower case. Labels and paths must
        not depend on that.
        """
        declared = next((name for name in self._handlers if name.lower() == kind.lower()), None)
        if declared is None:
            known = ", ".join(self.kinds) or "none"
            raise UnknownKind(f"adapter {self.name!r} has no function for {kind}; it has functions for: {known}")
        return declared

    def handler(self, kind: str) -> Handler:
        """Return the handler of a kind; raises UnknownKind."""
        return self._handlers[self.declared_kind(kind)]

    def steps(self, event: Event, options: PipelineOptions) -> Pipeline:
        """Return the effects that reconcile the resource of an event, one after the other."""
        return pipeline.run(event, options)
