"""Derive the environment from the logs: broker, server instances, subscriptions, and clock skew. Pure."""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import sub
from types import MappingProxyType

from maestropy.trace.logs.log_records import LogRecord, RecordKind, RecordTable
from maestropy.trace.logs.match.message_pairs import MessagePairs
from maestropy.trace.logs.model import Options
from maestropy.trace.logs.read import log_writers
from maestropy.trace.logs.read.log_writers import Environment, LogWriter, SubscriptionPeriod

_YEAR = 365.2425 * 86400


def derive(
    writers: Sequence[LogWriter],
    components: Iterable[LogRecord],
    *,
    options: Options,
    reported: Mapping[str, float] = MappingProxyType({}),
    told: frozenset[str] = frozenset(),
) -> Environment:
    """Return the environment; options that are `auto` are derived from the logs."""
    instances = options.expected_instances
    known = tuple(writer.corrected() for writer in writers)
    servers = [writer for writer in known if writer.role == "server"]
    instance_ids: set[str] = set().union(*(server.instances for server in servers)) if servers else set()
    missing = _missing_instances(servers)
    if len({server.pod for server in servers}) == 1 and _leaves_all_to_others(servers):
        instances = max(instances, 2)
    # A rotated log is several files of one pod, each of which goes on where another ends.
    parts = [(writer.pod, writer.first) for writer in known]
    events = sorted(components, key=lambda record: (*parts[record.file], record.file, record.offset, record.line))
    return Environment(
        writers=known,
        broker=_broker(known, options),
        subscription=log_writers.subscription_of(known) if options.subscription == "auto" else options.subscription,
        instances=max(len({server.pod for server in servers}) + len(missing), len(instance_ids), instances),
        missing=missing,
        reported=reported,
        told=told,
        consumers=options.consumers,
        departures=dict(options.departures),
        clients=_subscription_periods(
            events, known, on=RecordKind.CLIENT_SUBSCRIBED, off=RecordKind.CLIENT_UNSUBSCRIBED
        ),
        agents=_subscription_periods(events, known, on=RecordKind.AGENT_SUBSCRIBED, off=RecordKind.AGENT_UNSUBSCRIBED),
    )


def _broker(writers: tuple[LogWriter, ...], options: Options) -> str:
    if options.broker != "auto":
        return options.broker
    shown = log_writers.broker_of(writers)
    return "grpc" if shown == "unknown" and options.departures else shown


def _missing_instances(servers: Sequence[LogWriter]) -> tuple[str, ...]:
    """Return the instances that servers name, and that none of the logs is from."""
    own = {name for server in servers for name in (server.pod, *server.instances)}
    named = {name for server in servers for name in server.ring}
    # An instance may be named after its pod, with the name of the release before it.
    return tuple(sorted(name for name in named if not any(name == one or name.endswith(f"-{one}") for one in own)))


def _leaves_all_to_others(servers: Sequence[LogWriter]) -> bool:
    """Say whether the servers own no consumer, so that another instance must."""
    kinds = [server.kinds for server in servers]
    return any(one[RecordKind.NOT_OWNED] for one in kinds) and not any(one[RecordKind.HANDLING] for one in kinds)


def reported_consumers(records: RecordTable) -> dict[str, float]:
    """Return when the agents of each consumer last reported any status."""
    last: dict[int, float] = {}
    for run in records.runs(RecordKind.RECEIVED_STATUS, RecordKind.UPDATING, RecordKind.SENT_TO_CLIENTS):
        for number, at in zip(records.details[run.start : run.stop], records.times[run.start : run.stop], strict=True):
            if at > last.get(number, 0.0):
                last[number] = at
    reported: dict[str, float] = {}
    for number, at in last.items():
        consumer = records.details_at(number)[1]
        if consumer:
            reported[consumer] = max(at, reported.get(consumer, 0.0))
    return reported


def told_sources(records: RecordTable) -> frozenset[str]:
    """Return the sources to whose clients any status was sent.

    The status itself names none, the request of its resource does.
    """
    sent: set[int] = set()
    for run in records.runs(RecordKind.SENT_TO_CLIENTS):
        sent.update(records.resources[run.start : run.stop])
    if not sent:
        return frozenset()
    requests = (index for index in records.indices(RecordKind.REQUEST_RECEIVED) if records.resources[index] in sent)
    return frozenset(source for source in (records.details_of(index)[2] for index in requests) if source)


