"""Run one pass of a task for one event: params, preconditions, resources, post-actions.

A generator like the kit's own pipeline: it yields effects and is sent their results, so a task can be replayed,
dry-run, and carried out on every transport. There is no checkpoint: every event is a whole pass.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.decide import api_paths, outcomes
from maestropy.adapter.decide.adapter_status import failed
from maestropy.adapter.decide.effects import (
    CallApi,
    Effect,
    EffectResult,
    Fetch,
    PutStatus,
    ReadSurroundings,
    Surroundings,
)
from maestropy.adapter.decide.failure import Failure, classify
from maestropy.adapter.decide.pipeline import EventOutcome, Pipeline
from maestropy.adapter.desired_state import StatusReport
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.tasks import reports
from maestropy.adapter.tasks.language import criteria
from maestropy.adapter.tasks.language.expressions import ExpressionError
from maestropy.adapter.tasks.language.go_functions import TemplateError
from maestropy.adapter.tasks.model import ApiCall, Param, Precondition, Task
from maestropy.adapter.tasks.resource_phase import ResourcePhase
from maestropy.adapter.tasks.variables import ParamError, Variables, as_payload, converted
from maestropy.sdk.errors import MaestroError, NotFound

RESOURCE_NOT_FOUND = "ResourceNotFound"
Steps = Generator[Effect, EffectResult, Any]
_PASS_ERRORS = (MaestroError, ParamError, ExpressionError, TemplateError, criteria.CriteriaError, reports.BadReport)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """Settings of the passes of a task."""

    adapter: str
    config: Mapping[str, Any] = field(default_factory=dict)
    """The deployment file, for `config.…`."""
    target_clusters: Mapping[str, str] = field(default_factory=dict)
    """The template of the consumer of each transport; without one the adapter's target chooses it."""
    seconds: float = 0.0
    """How long to wait until objects that were written are read back."""


def run(task: Task, event: Event, options: PassOptions) -> Pipeline:
    """Run one pass."""
    return (yield from _TaskPass(task, event, options).run())


class _Gone(Exception):
    """The resource of the event does not exist any more."""


