"""From a table of hits to judged requests. Pure: what `scan` has read goes in, traces come out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from maestropy.trace.request import attach, environment, plainly, wishes
from maestropy.trace.request.hits import Hits
from maestropy.trace.request.inputs import Environment, Writer
from maestropy.trace.request.judge import Case, judge
from maestropy.trace.request.model import Finding, Options, Records, Trace, all_done

_NOTABLE_SKEW = 0.1


def surroundings(
    hits: Hits, writers: Sequence[Writer], *, options: Options, are_clocks_known: bool = False
) -> Environment:
    """Return the system that the logs show; corrects the writers' clocks, unless that was done before."""
    if not are_clocks_known:
        environment.agree_on_years(hits, writers)
        for writer, skew in zip(writers, _skews(hits, writers, options), strict=True):
            writer.skew = skew
    return environment.environment(
        writers,
        attach.about_components(hits),
        broker=options.broker,
        subscription=options.subscription,
        instances=options.expected_instances,
    )


def _skews(hits: Hits, writers: Sequence[Writer], options: Options) -> list[float]:
    """Return by how much each writer's clock is ahead: as somebody knows, else as the logs show if that is wanted."""
    known = dict(options.clocks)
    told = [known.get(each.pod, 0.0) for each in writers]
    if not options.are_clocks_compared:
        return told
    seen = environment.skews(hits, writers, told=told)
    return [told[file] if each.pod in known else seen[file] for file, each in enumerate(writers)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """The resources of a table, told apart: those with one plain request, and all others with their sayings."""

    plain: plainly.Verdicts
    others: attach.Grouping


def sorted_out(hits: Hits, writers: Sequence[Writer]) -> Sorted:
    """Tell plain resources from others; the writers' clocks are known by now."""
    owned = attach.owners(hits)
    plain = plainly.found(hits, owned, skews=[each.skew for each in writers])
    return Sorted(plain=plain, others=owned.grouped(without=plain.resources))


def traces(
    hits: Hits,
    known: Environment,
    *,
    options: Options,
    wanted: frozenset[str] | None = None,
    resources: Sorted | None = None,
    is_brief: bool = False,
) -> Iterator[Trace]:
    """Judge all requests, or those of the `wanted` resources.

    `resources` spares telling them apart again; with `is_brief` they have no records.
    """
    told = sorted_out(hits, known.writers) if resources is None else resources
    court = Court(hits=hits, known=known, options=options)
    numbers = None if wanted is None else {hits.number(each) for each in wanted}
    yield from told.plain.traces(hits, course=_briefly if is_brief else court.course, wanted=numbers)
    for number in told.others.places:
        if numbers is None or number in numbers:
            found = court.judged(number, told.others)
            yield from (each.without_records() for each in found) if is_brief else found


def _briefly(_: int, moments: Sequence[float]) -> Records:
    return all_done(moments)


class Court:
    """Judges the requests of one resource with everything that is known of it."""

    def __init__(self, *, hits: Hits, known: Environment, options: Options) -> None:
        self._hits = hits
        self._known = known
        self._options = options
        self._skews = [each.skew for each in known.writers]
        self._components = sorted((*attach.about_components(hits), *attach.strays(hits)), key=lambda hit: hit.at)
        self._grouping: attach.Grouping | None = None

    def judged(self, number: int, grouping: attach.Grouping) -> list[Trace]:
        """Return the verdicts on all requests of a resource."""
        found = attach.hits_of(self._hits, grouping, number, skews=self._skews)
        return [
            judge(Case(wish=wish, environment=self._known, components=self._components, options=self._options))
            for wish in wishes.wishes_of(self._hits.word(number), found)
        ]

    def course(self, number: int, _: Sequence[float]) -> Records:
        """Return how the only request of a resource went."""
        if self._grouping is None:
            self._grouping = attach.owners(self._hits).grouped()
        return self.judged(number, self._grouping)[0].course.records


def notes(known: Environment) -> list[Finding]:
    """Return findings about the logs themselves."""
    found = []
    for each in known.writers:
        if abs(each.skew) >= _NOTABLE_SKEW:
            detail = f"{each.pod} is {abs(each.skew) * 1000:.0f} ms {'ahead' if each.skew > 0 else 'behind'}"
            found.append(Finding(code="MT-005", confidence="likely", detail=detail))
        if each.unstamped:
            detail = f"{each.path}: {each.unstamped:,} rows of {each.pod}; the times within their records count instead"
            found.append(Finding(code="MT-009", confidence="certain", detail=detail))
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
