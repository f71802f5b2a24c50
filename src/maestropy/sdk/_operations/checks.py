"""Check the arguments of operations before anything is sent. Pure."""

import sys
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import quote

from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire import json_values, kubernetes_names

_SHOWN: Final = 80
"""Characters of a wrong name in an error."""


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


def path_segment(value: str, *, name: str, doing: str) -> str:
    """Return an ID or a name as one segment of a path; raises Invalid for one that no server can route."""
    usable({name: value}, doing=doing)
    if value in ("", ".", "..") or "/" in value or not value.isprintable():
        # A client or a proxy would resolve `..` and `%2f` to another path.
        shown = f"{value[:_SHOWN]!a}"
        raise Invalid(
            f"{name} {shown} is no ID or name: it is empty, has a slash or control characters, or is dots", doing=doing
        )
    return quote(value, safe="")


def is_work(work: object) -> None:
    """Raise Invalid for an object that is no Work."""
    if not isinstance(work, Work):
        raise Invalid(f"the work is of type {type(work).__name__}", advice='give a Work: Work("name").add(manifest)')


def timeout_seconds(seconds: object, *, doing: str) -> None:
    """Raise Invalid for a timeout that is no number of seconds; None means without end."""
    if seconds is None:
        return
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 <= cast("float", seconds) <= sys.float_info.max:
        shown = (
            "an integer of many digits" if isinstance(seconds, int) and seconds > sys.float_info.max else repr(seconds)
        )
        raise Invalid(f"timeout is {shown}", doing=doing, advice="give 0 seconds or more; None waits without end")


def wait_condition(condition: object, *, doing: str) -> None:
    """Raise Invalid for what is neither the type of a condition nor a predicate."""
    if not (isinstance(condition, str) and condition) and not callable(condition):
        raise Invalid(
            f"condition is {condition!r}",
            doing=doing,
            advice='give a type such as "Available", or a function of the work',
        )
