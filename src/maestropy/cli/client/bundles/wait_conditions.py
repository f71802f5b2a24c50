"""Parse what `wait --for` waits for, and decide whether a resource bundle has reached it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from maestropy.cli.client import formats
from maestropy.cli.errors import UsageError

if TYPE_CHECKING:
    from maestropy.sdk.work import Work
    from maestropy.wire.works.status import Condition

_FORMS = "condition=TYPE, condition=TYPE=STATUS, delete, or jsonpath='{PATH}'=VALUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGoal:
    """What a resource bundle must reach."""

    kind: Literal["condition", "delete", "jsonpath"]
    name: str = ""
    """The type of the condition, or the JSONPath."""
    value: str = ""

    def is_met(self, bundle: Mapping[str, Any]) -> bool:
        """Return whether a resource bundle that still exists has reached it, in its current version."""
        from maestropy.sdk.work import Work

        if self.kind == "jsonpath":
            return formats.by_jsonpath(self.name, bundle) == self.value
        work = Work.from_resource_bundle(bundle)
        condition = _condition(work, self.name)
        return (
            self.kind == "condition" and condition is not None and condition.status == self.value and not work.is_stale
        )

    def missing(self, bundle: Mapping[str, Any]) -> str:
        """Return why it is not reached."""
        from maestropy.sdk._operations import summary
        from maestropy.sdk.work import Work
        from maestropy.wire.works import status

        work = Work.from_resource_bundle(bundle)
        if self.kind == "jsonpath":
            return f"{self.name} is {formats.by_jsonpath(self.name, bundle)!r}, not {self.value!r}"
        if self.kind == "delete":
            if work.condition(status.DATA_SAFETY_HOLD) is not None:
                return f"{summary.sentence(work)}; see docs/data-safety.md"
            if not (work.is_deleting or bundle.get("deleted_at")):
                return "nobody has requested its deletion; do so with `maestro resourcebundle delete`"
            return summary.deletion_progress(work) or "check that its agent runs"
        condition = _condition(work, self.name)
        applied = work.condition(status.APPLIED)
        if self.value == status.TRUE and applied and applied.status == status.FALSE and not work.is_stale:
            return summary.missing(work, status.APPLIED)  # the cause of all that is missing after it
        if condition is None and work.is_reported and not work.is_stale:
            known = summary.reported_conditions(work, self.name)
            return f"the agent has not reported the condition {self.name} yet; {known}"
        if self.value == status.TRUE or condition is None or work.is_stale:
            return summary.missing(work, condition.type if condition else self.name)
        return f"{condition.type} is {condition.status}"


def _condition(work: "Work", name: str) -> "Condition | None":
    """Return the condition of this type; upper and lower case are equal, as for kubectl."""
    return next((condition for condition in work.conditions if condition.type.lower() == name.lower()), None)


def parse(text: str) -> WaitGoal:
    """Parse the value of `--for`; raises UsageError."""
    kind, _, rest = text.partition("=")
    if text == "delete":
        return WaitGoal(kind="delete")
    if kind == "condition" and rest:
        name, equals, value = rest.partition("=")
        if name and (value or not equals):
            return WaitGoal(kind="condition", name=name, value=value.capitalize() or "True")
    if kind == "jsonpath":
        path, equals, value = rest.rpartition("=")
        # The last equals sign may be part of a filter.
        if equals and path.count("{") == path.count("}") and path.strip("'\""):
            formats.parse(f"jsonpath={path}")
            return WaitGoal(kind="jsonpath", name=path, value=value)
    raise UsageError(f"--for={text}: write {_FORMS}")
