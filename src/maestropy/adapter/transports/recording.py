"""Record the effects of an adapter and their results, and replay them: for dry runs and tests without a fleet.

A recording is one JSON document: the event, and the results in order. Works keep their status, so a run can be replayed
up to its last condition. A failure is recorded with its class and its message. Of files that a task reads, such as
tokens, only the names are recorded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from maestropy.adapter import resource as resources
from maestropy.adapter.decide import deviation, effects
from maestropy.adapter.decide.effects import Apply, Await, Delete, Effect, EffectResult, Fetch, Locate, PutStatus, Query
from maestropy.adapter.errors import BadAdapter, Interrupted
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource
from maestropy.adapter.transports.performer import Performer
from maestropy.sdk import errors
from maestropy.sdk.work import Work
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected
from maestropy.wire import errors as wire_errors

_RECORDING_BYTES = 64 * files.MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The recording of one run."""

    event: Mapping[str, Any]
    """The data of the event."""
    answers: tuple[Mapping[str, Any], ...] = ()

    @property
    def writes(self) -> list[deviation.Write]:
        """What the run changed and reported; a recording of an earlier version does not tell."""
        noted = [entry["write"] for entry in self.answers if isinstance(entry.get("write"), Mapping)]
        return [deviation.Write(summary=str(write.get("summary")), digest=str(write.get("digest"))) for write in noted]

    def save(self, path: Path) -> None:
        """Write it to a file that only its owner can read: manifests may be Secrets."""
        path.touch(mode=0o600)
        path.write_bytes(orjson.dumps({"event": dict(self.event), "answers": self.answers}, option=orjson.OPT_INDENT_2))

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read it from a file."""
        try:
            document = orjson.loads(files.read(path, most=_RECORDING_BYTES))
            loaded = cls(event=dict(document["event"]), answers=tuple(dict(entry) for entry in document["answers"]))
        except InputRejected as error:
            raise BadAdapter(str(error)) from error
        except OSError as error:
            raise BadAdapter(f"the recording {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BadAdapter(f"{path} is not a recording; create one with `maestro adapter run --record`") from error
        for index, entry in enumerate(loaded.answers):
            if problem := _problem(entry):
                raise BadAdapter(f"the recording {path} is damaged: answers[{index}]: {problem}; record the run again")
        return loaded


@dataclass(slots=True)
class Recorder:
    """Passes effects on and records their results."""

    inner: Performer
    event: Event
    answers: list[dict[str, Any]] = field(default_factory=list)

    async def perform(self, effect: Effect) -> EffectResult:
        """Carry one effect out and record its result."""
        entry: dict[str, Any] = {"effect": name_of(effect)}
        write = deviation.write_of(effect)
        if write is not None:
            entry["write"] = {"summary": write.summary, "digest": write.digest}
        self.answers.append(entry)
        try:
            result = await self.inner.perform(effect)
        except errors.MaestroError as error:
            entry["error"] = {"kind": type(error).__name__, "reason": error.reason, "doing": error.doing}
            raise
        except Interrupted as error:
            entry["error"] = {"kind": Interrupted.__name__, "reason": str(error)}
            raise
        entry["answer"] = _plain(result)
        return result

    def recording(self) -> Recording:
        """Return the recording so far."""
        return Recording(event=self.event.data, answers=tuple(self.answers))


def name_of(effect: Effect) -> str:
    """Return the name of an effect in a recording."""
    return type(effect).__name__.lower()


def recorded_result(entry: Mapping[str, Any], *, event: Event) -> EffectResult:
    """Return the recorded result, or raise the recorded failure."""
    failed = entry.get("error")
    if failed and failed.get("kind") == Interrupted.__name__:
        raise Interrupted(str(failed.get("reason")))
    if failed:
        kind = getattr(errors, str(failed.get("kind")), errors.ServerError)
        raise kind(str(failed.get("reason")), doing=str(failed.get("doing") or ""))
    return _READERS[entry["effect"]](entry.get("answer"), event)


def _plain(result: EffectResult) -> Any:
    if isinstance(result, Resource):
        return result.raw
    if isinstance(result, Work):
        return {"work": result.to_dict(), "observed_version": result.observed_version}
    if isinstance(result, effects.Surroundings):
        return {"now": result.now, "variables": dict(result.variables), "files": dict.fromkeys(result.files, "")}
    if isinstance(result, Sequence) and not isinstance(result, str):
        return [_plain(item) for item in result]
    return result


def _work(body: Mapping[str, Any]) -> Work:
    return Work.wrap(Work.from_dict(body["work"]).manifest_work, observed_version=int(body["observed_version"]))


def _problem(entry: Mapping[str, Any]) -> str:
    """Return why an entry cannot be replayed; empty if it can."""
    effect, failed = entry.get("effect"), entry.get("error")
    if effect not in _READERS:
        return f"there is no effect {effect!r}"
    if failed is not None:
        is_failure = isinstance(failed, Mapping) and all(isinstance(value, str) for value in failed.values())
        return "" if is_failure and failed.get("kind") in _FAILURES else "its error is malformed"
    # An effect that was interrupted has neither an answer nor an error.
    if "answer" not in entry:
        return ""
    answer = entry["answer"]
    is_well_formed = _ANSWERS.get(effect, lambda _: True)
    try:
        return "" if is_well_formed(answer) else f"its answer is malformed for the effect {effect}"
    except (errors.MaestroError, wire_errors.WireError, KeyError, TypeError, ValueError):
        return f"its answer is malformed for the effect {effect}"


def _is_work(body: Any) -> bool:
    return isinstance(body, Mapping) and isinstance(_work(body), Work)


def _are_works(body: Any) -> bool:
    return isinstance(body, list) and all(map(_is_work, body))


_FAILURES = frozenset({Interrupted.__name__, *(name for name in vars(errors) if name[:1].isupper())})
_ANSWERS: Mapping[str, Callable[[Any], bool]] = {
    "fetch": lambda body: body is None or isinstance(body, Mapping),
    "locate": lambda body: isinstance(body, str),
    "query": _are_works,
    "apply": _is_work,
    "await": _are_works,
    "delete": lambda body: body is None,
    "putstatus": lambda body: body is None,
    "readsurroundings": lambda body: isinstance(effects.Surroundings(**body), effects.Surroundings),
}
"""What an answer of each effect has to be; that of a call of the API may be any JSON."""


def _works(body: Any, _: Event) -> list[Work]:
    return [_work(item) for item in body or ()]


_READERS = {
    name.__name__.lower(): read
    for name, read in (
        (Fetch, lambda body, event: None if body is None else resources.parse(body, event)),
        (Locate, lambda body, _: str(body)),
        (Query, _works),
        (Apply, lambda body, _: _work(body)),
        (Await, _works),
        (Delete, lambda _, __: None),
        (PutStatus, lambda _, __: None),
        (effects.CallApi, lambda body, _: body),
        (effects.ReadSurroundings, lambda body, _: effects.Surroundings(**body)),
    )
}
