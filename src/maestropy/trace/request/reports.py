"""Put the records about statuses of one resource together into reports: one per status that the agent sent.

A report is named by its sequence id where any of its records shows one. Where none does, records of one server follow
each other (received, handled, sent), and the n-th status event belongs to the n-th status that was stored. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from maestropy.trace.request.hits import Hit, What

_CLOSING = frozenset({What.UPDATE_SENT, What.DELETE_SENT, What.STALE, What.UNCHANGED, What.STATUS_FAILED,
                      What.NOT_OWNED, What.STATUS_NOT_FOUND})  # fmt: skip
_STATUS = frozenset(range(What.SENDING_STATUS, What.FANOUT_FAILED + 1)) | {What.STATUS_REFUSED}
_ALONE = frozenset({What.TO_CLIENTS, What.FANOUT_FAILED, What.RECEIVED_STATUS, What.SENDING_STATUS,
                    What.STATUS_REFUSED})  # fmt: skip
_CLOSE = 5.0


@dataclass(slots=True)
class Report:
    """One status on its way from the agent to the clients."""

    sequence: int = 0
    version: int = -1
    is_deleting: bool = False
    hits: list[Hit] = field(default_factory=list)

    def add(self, hit: Hit) -> None:
        """Take one more record of it."""
        self.hits.append(hit)
        self.sequence = self.sequence or hit.sequence
        if hit.version >= 0:
            self.version = hit.version
        self.is_deleting = self.is_deleting or hit.is_deleting

    def has(self, *whats: What) -> bool:
        """Say whether it has such a record."""
        return any(hit.what in whats for hit in self.hits)

    @property
    def at(self) -> float:
        """When it was first heard of."""
        return min(hit.at for hit in self.hits)

    @property
    def is_last_word(self) -> bool:
        """Say whether it confirms a deletion."""
        if self.has(What.DELETE_SENT, What.UPDATE_SENT):
            return self.has(What.DELETE_SENT)  # the server knows best; our agents' other reports look like their last
        return any(hit.what is What.SENDING_STATUS and hit.is_deleting and hit.detail == "final" for hit in self.hits)

    @property
    def result(self) -> str:
        """What became of it on the server."""
        word = next((word for what, word in _RESULTS if self.has(what)), "unknown")
        is_duplicate = word == "stale" and any(hit.what is What.STALE and hit.detail == "sequence" for hit in self.hits)
        return "duplicate" if is_duplicate else word


_RESULTS = (
    (What.DELETE_SENT, "sent"),
    (What.UPDATE_SENT, "sent"),
    (What.STATUS_FAILED, "error"),
    # A server says "Updating" before it compares sequence ids.
    (What.STALE, "stale"),
    (What.UPDATING, "sent"),
    (What.UNCHANGED, "nochange"),
    (What.STATUS_NOT_FOUND, "not-found"),
    (What.TO_CLIENTS, "sent"),
)


def is_about_status(hit: Hit) -> bool:
    """Say whether a hit belongs to some report."""
    return hit.what in _STATUS


def reports_of(hits: Sequence[Hit]) -> list[Report]:
    """Return the reports of one resource in order of time."""
    named: dict[int, Report] = {}
    nameless: list[Report] = []
    files = sorted({hit.file for hit in hits})
    for file in files:
        _of_file([hit for hit in hits if hit.file == file], named, nameless)
    _name(nameless, named)
    reports = [*named.values(), *(each for each in nameless if each.hits)]
    reports.sort(key=lambda report: report.at)
    _add_broadcasts(reports, [hit for hit in hits if hit.what in (What.BROADCAST, What.NO_CLIENTS)])
    return [each for each in reports if each.hits]


def _of_file(hits: Iterable[Hit], named: dict[int, Report], nameless: list[Report]) -> None:
    """Follow one server's or agent's records in their order."""
    open_: list[Report] = []
    for hit in sorted(hits, key=lambda hit: (hit.offset, hit.line)):
        if hit.sequence:
            report = named.setdefault(hit.sequence, Report())
            if hit.what is What.UPDATING and open_ and not open_[0].sequence:
                _merge(open_[0], into=report, among=nameless)
                open_[0] = report
            elif hit.what is What.RECEIVED_STATUS:
                open_.append(report)
            report.add(hit)
        elif hit.what is What.STATUS_TAKEN:
            waiting = next((each for each in open_ if not any(one.what is What.STATUS_TAKEN and one.file == hit.file
                                                              for one in each.hits)), None)  # fmt: skip
            _into(waiting, open_, nameless).add(hit)
        elif hit.what is What.HANDLING or hit.what is What.UPDATING or hit.what in _CLOSING:
            if hit.what is What.UPDATING and open_ and _is_updated(open_[0], hit.file):
                open_.pop(0)  # servers of old say no more about it
            _into(open_[0] if open_ else None, open_, nameless).add(hit)
            if hit.what in _CLOSING:
                open_.pop(0)
        elif hit.what in _ALONE:
            nameless.append(Report())
            nameless[-1].add(hit)


def _is_updated(report: Report, file: int) -> bool:
    return any(hit.what is What.UPDATING and hit.file == file for hit in report.hits)


def _into(report: Report | None, open_: list[Report], nameless: list[Report]) -> Report:
    if report is None:
        report = Report()
        nameless.append(report)
        open_.append(report)
    return report


def _merge(one: Report, *, into: Report, among: list[Report]) -> None:
    for hit in one.hits:
        into.add(hit)
    one.hits = []
    if one in among:
        among.remove(one)


def _name(nameless: list[Report], named: dict[int, Report]) -> None:
    """Join reports without a sequence to what the agent sent last before them; an export may leave sequences out."""
    sent = sorted(
        (
            (hit.at, report)
            for report in (*named.values(), *nameless)
            for hit in report.hits
            if hit.what is What.SENDING_STATUS
        ),
        key=lambda pair: pair[0],
    )
    for each in list(nameless):
        before = [
            report
            for at, report in sent
            if at <= each.at + 0.5
            and each.at - at < _CLOSE * 12
            and (each.version == report.version or -1 in (each.version, report.version))
        ]
        if before and not each.has(What.SENDING_STATUS):
            _merge(each, into=before[-1], among=nameless)


def _add_broadcasts(reports: Sequence[Report], hits: Sequence[Hit]) -> None:
    """Give the n-th status event to the n-th status that was stored; to the nearest when their numbers differ."""
    events: dict[str, list[Hit]] = {}
    for number, hit in enumerate(hits):
        events.setdefault(hit.event or f"?{number}", []).append(hit)
    for final in (True, False):
        groups = [group for group in events.values() if (group[0].action == "delete") is final]
        stored = [each for each in reports if each.has(What.DELETE_SENT) is final and (final or each.result == "sent")]
        if len(groups) == len(stored):
            for group, report in zip(groups, stored, strict=True):
                _extend(report, group)
            continue
        for group in groups:
            nearest = min(stored or reports, key=lambda report: abs(_handled_at(report) - group[0].at), default=None)
            if nearest is not None:
                _extend(nearest, group)


def _extend(report: Report, group: Iterable[Hit]) -> None:
    for hit in group:
        report.add(hit)


def _handled_at(report: Report) -> float:
    return max((hit.at for hit in report.hits if hit.stage in (6, 7)), default=report.at)