def _subscription_periods(
    events: Iterable[LogRecord], writers: Sequence[LogWriter], *, on: RecordKind, off: RecordKind
) -> tuple[SubscriptionPeriod, ...]:
    periods: list[SubscriptionPeriod] = []
    open_: dict[tuple[str, str], LogRecord] = {}
    ended: set[tuple[str, str]] = set()

    def name_of(record: LogRecord) -> str:
        return record.source if on is RecordKind.CLIENT_SUBSCRIBED else record.consumer

    def close(key: tuple[str, str], until: float) -> None:
        began = open_.pop(key)
        ended.add(key)
        periods.append(SubscriptionPeriod(name=name_of(began), file=began.file, since=began.at, until=until))

    for record in events:
        pod = writers[record.file].pod
        key = (pod, record.event)
        if record.kind is on:
            open_[key] = record
        elif record.kind is off and key in open_:
            close(key, record.at)
        elif record.kind is off and name_of(record) and key not in ended:
            # It subscribed before the log begins.
            ended.add(key)
            since = -math.inf
            periods.append(SubscriptionPeriod(name=name_of(record), file=record.file, since=since, until=record.at))
        elif record.kind is RecordKind.STARTED:
            # A server that starts has no subscribers, even if none of them unsubscribed.
            for subscriber in [subscriber for subscriber in open_ if subscriber[0] == pod]:
                close(subscriber, record.at)
    for subscriber in list(open_):
        close(subscriber, math.inf)
    return tuple(periods)


def correct_years(records: RecordTable, writers: Sequence[LogWriter]) -> None:
    """Correct logs whose year is only guessed by logs that show it: klog writes no year."""
    sure = [writer.last for writer in writers if writer.first and not writer.is_year_guessed]
    for file, writer in enumerate(writers):
        years = round((writer.last - max(sure)) / _YEAR) if sure and writer.first and writer.is_year_guessed else 0
        if not years:
            continue
        last = datetime.fromtimestamp(writer.last, UTC)
        day = 28 if (last.month, last.day) == (2, 29) else last.day
        shift = (last - last.replace(year=last.year - years, day=day)).total_seconds()
        for index, number in enumerate(records.files):
            if number == file:
                records.times[index] -= shift
        writer.first, writer.last = writer.first - shift, writer.last - shift
        writer.started = [at - shift for at in writer.started]


def skews(
    records: RecordTable,
    writers: Sequence[LogWriter],
    *,
    known: Sequence[float] = (),
    pairs: MessagePairs | None = None,
) -> list[float]:
    """Return by how many seconds each writer's clock is ahead of the servers'; 0 where no difference is shown.

    The fastest delivery to the agent and the fastest one back should take equally long; half their difference is the
    skew. Clocks with `known` skew are corrected first; `pairs` are those of the times corrected so, if they are known.
    """
    if pairs is None:
        pairs = MessagePairs(records, writers, times=corrected(records, known))
    offsets = [0.0] * len(writers)
    for file in pairs.files:
        offsets[file] = skew([took for _, took in pairs.down(file)], [took for _, took in pairs.up(file)])
    return offsets


def corrected(records: RecordTable, known: Sequence[float]) -> Sequence[float]:
    """Return the times of the records, by clocks that are `known` to be ahead by so many seconds."""
    return array("d", map(sub, records.times, map(known.__getitem__, records.files))) if any(known) else records.times


def skew(down: Sequence[float], up: Sequence[float]) -> float:
    """Return the skew that explains the apparent delivery times to an agent and from it.

    Only messages that would arrive before they were sent prove a skew. Different times down and up do not: one side may
    be busy.
    """
    if not down or not up:
        fastest = min([*down, *up], default=0.0)
        return (fastest if down else -fastest) if fastest < 0 else 0.0
    fastest_down, fastest_up = min(down), min(up)
    if fastest_down >= 0 and fastest_up >= 0:
        return 0.0
    # Both ways together take as long as they take, whatever the clocks show; if not, the pairs do not belong together.
    return (fastest_down - fastest_up) / 2 if fastest_down + fastest_up >= 0 else 0.0


def gaps(writers: Sequence[LogWriter]) -> dict[str, list[tuple[float, float]]]:
    """Return, per pod with several files, the times that none of them covers."""
    gaps_by_pod: dict[str, list[tuple[float, float]]] = {}
    for files in log_writers.by_pod(writer for writer in writers if writer.first):
        files.sort(key=lambda file: file.first)
        holes = []
        end = files[0].last
        for writer in files[1:]:
            if writer.first > end + 1.0:
                holes.append((end, writer.first))
            end = max(end, writer.last)
        if holes:
            gaps_by_pod[files[0].pod] = holes
    return gaps_by_pod


def generations(writers: Iterable[LogWriter]) -> Counter[str]:
    """Return how many writers write each generation."""
    return Counter(writer.generation for writer in writers if writer.generation != "unknown")
