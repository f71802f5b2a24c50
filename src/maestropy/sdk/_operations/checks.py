"""Check the arguments of operations before anything is sent. Pure."""

from collections.abc import Mapping

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire import json_values, kubernetes_names


def usable(arguments: Mapping[str, object], *, doing: str) -> None:
    """Raise Invalid for names that are not strings, or that have no UTF-8."""
    problems = [
        f"{name} is of type {type(value).__name__}: give a string"
        for name, value in arguments.items()
        if not isinstance(value, str)
    ]
    problems += json_values.problems(arguments)
    if problems:
        raise Invalid(kubernetes_names.join(problems), doing=doing)


def is_work(work: object) -> None:
    """Raise Invalid for an object that is no Work."""
    if not isinstance(work, Work):
        raise Invalid(f"the work is of type {type(work).__name__}", advice='give a Work: Work("name").add(manifest)')
