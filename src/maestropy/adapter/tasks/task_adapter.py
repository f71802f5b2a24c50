"""Define an adapter by a HyperFleet task: what `maestro adapter convert` writes.

    adapter = TaskAdapter("two-resources")
    adapter.param("clusterId", source="event.id", required=True)
    adapter.resource("space", manifest={...}, discovery={...})
    adapter.payload("report", build={...})
    adapter.post_action("send", api_call={"method": "PUT", ...})

The arguments are the fields of the task. Texts are Go templates and expressions are CEL, as there; an expression may
also be a Python function of the variables.
"""

from collections.abc import Mapping
from typing import Any

from maestropy.adapter.decide.pipeline import Pipeline, PipelineOptions
from maestropy.adapter.definition import Adapter
from maestropy.adapter.desired_state import Handler, HandlerResult
from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.tasks import model, objects, passes
from maestropy.adapter.tasks.load import routing, task_file
from maestropy.adapter.tasks.load.problems import LoadProblem
from maestropy.adapter.tasks.model import Task
from maestropy.sdk.targeting import Target

_KINDS = ("Cluster", "NodePool")


class TaskAdapter(Adapter):
    """An adapter whose passes follow a task."""

    def __init__(
        self,
        name: str,
        *,
        target: Target | None = None,
        target_clusters: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Define it; `target_clusters` are templates of consumers by transport, `config` is the deployment file."""
        super().__init__(name, target=target)
        self._target_clusters = dict(target_clusters or {})
        settings = dict(config or {})
        self._config = {**settings, "adapter": {"name": name, **(settings.get("adapter") or {})}}
        self._document: dict[str, Any] = {"schema_version": routing.VERSION}
        self._task: Task | None = None

    def param(self, name: str, **fields: Any) -> None:
        """Add a param."""
        self._add("params", name, fields)

    def precondition(self, name: str, **fields: Any) -> None:
        """Add a precondition."""
        self._add("preconditions", name, fields)

    def resource(self, name: str, **fields: Any) -> None:
        """Add a resource; resources are applied in this order."""
        self._add("resources", name, fields)

    def payload(self, name: str, **fields: Any) -> None:
        """Add a payload."""
        self._add("payloads", name, fields, within="post")

    def post_action(self, name: str, **fields: Any) -> None:
        """Add a post-action."""
        self._add("post_actions", name, fields, within="post")

    @property
    def problems(self) -> list[LoadProblem]:
        """What HyperFleet's loader would report about the task; every transport it names counts as declared."""
        transports: dict[str, dict[str, Any]] = {name: {} for name in self._transports()}
        return task_file.check(self._document, deployment_file={"transports": transports})

    @property
    def task(self) -> Task:
        """The task; raises BadAdapter with every load error."""
        if self._task is None:
            errors = [str(problem) for problem in self.problems if problem.level == "error"]
            if errors:
                raise BadAdapter(f"the task of adapter {self.name!r} has {len(errors)} errors: {' | '.join(errors)}")
            self._task = model.of_document(self._document)
            names = [objects.work_name("", resource, "") for resource in self._task.resources]
            if len(set(names)) != len(names):
                raise BadAdapter("two resources of the task differ only in case or underscores; rename one")
        return self._task

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of resources; a task takes the events of every kind."""
        return _KINDS

    def declared_kind(self, kind: str) -> str:
        """Return a kind as the API spells it."""
        return next((name for name in _KINDS if name.lower() == kind.lower()), kind)

    def handler(self, kind: str) -> Handler:
        """Return what is called instead of a handler: a task has none."""

        def none(_: Event, __: Resource) -> HandlerResult:
            raise BadAdapter(f"adapter {self.name!r} is a task, and has no function for {kind}")

        return none

    def steps(self, event: Event, options: PipelineOptions) -> Pipeline:
        """Return the effects of one pass."""
        pass_options = passes.PassOptions(
            adapter=self.name,
            config=self._config,
            target_clusters=self._target_clusters,
            seconds=options.wait_seconds or options.settle_seconds,
        )
        return passes.run(self.task, event, pass_options)

    def _transports(self) -> list[str]:
        return [
            str(resource["transport"]) for resource in self._document.get("resources", ()) if "transport" in resource
        ]

    def _add(self, section: str, name: str, fields: Mapping[str, Any], *, within: str = "") -> None:
        parent = self._document.setdefault(within, {}) if within else self._document
        parent.setdefault(section, []).append({"name": name, **fields})
        self._task = None
