"""Check what an author's functions return, before anything is done with it.

A wrong result is an error that names the function, its file and its line, and says what it must return. Pure.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Never

from maestropy.adapter.decide.failure import call
from maestropy.adapter.desired_state import DesiredState, Handler, NotReady, ObservedState, Read, StatusReport
from maestropy.adapter.errors import BadAdapter, BadReport
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.sdk.work import Work
from maestropy.wire.works.status import Condition

_DEEPEST = 100
"""Nested levels of data; the readers of a status accept some more."""
_INTEGERS = range(-(2**63), 2**64)


def desired(handler: Handler, event: Event, resource: Resource) -> DesiredState | StatusReport | NotReady:
    """Call a handler; raises BadAdapter and BadReport, and whatever the handler raises."""
    result = call(handler, event, resource)
    if isinstance(result, NotReady):
        return result
    if isinstance(result, StatusReport):
        return _checked(result, handler)
    state = result if isinstance(result, DesiredState) else DesiredState(result)
    # Also a generator of works is the author's code.
    works = call(_works, state.works)
    if works is None:
        raise BadAdapter(
            f"{location(handler)} returned {_named(state.works)}; return a DesiredState, a Work, a list of Works, a "
            "StatusReport or NotReady"
        )
    names = [work.name for work in works]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise BadAdapter(
            f"{location(handler)} returned several works with one name: {', '.join(twice)}; give each its own name"
        )
    return replace(state, works=works)


def report(read: Read, observed: ObservedState) -> StatusReport:
    """Call a `read`; raises BadAdapter and BadReport, and whatever it raises."""
    result: object = call(read, observed)
    if not isinstance(result, StatusReport):
        raise BadAdapter(f"{location(read)} returned {_named(result)}; return a StatusReport")
    return _checked(result, read)


def location(function: Callable[..., Any]) -> str:
    """Return the name of an author's function, with its file and its first line."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    return f"{name} ({code.co_filename}, line {code.co_firstlineno})" if code else str(name)


def _works(works: object) -> tuple[Work, ...] | None:
    if isinstance(works, Work):
        return (works,)
    if isinstance(works, str | bytes | Mapping) or not isinstance(works, Iterable):
        return None
    listed = tuple(works)
    return listed if all(isinstance(work, Work) for work in listed) else None


def _named(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        wrong = next((item for item in value if not isinstance(item, Work)), None)
        return f"a {type(value).__name__} with {_named(wrong)}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _checked(result: StatusReport, function: Callable[..., Any]) -> StatusReport:
    """Return a report whose data is plain JSON; raises BadReport, which names the field."""
    where = location(function)
    if not isinstance(result.available, bool | Condition | Mapping | None):
        raise BadReport(
            f"available of the StatusReport of {where} is {_named(result.available)}; give True, False, None, a "
            "condition, or the status of an object"
        )
    if not isinstance(result.health, Condition | None):
        raise BadReport(f"health of the StatusReport of {where} is {_named(result.health)}; give a Condition, or None")
    if not isinstance(result.data, Mapping):
        raise BadReport(f"data of the StatusReport of {where} is {_named(result.data)}; give a dict")
    return replace(result, data=_plain(result.data, path=("data",), where=where))


def _plain(value: Any, *, path: tuple[str, ...], where: str) -> Any:
    """Return a value as JSON holds it; raises BadReport for what it cannot hold."""
    if len(path) > _DEEPEST:
        _refuse(path[:3], f"has more than {_DEEPEST} levels, or contains itself", where=where)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not _is_text(key):
                _refuse(path, f"has the key {ascii(key)[:64]}, which is not a text", where=where)
        return {key: _plain(inner, path=(*path, key), where=where) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, path=(*path, str(number)), where=where) for number, inner in enumerate(value)]
    if isinstance(value, str) and not _is_text(value):
        _refuse(path, "holds half a surrogate pair, which is not a character", where=where)
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(path, f"is {value}, which JSON does not have", where=where)
    if isinstance(value, int) and value not in _INTEGERS:
        _refuse(path, "is a number of more than 64 bits", where=where)
    if not isinstance(value, str | int | float | None):
        _refuse(path, f"is {_named(value)}, which JSON does not have", where=where)
    return value


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def _refuse(path: tuple[str, ...], problem: str, *, where: str) -> Never:
    field = ascii(".".join(path))[1:-1][:128]
    raise BadReport(f"{field} of the StatusReport of {where} {problem}; give texts, numbers, lists and dicts")
