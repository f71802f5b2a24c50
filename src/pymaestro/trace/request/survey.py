"""From a table of hits to judged requests. Pure: what `scan` has read goes in, traces come out."""

from collections.abc import Iterator, Sequence

from pymaestro.trace.request import attach, environment, wishes
from pymaestro.trace.request.hits import Hits
from pymaestro.trace.request.inputs import Environment, Writer
from pymaestro.trace.request.judge import Case, judge
from pymaestro.trace.request.model import Finding, Options, Trace

_NOTABLE_SKEW = 0.1


def surroundings(hits: Hits, writers: Sequence[Writer], *, options: Options) -> Environment:
    """Return the system that the logs show; corrects the writers' clocks."""
    for writer, skew in zip(writers, environment.skews(hits, writers), strict=True):
        writer.skew = skew
    return environment.environment(
        writers, attach.about_components(hits), broker=options.broker, subscription=options.subscription
    )


def traces(
    hits: Hits, known: Environment, *, options: Options, wanted: frozenset[str] | None = None
) -> Iterator[Trace]:
    """Judge all requests, or those of the `wanted` resources."""
    components = attach.about_components(hits)
    skews = [each.skew for each in known.writers]
    for resource, found in attach.by_resource(hits, skews=skews, wanted=wanted):
        for wish in wishes.wishes_of(resource, found):
            yield judge(Case(wish=wish, environment=known, components=components, options=options))


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
