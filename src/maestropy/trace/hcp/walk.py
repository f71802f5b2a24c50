"""The walk: ask what can be asked, learn names from the answers, ask on, until nothing is left to ask; then judge.

`steps` is pure: it yields rounds of questions and is sent their answers, so hops whose inputs are known are asked at
the same time. `run` is the one stage that awaits somebody who answers.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from maestropy.trace.hcp import verdict
from maestropy.trace.hcp.hops import (
    agent,
    backend,
    clusters_service,
    control_plane,
    frontend,
    hosted_cluster,
    maestro,
    managed_cluster,
    node_pools,
    shard,
    works,
)
from maestropy.trace.hcp.identity import Known
from maestropy.trace.hcp.model import Report, Scene, Walk
from maestropy.trace.hcp.question import Answer, Document, Question, Taken, Topic

Questions = Sequence[Question]
Answers = Sequence[Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One stop of the walk."""

    name: str
    asks: Callable[[Known], Iterable[Question]]
    learns: Callable[[Known, Iterable[tuple[Topic, Document]]], Known]
    judge: Callable[[Scene], Report]


class Answerer(Protocol):
    """Whoever knows: a directory, or services and clusters."""

    async def answer(self, questions: Questions) -> Answers:
        """Answer each question, in order. Never raises for one of them: what cannot be found out is unknown."""
        ...


HOPS: Sequence[Hop] = tuple(
    Hop(name=each.NAME, asks=each.asks, learns=each.learns, judge=each.judge)
    for each in (
        frontend,
        backend,
        clusters_service,
        shard,
        maestro,
        agent,
        works,
        hosted_cluster,
        control_plane,
        managed_cluster,
        node_pools,
    )
)


def steps(known: Known, *, taken: Taken, hops: Sequence[Hop] = HOPS) -> Generator[Questions, Answers, Walk]:
    """Yield rounds of questions, receive their answers, return the finished walk."""
    answers: dict[Question, Answer] = {}
    while new := [each for each in dict.fromkeys(_wanted(known, hops)) if each not in answers]:
        told = yield new
        answers |= dict(zip(new, told, strict=True))
        known = _learn(known, answers, hops=hops)
    scene = Scene(known=known, answers=answers, taken=taken)
    reports = tuple(hop.judge(scene) for hop in hops)
    return Walk(scene=scene, hops=reports, verdict=verdict.decide(scene, reports))


async def run(known: Known, *, answerer: Answerer, taken: Taken, hops: Sequence[Hop] = HOPS) -> Walk:
    """Walk with somebody who answers."""
    walking = steps(known, taken=taken, hops=hops)
    told: Answers | None = None
    while True:
        try:
            questions = next(walking) if told is None else walking.send(told)
        except StopIteration as end:
            finished: Walk = end.value
            return finished
        told = await answerer.answer(questions)


def _wanted(known: Known, hops: Sequence[Hop]) -> Iterable[Question]:
    for hop in hops:
        yield from hop.asks(known)


def _learn(known: Known, answers: dict[Question, Answer], *, hops: Sequence[Hop]) -> Known:
    told = [(question.topic, each) for question, answer in answers.items() for each in answer.documents]
    for hop in hops:
        known = hop.learns(known, told)
    return known
