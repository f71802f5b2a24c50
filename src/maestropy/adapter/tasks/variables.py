"""Hold the variables of one pass of a task, and resolve templates, expressions and params with them. Pure."""

from collections.abc import Mapping
from typing import Any

import orjson

from maestropy.adapter.decide.effects import Surroundings
from maestropy.adapter.event import Event
from maestropy.adapter.tasks.language import criteria, expressions, go_template
from maestropy.adapter.tasks.language.expressions import Expression
from maestropy.adapter.tasks.language.go_functions import shown
from maestropy.adapter.tasks.model import Param

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class ParamError(Exception):
    """A param has no value, or not one of its type."""


class Variables:
    """What the templates and expressions of a pass can read."""

    def __init__(
        self, event: Event, *, adapter: str, config: Mapping[str, Any], surroundings: Surroundings | None
    ) -> None:
        self.now = surroundings.now if surroundings else ""
        self._files = surroundings.files if surroundings else {}
        self.values: dict[str, Any] = {}
        """Params, captures and payloads."""
        self.resources: dict[str, Any] = {}
        """The objects that were read back."""
        self.states: dict[str, str] = {}
        self.missing: list[str] = []
        """The expressions of payloads whose data was missing, and why: null was written instead."""
        version = (config.get("adapter") or {}).get("version") or ""
        self.adapter: dict[str, Any] = {"name": adapter, "version": str(version)}
        """The adapter, and how the pass went."""
        self._built_in = {
            "config": dict(config),
            "env": dict(surroundings.variables) if surroundings else {},
            "event": _data_of(event),
        }

    def rendered(self, template: str) -> str:
        """Return the text of a template; raises TemplateError."""
        return go_template.render(template, {**self.values, "adapter": self.adapter, **self._built_in}, now=self.now)

    def evaluated(self, expression: Expression) -> Any:
        """Return the value of an expression; raises ExpressionError."""
        scope = {
            **self.values,
            **self._built_in,
            "adapter": self.adapter,
            "resources": self.resources,
            "resource_states": self.states,
        }
        return expressions.evaluate(expression, scope, now=self.now)

    def evaluated_in(self, members: Mapping[str, Any], expression: Expression) -> Any:
        """Return the value of an expression that sees only the members of an API response; raises ExpressionError."""
        return expressions.evaluate(expression, members, now=self.now)

    def holds(self, expression: Expression) -> bool:
        """Whether a lifecycle gate is open; one that cannot be evaluated is closed, as in HyperFleet."""
        try:
            return self.evaluated(expression) is True
        except expressions.ExpressionError:
            return False

    def field(self, path: str) -> Any:
        """Return the value at a path; None without one."""
        scope = {**self.values, **self._built_in, "adapter": self.adapter, "resources": self.resources}
        return criteria.value_at(scope, path)

    def built(self, value: Any) -> Any:
        """Return a payload: templates, `{expression: …}` and `{field: …, default: …}` replaced by their values."""
        if isinstance(value, str):
            return self.rendered(value)
        if isinstance(value, list):
            return [self.built(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if "expression" in value and set(value) <= {"expression", "default"}:
            return self._value_of(value)
        if "field" in value and set(value) <= {"field", "default"}:
            found = self.field(str(value["field"]))
            return value.get("default") if found is None else found
        return {str(name): self.built(member) for name, member in value.items()}

    def _value_of(self, entry: Mapping[str, Any]) -> Any:
        """Return the value of an expression in a payload; its default, or null, while its data does not exist."""
        try:
            value = self.evaluated(entry["expression"])
        except expressions.MissingData as error:
            value = None
            if "default" not in entry:
                self.missing.append(f"{' '.join(str(entry['expression']).split())}: {error}")
        return entry.get("default") if value is None else value

    def resolved(self, param: Param) -> Any:
        """Return the value of a param that needs no request; raises ParamError, or ExpressionError."""
        if param.expression is not None:
            return self.evaluated(param.expression)
        if param.file is not None:
            content = self._files.get(param.file.path)
            if content is None:
                raise ParamError(f"the file {param.file.path} cannot be read")
            return content.strip() if param.file.is_trimmed else content
        root, _, path = param.path.partition(".")
        scope = {**self.values, **self._built_in, "adapter": self.adapter}
        # A path without a known root is one of the event's data.
        found = criteria.value_at(scope, param.path) if root in scope else criteria.value_at(scope["event"], param.path)
        if found is None:
            raise ParamError(f"{param.path} has no value" if path or root in scope else f"{root} is not known")
        return found


def as_payload(value: Any) -> str:
    """Return a payload as the JSON text that templates and expressions see."""
    return orjson.dumps(value).decode()


def converted(value: Any, kind: str) -> Any:
    """Return a value as the type that a param declares; raises ParamError."""
    try:
        match kind:
            case "int" | "int64":
                return int(float(value)) if isinstance(value, str) and "." in value else int(value)
            case "float" | "float64":
                return float(value)
            case "bool":
                return _as_bool(value)
            case "string":
                return shown(value)
            case _:
                raise ParamError(f"unsupported type: {kind}")
    except (TypeError, ValueError) as error:
        raise ParamError(f"{value!r} cannot be converted to {kind}") from error


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool | int | float):
        return bool(value)
    if isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    raise ValueError(value)


def _data_of(event: Event) -> dict[str, Any]:
    known = {"id": event.resource_id, "kind": event.kind, "generation": event.generation, "href": event.href}
    return {**{name: value for name, value in known.items() if value}, **event.data}
