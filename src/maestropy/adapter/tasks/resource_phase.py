"""Run the resources of a task in their order: create gate, delete gate, apply.

Every resource is read before the first gate, so a gate sees the states of all. The first failed apply ends the phase;
failed deletions do not.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from maestropy.adapter.decide import conditions, ownership
from maestropy.adapter.decide.effects import Apply, Await, Delete, Effect, EffectResult, Locate, Query
from maestropy.adapter.decide.failure import Failure, classify
from maestropy.adapter.resource import Resource
from maestropy.adapter.tasks import objects, states
from maestropy.adapter.tasks.language.expressions import ExpressionError
from maestropy.adapter.tasks.language.go_functions import TemplateError
from maestropy.adapter.tasks.model import Task, TaskResource
from maestropy.adapter.tasks.variables import Variables
from maestropy.sdk.errors import Conflict, MaestroError
from maestropy.sdk.work import Work

Steps = Generator[Effect, EffectResult, Any]
_RESOURCE_ERRORS = (MaestroError, TemplateError, ExpressionError, objects.ManifestError)


class ResourcePhase:
    """The resources of one pass."""

    def __init__(
        self, task: Task, variables: Variables, resource: Resource, *, adapter: str, targets: Mapping[str, str]
    ) -> None:
        self._task, self._variables, self._resource = task, variables, resource
        self._adapter, self._targets = adapter, targets
        self._labels = ownership.labels_of(adapter, resource)
        self._remote = frozenset(entry.name for entry in task.resources if entry.transport)
        self._stored: dict[str, Work] = {}
        """The stored works, by the name of the resource."""
        self._consumer = ""
        self.failure: Failure | None = None

    @property
    def works(self) -> list[Work]:
        """The works as they are stored."""
        return list(self._stored.values())

    def run(self, *, seconds: float) -> Steps:
        """Run all resources, then wait until what was written is read back, at most for so long."""
        try:
            yield from self._read_all()
        except MaestroError as error:
            self._failed("", error)
            return
        for task_resource in self._task.resources:
            if not (yield from self._process(task_resource)):
                break
        if seconds > 0 and self._is_pending(self.works):
            until = lambda works: not self._is_pending(works)  # noqa: E731 - passed as a value
            try:
                self._note(_works((yield Await(labels=self._labels, until=until, seconds=seconds))))
            except MaestroError as error:
                self._failed("", error)

    def _process(self, task_resource: TaskResource) -> Generator[Effect, EffectResult, bool]:
        """Run one resource; returns whether the next ones are run."""
        name = task_resource.name
        gate = task_resource.create_when
        is_found = self._variables.states.get(name) == states.PRESENT
        if not is_found and gate is not None and not self._variables.holds(gate):
            reason = f"{name}: lifecycle.create.when condition evaluated to false"
            self._variables.adapter.update(resourcesSkipped=True, skipReason=reason)
            return True
        is_deleted = task_resource.delete_when is not None and self._variables.holds(task_resource.delete_when)
        try:
            yield from self._delete(name) if is_deleted else self._apply(task_resource)
        except _RESOURCE_ERRORS as error:
            self._failed(name, error)
            return is_deleted
        return True

    def _delete(self, name: str) -> Steps:
        stored = self._stored.get(name)
        if stored is None:
            return
        if not stored.is_deleting:
            yield Delete(name=stored.name, consumer=stored.consumer, reason=f"lifecycle.delete.when of {name} is true")
        found = _works((yield Query(consumer=stored.consumer, name=stored.name)))
        if found:
            self._stored[name] = found[0]
        else:
            del self._stored[name]
        self._set_state(name)

    def _apply(self, task_resource: TaskResource) -> Steps:
        name = task_resource.name
        desired = objects.work_of(
            task_resource, adapter=self._adapter, resource=self._resource, variables=self._variables
        )
        stored = self._stored.get(name)
        if stored is not None and stored.is_deleting:
            raise Conflict(
                "an earlier work of this name is still being deleted",
                doing=f"apply {name}",
                advice="it is applied after the agent has confirmed that deletion",
            )
        write = states.decide_write(
            _generation(desired) or 0,
            written=_generation(stored) if stored else None,
            mirrored=objects.generation_of(self._variables.resources.get(name)),
        )
        if isinstance(write, states.WriteSkip):
            return
        if stored is None:
            consumer = yield from self._choose_consumer(task_resource)
            effect = Apply(work=desired, consumer=consumer, reason="it does not exist yet")
        else:
            reason = write.reason if isinstance(write, states.WriteUpdate) else "its generation is unknown"
            change = ownership.patch_for(desired)
            effect = Apply(work=desired, consumer=stored.consumer, patch=change, version=stored.version, reason=reason)
        work = yield effect
        assert isinstance(work, Work)
        self._stored[name] = work
        self._set_state(name)

    def _choose_consumer(self, task_resource: TaskResource) -> Generator[Effect, EffectResult, str]:
        """Return the cluster of a new work: that of its transport, or that of the other works, or the target."""
        template = self._targets.get(task_resource.transport)
        if template:
            return self._variables.rendered(template)
        if self._stored:
            return ownership.newest(self.works).consumer
        if not self._consumer:
            self._consumer = str((yield Locate(self._resource)))
        return self._consumer

    def _read_all(self) -> Steps:
        self._note(_works((yield Query(labels=self._labels))))

    def _note(self, works: Sequence[Work]) -> None:
        """Take over the works as they are stored now, and the states that follow."""
        by_name = {work.name: work for work in works}
        for task_resource in self._task.resources:
            work = by_name.get(objects.work_name(self._adapter, task_resource, self._resource.id))
            if work is None:
                self._stored.pop(task_resource.name, None)
            else:
                self._stored[task_resource.name] = work
            self._set_state(task_resource.name)

    def _set_state(self, name: str) -> None:
        stored = self._stored.get(name)
        read_back = objects.object_of(stored) if stored else None
        if stored is not None and read_back is None:
            # A work that was just written has no status; what was read back before is still what is known.
            read_back = self._variables.resources.get(name) or None
        state = states.state_of(is_stored=stored is not None, has_object=read_back is not None)
        self._variables.states[name] = state
        if states.has_value(state, is_remote=name in self._remote):
            self._variables.resources[name] = read_back or {}
        else:
            self._variables.resources.pop(name, None)

    def _is_pending(self, works: Sequence[Work]) -> bool:
        """Whether an agent has still to report on a work, or to delete it."""
        return any(work.is_deleting or not conditions.is_current(work) for work in works)

    def _failed(self, name: str, error: Exception) -> None:
        failure = (
            classify(error)
            if isinstance(error, MaestroError)
            else Failure(reason=type(error).__name__, message=str(error), is_transient=False)
        )
        self.failure = self.failure or failure
        details = {"phase": "resources", "step": name, "message": failure.message}
        adapter = self._variables.adapter
        adapter.update(executionStatus="failed", errorReason=failure.reason, errorMessage=failure.message)
        adapter.setdefault("executionError", details)
        adapter.setdefault("resourceErrors", {})[name or "resources"] = details


def _works(result: EffectResult) -> list[Work]:
    assert isinstance(result, Sequence)
    return [work for work in result if isinstance(work, Work)]


def _generation(work: Work) -> int | None:
    return states.generation_in(work.annotations.get(ownership.GENERATION))
