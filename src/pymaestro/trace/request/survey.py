"""From a table of hits to judged requests. Pure: what `scan` has read goes in, traces come out."""

from collections.abc import Iterator, Sequence
from functools import partial

from pymaestro.trace.request import attach, environment, wishes
from pymaestro.trace.request.hits import Hits
from pymaestro.trace.request.inputs import Environment, Writer
from pymaestro.trace.request.judge import Case, judge
from pymaestro.trace.request.model import Finding, Options, Records, Trace
from pymaestro.trace.request.plainly import Plain

_NOTABLE_SKEW = 0.1


def surroundings(hits: Hits, writers: Sequence[Writer], *, options: Options) -> Environment:
    """Return the system that the logs show; corrects the writers' clocks."""
    for writer, skew in zip(writers, environment.skews(hits, writers), strict=True):
        writer.skew = skew
    return environment.environment(
        writers,
        attach.about_components(hits),
        broker=options.broker,
        subscription=options.subscription,
        instances=options.expected_instances,
    )


def traces(
    hits: Hits, known: Environment, *, options: Options, wanted: frozenset[str] | None = None
) -> Iterator[Trace]:
    """Judge all requests, or those of the `wanted` resources."""
    grouping = attach.grouped(hits)
    skews = [each.skew for each in known.writers]
    court = Court(hits=hits, known=known, options=options, grouping=grouping, skews=skews)
    plain = Plain(hits, grouping, skews=skews)
    numbers = None if wanted is None else {hits.number(each) for each in wanted}
    for number, places in grouping.places.items():
        if numbers is None or number in numbers:
            trace = plain.judged(number, places, course=partial(court.course, number))
            if trace is None:
                yield from court.judged(number)
            else:
                yield trace


class Court:
    """Judges the requests of one resource with everything that is known of it."""

    def __init__(
        self, *, hits: Hits, known: Environment, options: Options, grouping: attach.Grouping, skews: Sequence[float]
    ) -> None:
        self._hits = hits
        self._known = known
        self._options = options
        self._grouping = grouping
        self._skews = skews
        self._components = attach.about_components(hits)

    def judged(self, number: int) -> list[Trace]:
        """Return the verdicts on all requests of a resource."""
        found = attach.hits_of(self._hits, self._grouping, number, skews=self._skews)
        return [
            judge(Case(wish=wish, environment=self._known, components=self._components, options=self._options))
            for wish in wishes.wishes_of(self._hits.word(number), found)
        ]

    def course(self, number: int) -> Records:
        """Return how the only request of a resource went."""
        return self.judged(number)[0].course.records


def notes(known: Environment) -> list[Finding]:
    """Return findings about the logs themselves."""
    found = []
    for each in known.writers:
        if abs(each.skew) >= _NOTABLE_SKEW:
            detail = f"{each.pod} is {abs(each.skew) * 1000:.0f} ms {'ahead' if each.skew > 0 else 'behind'}"
            found.append(Finding(code="MT-005", confidence="likely", detail=detail))
        if each.is_truncated:
            found.append(Finding(code="MT-006", confidence="certain", detail=f"{each.path} begins within a record"))
    generations = environment.generations(known.writers)
    if len(generations) > 1:
        found.append(Finding(code="MT-007", confidence="certain", detail=", ".join(sorted(generations))))
    pods = {each.pod for each in known.servers}
    if len(pods) < known.instances:
        detail = f"logs of {len(pods)} of {known.instances} server instances"
        found.append(Finding(code="MT-004", confidence="certain", detail=detail))
    return found