class _TaskPass:
    def __init__(self, task: Task, event: Event, options: PassOptions) -> None:
        self._task, self._event, self._options = task, event, options
        self._resource = Resource(
            id=event.resource_id,
            kind=event.kind,
            generation=event.generation,
            owner_id=event.owner_id,
            is_deleting=bool(event.is_deleting),
        )
        self._is_deleting = event.is_deleting
        self._variables = Variables(event, adapter=options.adapter, config=options.config, surroundings=None)
        self._failure: Failure | None = None

    def run(self) -> Pipeline:
        surroundings = yield ReadSurroundings(variables=self._task.variables, files=self._task.files)
        assert isinstance(surroundings, Surroundings)
        options = self._options
        self._variables = Variables(
            self._event, adapter=options.adapter, config=options.config, surroundings=surroundings
        )
        try:
            for param in self._task.params:
                yield from self._param(param)
        except _Gone:
            return EventOutcome(status=None)
        except _PASS_ERRORS as error:
            # HyperFleet reports nothing then: without its params a task cannot build a status.
            self._failed("params", "", error)
            return self._outcome(None)
        self._variables.adapter.update(executionStatus="success", resourcesSkipped=False, skipReason="")
        phase = ResourcePhase(
            self._task, self._variables, self._resource, adapter=options.adapter, targets=options.target_clusters
        )
        try:
            is_met = yield from self._preconditions()
        except _Gone:
            return EventOutcome(status=None)
        if is_met:
            yield from phase.run(seconds=options.seconds)
            self._failure = self._failure or phase.failure
        return (yield from self._post(phase))

    def _param(self, param: Param) -> Steps:
        try:
            value = (
                self._variables.resolved(param) if param.api_call is None else (yield from self._call(param.api_call))
            )
            if value in (None, "") and param.default is not None:
                value = param.default
            if value is not None and param.type and not (param.api_call or param.expression):
                value = converted(value, param.type)
        except (NotFound, *_PASS_ERRORS) as error:
            is_transient = isinstance(error, MaestroError) and error.is_retryable
            if param.is_required or is_transient:
                raise
            value = param.default
        if value is not None:
            self._variables.values[param.name] = value

    def _call(self, call: ApiCall) -> Steps:
        """Make a request; one for the event's own resource is the kit's Fetch."""
        url = self._variables.rendered(call.url)
        if call.method == "GET" and api_paths.full_path(url) == api_paths.path_of(self._event):
            fetched = yield Fetch(self._event)
            if fetched is None:
                raise _Gone
            assert isinstance(fetched, Resource)
            self._resource, self._is_deleting = fetched, fetched.is_deleting
            return {"id": fetched.id, "kind": fetched.kind, "generation": fetched.generation, **fetched.raw}
        body = self._variables.rendered(call.body) if call.body else ""
        headers = {name: self._variables.rendered(value) for name, value in call.headers}
        return (
            yield CallApi(method=call.method, url=url, body=reports.json_of(body) if body else None, headers=headers)
        )

    def _preconditions(self) -> Generator[Effect, EffectResult, bool]:
        for precondition in self._task.preconditions:
            try:
                is_met = yield from self._precondition(precondition)
            except NotFound:
                # The resource is gone: nothing is applied, and nothing is reported.
                self._skip(RESOURCE_NOT_FOUND)
                raise _Gone from None
            except _PASS_ERRORS as error:
                self._failed("preconditions", precondition.name, error)
                self._skip(f"precondition {precondition.name} failed")
                return False
            if not is_met:
                self._skip(f"precondition not met: {precondition.name}")
                return False
        return True

    def _precondition(self, precondition: Precondition) -> Generator[Effect, EffectResult, bool]:
        if precondition.api_call is not None:
            response = yield from self._call(precondition.api_call)
            self._variables.values[precondition.name] = response
            for capture in precondition.captures:
                if capture.expression is None:
                    value = criteria.value_at(response, capture.field)
                else:
                    members = response if isinstance(response, Mapping) else {}
                    value = self._variables.evaluated_in(members, capture.expression)
                self._variables.values[capture.name] = capture.default if value is None else value
        for comparison in precondition.comparisons:
            actual = self._variables.field(comparison.field)
            if not criteria.holds(comparison.operator, actual, comparison.value):
                return False
        return precondition.expression is None or self._variables.evaluated(precondition.expression) is True

    def _post(self, phase: ResourcePhase) -> Pipeline:
        """Build the payloads, then make the requests in order, until one fails."""
        step = ""
        status = None
        try:
            skipped = [name for name in self._payloads() if name]
            for action in self._task.post_actions:
                step = action.name
                body = action.api_call.body if action.api_call else ""
                is_left_out = any(reports.uses(body, name) for name in skipped)
                if is_left_out or action.api_call is None:
                    continue
                if action.when is not None and self._variables.evaluated(action.when) is not True:
                    continue
                reported = yield from self._send(action.api_call)
                status = reported or status
        except NotFound:
            # The resource was deleted meanwhile; the rest of the requests would fail the same way.
            return self._outcome(status)
        except _PASS_ERRORS as error:
            self._failed("post_actions", step, error)
            return self._outcome(status)
        if status is None:
            report = StatusReport(reason="NotReported", message="the task reports no status")
            status = outcomes.of_status_report(self._options.adapter, self._resource, works=phase.works, report=report)
        return self._outcome(status)

    def _payloads(self) -> list[str]:
        """Build all payloads; return the names of those that were skipped."""
        skipped = []
        for payload in self._task.payloads:
            if payload.when is not None and self._variables.evaluated(payload.when) is not True:
                skipped.append(payload.name)
                continue
            self._variables.values[payload.name] = as_payload(self._variables.built(payload.build))
        return skipped

    def _send(self, call: ApiCall) -> Steps:
        """Make a request; the status of the event's own resource is the kit's PutStatus. Returns that status."""
        path = api_paths.full_path(self._variables.rendered(call.url))
        if call.method != "PUT" or path != f"{api_paths.path_of(self._event)}/statuses":
            yield from self._call(call)
            return None
        status = reports.status_of(
            self._variables.rendered(call.body), adapter=self._options.adapter, is_deleting=self._is_deleting
        )
        yield PutStatus(self._event, self._resource, status)
        return status

    def _skip(self, reason: str) -> None:
        self._variables.adapter.update(resourcesSkipped=True, skipReason=reason)

    def _failed(self, phase: str, step: str, error: Exception) -> None:
        failure = classify(error) if isinstance(error, MaestroError) else _task_failure(error)
        self._failure = self._failure or failure
        details = {"phase": phase, "step": step, "message": failure.message}
        self._variables.adapter.update(
            executionStatus="failed", errorReason=failure.reason, errorMessage=failure.message
        )
        self._variables.adapter.setdefault("executionError", details)

    def _outcome(self, status: Any) -> EventOutcome:
        if status is None and self._failure is not None:
            status = failed(
                self._options.adapter,
                self._resource.generation,
                reason=self._failure.reason,
                message=self._failure.message,
                is_deleting=self._is_deleting,
            )
        notes = tuple(f"null is reported for {entry}" for entry in self._variables.missing)
        return EventOutcome(status=status, failure=self._failure, notes=notes)


def _task_failure(error: Exception) -> Failure:
    return Failure(reason=type(error).__name__, message=str(error), is_transient=False)
