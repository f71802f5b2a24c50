"""Keep what an adapter asked and was answered, and answer the same again: for dry runs and tests without a fleet.

A recording is one JSON document: the event, and the answers in order. Works keep their status, so a run can be replayed
up to its last condition. Failures are kept by their kind and words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from maestropy.adapter import resource as resources
from maestropy.adapter.effects import Answer, Apply, Await, Delete, Effect, Fetch, Locate, Query, Tell
from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.event import Event
from maestropy.adapter.perform import Performs
from maestropy.adapter.resource import Resource
from maestropy.sdk import errors
from maestropy.sdk.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One run."""

    event: Mapping[str, Any]
    """The data of the event."""
    answers: tuple[Mapping[str, Any], ...] = ()

    def save(self, path: Path) -> None:
        """Write it to a file that only its owner can read: manifests may be Secrets."""
        path.touch(mode=0o600)
        path.write_bytes(orjson.dumps({"event": dict(self.event), "answers": self.answers}, option=orjson.OPT_INDENT_2))

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read it from a file."""
        try:
            found = orjson.loads(path.read_bytes())
            return cls(event=dict(found["event"]), answers=tuple(dict(each) for each in found["answers"]))
        except OSError as error:
            raise BadAdapter(f"the recording {path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BadAdapter(f"{path} is no recording; make one with `maestro adapter run --record`") from error


@dataclass(slots=True)
class Recorder:
    """Passes effects on and remembers the answers."""

    inner: Performs
    event: Event
    answers: list[dict[str, Any]] = field(default_factory=list)

    async def perform(self, effect: Effect) -> Answer:
        """Carry one effect out and keep the answer."""
        entry: dict[str, Any] = {"effect": name_of(effect)}
        self.answers.append(entry)
        try:
            answer = await self.inner.perform(effect)
        except errors.MaestroError as error:
            entry["error"] = {"kind": type(error).__name__, "reason": error.reason, "doing": error.doing}
            raise
        entry["answer"] = _plain(answer)
        return answer

    def recording(self) -> Recording:
        """Return what was kept so far."""
        return Recording(event=self.event.data, answers=tuple(self.answers))


def name_of(effect: Effect) -> str:
    """Return what an effect is called in a recording."""
    return type(effect).__name__.lower()


def answer_in(entry: Mapping[str, Any], *, event: Event) -> Answer:
    """Return the answer that a recording holds, or raise the failure it holds."""
    failed = entry.get("error")
    if failed:
        kind = getattr(errors, str(failed.get("kind")), errors.ServerError)
        raise kind(str(failed.get("reason")), doing=str(failed.get("doing") or ""))
    return _READERS[entry["effect"]](entry.get("answer"), event)


def _plain(answer: Answer) -> Any:
    if isinstance(answer, Resource):
        return answer.raw
    if isinstance(answer, Work):
        return {"work": answer.to_dict(), "observed_version": answer.observed_version}
    if isinstance(answer, Sequence) and not isinstance(answer, str):
        return [_plain(each) for each in answer]
    return answer


def _work(body: Mapping[str, Any]) -> Work:
    return Work.wrap(Work.from_dict(body["work"]).manifest_work, observed_version=int(body["observed_version"]))


def _works(body: Any, _: Event) -> list[Work]:
    return [_work(each) for each in body or ()]


_READERS = {
    name.__name__.lower(): read
    for name, read in (
        (Fetch, lambda body, event: None if body is None else resources.parse(body, event)),
        (Locate, lambda body, _: str(body)),
        (Query, _works),
        (Apply, lambda body, _: _work(body)),
        (Await, _works),
        (Delete, lambda _, __: None),
        (Tell, lambda _, __: None),
    )
}
