"""Hold a task as values: params, preconditions, resources, payloads and post-actions. Pure.

`of_document` expects a task without load errors; expressions are CEL, or Python functions in a converted adapter.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from maestropy.adapter.tasks.language.expressions import Expression
from maestropy.adapter.tasks.load import literals
from maestropy.adapter.tasks.load.literals import ObjectKind
from maestropy.adapter.tasks.load.structure import Entry, at, entries

_ENVIRONMENT = re.compile(r"\benv\.\??(\w+)")
_GENERATION_PATH = r".metadata.annotations.hyperfleet\.io/generation"
GENERATION_RULE = "generation"
"""The name of the feedback rule for the generation annotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """A request to the HyperFleet API; url, body and header values are templates."""

    method: str
    url: str
    body: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    timeout: str = ""
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """A file that is read for every event."""

    path: str
    is_trimmed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A variable; exactly one source is set."""

    name: str
    path: str = ""
    """`event.id`, `env.NAME`, `config.a.b`, or a member of an earlier param."""
    api_call: ApiCall | None = None
    expression: Expression | None = None
    file: FileSource | None = None
    type: str = ""
    default: Any = None
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """A value of an API response."""

    name: str
    field: str = ""
    expression: Expression | None = None
    default: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One condition of a precondition."""

    field: str
    operator: str
    value: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Precondition:
    """What must hold before resources are applied."""

    name: str
    api_call: ApiCall | None = None
    captures: tuple[Capture, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    expression: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResource:
    """An object on a cluster."""

    name: str
    manifest: Any
    """An object or a text, with templates."""
    kind: ObjectKind
    transport: str = ""
    """The name of a transport; empty for the local one."""
    create_when: Expression | None = None
    delete_when: Expression | None = None
    propagation_policy: str = ""
    feedback: Mapping[str, str] = field(default_factory=dict)
    """What is read back from the object, by rule: the fields that expressions use, and the generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A JSON document that post-actions send."""

    name: str
    build: Any
    when: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PostAction:
    """A request at the end of a pass."""

    name: str
    api_call: ApiCall | None = None
    when: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A whole task."""

    params: tuple[Param, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    resources: tuple[TaskResource, ...] = ()
    payloads: tuple[Payload, ...] = ()
    post_actions: tuple[PostAction, ...] = ()
    variables: tuple[str, ...] = ()
    """The environment variables it uses."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files it reads for every event."""
        return tuple(param.file.path for param in self.params if param.file is not None)


def of_document(document: Entry) -> Task:
    """Return the task of a document without load errors."""
    post = document.get("post") or {}
    texts = list(_texts(document))
    return Task(
        params=tuple(_param(entry) for _, entry in entries(document, "params")),
        preconditions=tuple(_precondition(entry) for _, entry in entries(document, "preconditions")),
        resources=tuple(_resource(entry, texts) for _, entry in entries(document, "resources")),
        payloads=tuple(
            Payload(name=entry["name"], build=entry["build"], when=at(entry, "when", "expression"))
            for _, entry in entries(post, "payloads")
        ),
        post_actions=tuple(
            PostAction(name=entry["name"], api_call=_call(entry.get("api_call")), when=at(entry, "when", "expression"))
            for _, entry in entries(post, "post_actions")
        ),
        variables=tuple(sorted({name for text in texts for name in _ENVIRONMENT.findall(text)})),
    )


def _param(entry: Entry) -> Param:
    source = entry["source"]
    mapped = source if isinstance(source, Mapping) else {}
    file = mapped.get("file")
    return Param(
        name=entry["name"],
        path="" if mapped else str(source),
        api_call=_call(mapped.get("api_call")),
        expression=mapped.get("expression"),
        file=FileSource(path=file["path"], is_trimmed=file.get("trim", True)) if file else None,
        type=str(entry.get("type") or ""),
        default=entry.get("default"),
        is_required=bool(entry.get("required")),
    )


def _call(entry: Any) -> ApiCall | None:
    if not isinstance(entry, Mapping):
        return None
    headers = tuple((str(header.get("name")), str(header.get("value"))) for _, header in entries(entry, "headers"))
    return ApiCall(
        method=entry["method"],
        url=entry["url"],
        body=str(entry.get("body") or ""),
        headers=headers,
        timeout=str(entry.get("timeout") or ""),
        attempts=int(entry.get("retry_attempts") or 0),
    )


def _precondition(entry: Entry) -> Precondition:
    return Precondition(
        name=entry["name"],
        api_call=_call(entry.get("api_call")),
        captures=tuple(
            Capture(
                name=capture["name"],
                field=str(capture.get("field") or ""),
                expression=capture.get("expression"),
                default=capture.get("default"),
            )
            for _, capture in entries(entry, "capture")
        ),
        comparisons=tuple(
            Comparison(
                field=str(condition.get("field") or ""),
                operator=condition["operator"],
                value=condition.get("value") if condition.get("value") is not None else condition.get("values"),
            )
            for _, condition in entries(entry, "conditions")
        ),
        expression=entry.get("expression"),
    )


def _resource(entry: Entry, texts: list[str]) -> TaskResource:
    kind = literals.kind_of(entry["manifest"])
    assert isinstance(kind, ObjectKind)
    return TaskResource(
        name=entry["name"],
        manifest=entry["manifest"],
        kind=kind,
        transport=str(entry.get("transport") or ""),
        create_when=at(entry, "lifecycle", "create", "when", "expression"),
        delete_when=at(entry, "lifecycle", "delete", "when", "expression"),
        propagation_policy=str(at(entry, "lifecycle", "delete", "propagationPolicy") or ""),
        feedback=_feedback(entry["name"], texts),
    )


def _feedback(name: str, texts: list[str]) -> dict[str, str]:
    """Return the feedback rules of a resource: what expressions read of it."""
    pattern = re.compile(rf"\bresources\s*\.\??\s*{name}\s*\.\??\s*(\w+)(?:\s*\.\??\s*(\w+))?")
    rules = {"status": ".status", GENERATION_RULE: _GENERATION_PATH}
    for text in texts:
        for top, second in pattern.findall(text):
            if top == "metadata" and second not in ("name", "namespace", "annotations", ""):
                rules[f"metadata.{second}"] = f".metadata.{second}"
            elif top not in ("metadata", "apiVersion", "kind", "hasValue", "orValue"):
                rules[top] = f".{top}"
    return rules


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
