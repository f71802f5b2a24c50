"""See the whole system in its logs: brokers, instances, who was connected when, whose clock is off. Pure."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import sub

from maestropy.trace.request import inputs
from maestropy.trace.request.hits import Hit, Hits, What
from maestropy.trace.request.inputs import Environment, Presence, Writer

_SURE_AFTER = 5
_NOTABLE = 0.05
_YEAR = 365.2425 * 86400


def environment(
    writers: Sequence[Writer], components: Iterable[Hit], *, broker: str, subscription: str, instances: int = 0
) -> Environment:
    """Return what is known of the system; `auto` asks the logs, and there are at least so many `instances`."""
    known = tuple(writers)
    servers = [each for each in known if each.role == "server"]
    told: set[str] = set().union(*(each.instances for each in servers)) if servers else set()
    events = sorted(components, key=lambda hit: (hit.file, hit.offset, hit.line))
    return Environment(
        writers=known,
        broker=inputs.broker_of(known) if broker == "auto" else broker,
        subscription=inputs.subscription_of(known) if subscription == "auto" else subscription,
        instances=max(len({each.pod for each in servers}), len(told), instances),
        clients=_presences(events, on=What.CLIENT_ON, off=What.CLIENT_OFF),
        agents=_presences(events, on=What.AGENT_ON, off=What.AGENT_OFF),
    )


def _presences(events: Iterable[Hit], *, on: What, off: What) -> tuple[Presence, ...]:
    found: list[Presence] = []
    open_: dict[tuple[int, str], Hit] = {}

    def close(key: tuple[int, str], until: float) -> None:
        began = open_.pop(key)
        name = began.source if on is What.CLIENT_ON else began.consumer
        found.append(Presence(name=name, file=key[0], since=began.at, until=until))

    for hit in events:
        key = (hit.file, hit.event)
        if hit.what is on:
            open_[key] = hit
        elif hit.what is off and key in open_:
            close(key, hit.at)
        elif hit.what is What.STARTED:
            # A server that starts has no subscribers, whatever it said before.
            for each in [each for each in open_ if each[0] == hit.file]:
                close(each, hit.at)
    for each in list(open_):
        close(each, math.inf)
    return tuple(found)


def agree_on_years(hits: Hits, writers: Sequence[Writer]) -> None:
    """Move logs whose year is only guessed into the year of those that tell it: klog writes none."""
    sure = [each.last for each in writers if each.first and not each.is_year_guessed]
    for file, each in enumerate(writers):
        years = round((each.last - max(sure)) / _YEAR) if sure and each.first and each.is_year_guessed else 0
        if not years:
            continue
        last = datetime.fromtimestamp(each.last, UTC)
        day = 28 if (last.month, last.day) == (2, 29) else last.day
        shift = (last - last.replace(year=last.year - years, day=day)).total_seconds()
        for index, number in enumerate(hits.files):
            if number == file:
                hits.times[index] -= shift
        each.first, each.last = each.first - shift, each.last - shift
        each.started = [at - shift for at in each.started]


def skews(hits: Hits, writers: Sequence[Writer], *, told: Sequence[float] = ()) -> list[float]:
    """Return by how many seconds each writer's clock is ahead of the servers'; 0 where nothing shows a difference.

    The fastest way down and the fastest way up should take equally long; half their difference is the clock's. Clocks
    that are `told` to be ahead are corrected before.
    """
    is_server = [each.role == "server" for each in writers]
    published: dict[tuple[int, int], float] = {}
    taken: dict[int, float] = {}
    down: dict[int, list[tuple[tuple[int, int], float]]] = defaultdict(list)
    up: dict[int, dict[int, float]] = defaultdict(dict)
    files, versions, sequences, resources = hits.files, hits.versions, hits.sequences, hits.resources
    times = _corrected(hits, told)
    for index in hits.places(What.SENDING_SPEC, What.TO_AGENTS):
        if versions[index] > 0 and is_server[files[index]]:
            key, at = (resources[index], versions[index]), times[index]
            published[key] = min(at, published.get(key, at))
    for index in hits.places(What.RECEIVED_SPEC):
        if versions[index] > 0 and not hits.rest_of(index)[4]:
            down[files[index]].append(((resources[index], versions[index]), times[index]))
    for index in hits.places(What.SENDING_STATUS):
        if sequences[index]:
            # Only the first counts: a status that is sent again arrived before.
            first = up[files[index]]
            first[sequences[index]] = min(times[index], first.get(sequences[index], math.inf))
    for index in hits.places(What.RECEIVED_STATUS):
        sequence, at = sequences[index], times[index]
        if sequence and at < taken.get(sequence, math.inf) and is_server[files[index]]:
            taken[sequence] = at
    found = [0.0] * len(writers)
    for file in set(down) | set(up):
        ways_down = [at - published[key] for key, at in down[file] if key in published]
        ways_up = [taken[key] - at for key, at in up[file].items() if key in taken]
        found[file] = skew(ways_down, ways_up)
    return found


def _corrected(hits: Hits, told: Sequence[float]) -> Sequence[float]:
    return array("d", map(sub, hits.times, map(told.__getitem__, hits.files))) if any(told) else hits.times


def skew(down: Sequence[float], up: Sequence[float]) -> float:
    """Return the skew behind the times that messages seem to take down to an agent and up from it."""
    if not down or not up:
        fastest = min([*down, *up], default=0.0)
        return (fastest if down else -fastest) if fastest < 0 else 0.0
    fastest_down, fastest_up = min(down), min(up)
    offset = (fastest_down - fastest_up) / 2
    is_impossible = fastest_down < 0 or fastest_up < 0
    is_plain = abs(offset) > _NOTABLE and min(len(down), len(up)) >= _SURE_AFTER
    return offset if is_impossible or is_plain else 0.0


def gaps(writers: Sequence[Writer]) -> dict[str, list[tuple[float, float]]]:
    """Return, per pod with several files, the times that none of them covers."""
    by_pod: dict[str, list[Writer]] = defaultdict(list)
    for each in writers:
        if each.first:
            by_pod[each.pod].append(each)
    found: dict[str, list[tuple[float, float]]] = {}
    for pod, files in by_pod.items():
        files.sort(key=lambda each: each.first)
        holes = []
        end = files[0].last
        for each in files[1:]:
            if each.first > end + 1.0:
                holes.append((end, each.first))
            end = max(end, each.last)
        if holes:
            found[pod] = holes
    return found


def generations(writers: Iterable[Writer]) -> Counter[str]:
    """Return how many writers write each generation."""
    return Counter(each.generation for each in writers if each.generation != "unknown")
