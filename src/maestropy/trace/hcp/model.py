"""Values of the report: facts with their age, hops with their state, contradictions, and the verdict."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from maestropy.trace.hcp import reading
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.question import Answer, Document, Outcome, Question, Taken, Topic
from maestropy.trace.output import Evidence, Exit


class State(StrEnum):
    """How a hop is."""

    OK = "ok"
    BEHIND = "behind"
    """Not there yet: it works on it, or it waits for a later hop."""
    BAD = "bad"
    """It will not get there by itself."""
    UNKNOWN = "unknown"
    """It could not be seen. Never a reproach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing a hop says about itself."""

    name: str
    value: str
    since: datetime | None = None
    """Since when it is so, or when it was written."""
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known of one hop."""

    name: str
    state: State
    reason: str
    """One sentence."""
    code: str = ""
    """Of the reason, empty if all is well."""
    waits: bool = False
    """Whether it only waits for a later hop, so that the cause is to be looked for there."""
    facts: tuple[Fact, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    """Worth telling, without being the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two hops that cannot both be right, or were not seen at the same time."""

    code: str
    says: str
    between: tuple[str, ...]
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """Who would bring back what, if it were deleted now."""

    who: str
    what: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where it hangs, and why."""

    hop: str
    state: State
    code: str
    reason: str
    evidence: tuple[Evidence, ...]
    deleting: bool
    contradictions: tuple[Contradiction, ...]
    recreations: tuple[Recreation, ...]
    next: tuple[str, ...]
    """Commands ready to paste."""
    exit: Exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything that was learnt, for hops to judge by."""

    known: Known
    answers: Mapping[Question, Answer]
    taken: Taken

    def documents(self, topic: Topic) -> tuple[Document, ...]:
        """Return all that was said about a topic, each saying once."""
        unique: dict[object, Document] = {}
        for answer in self.about(topic):
            for each in answer.documents:
                unique.setdefault(_key(each), each)
        return tuple(unique.values())

    def about(self, topic: Topic) -> list[Answer]:
        """Return the answers to all questions about a topic."""
        return [answer for question, answer in self.answers.items() if question.topic is topic]

    def outcome(self, topic: Topic) -> Outcome:
        """Return how asking about a topic ended; something found counts more than something not seen."""
        outcomes = {answer.outcome for answer in self.about(topic)}
        return next((each for each in (Outcome.FOUND, Outcome.UNKNOWN, Outcome.ABSENT) if each in outcomes), _UNASKED)

    def why(self, topic: Topic, *, unasked: str) -> str:
        """Return why nothing is known of a topic."""
        return next((answer.why for answer in self.about(topic) if answer.why), unasked)

    def age(self, since: datetime | None) -> timedelta | None:
        """Return how long ago something was."""
        return self.taken.now - since if since else None

    def is_older(self, since: datetime | None, minutes: int) -> bool:
        """Whether something is known to be older than that."""
        return since is not None and self.taken.now - since > timedelta(minutes=minutes)

    def notes(self, *topics: Topic) -> tuple[str, ...]:
        """Return what else is to be told about topics."""
        answers = [answer for topic in topics for answer in self.about(topic)]
        return tuple(dict.fromkeys(note for answer in answers for note in (*answer.notes, *answer.disagreements)))


_UNASKED = Outcome.UNKNOWN


def _key(document: Document) -> object:
    """Return what tells things of one topic apart; the same thing may have been asked for in two ways."""
    value = document.value
    named = (reading.namespace(value), reading.name(value), *(reading.text(value, key) for key in ("id", "resourceID")))
    return named if any(named) else id(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A finished walk."""

    scene: Scene
    hops: tuple[Report, ...]
    verdict: Verdict

    def hop(self, name: str) -> Report:
        """Return one hop."""
        return next(each for each in self.hops if each.name == name)


def since_text(age: timedelta | None) -> str:
    """Write how long something has been so: `46s`, `3m`, `2h10m`, `87d`."""
    if age is None:
        return ""
    seconds = int(age.total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds < 60:
        return f"{seconds}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 48:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d"
