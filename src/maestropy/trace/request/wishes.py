"""Tell the requests of one resource apart, and give each the records that belong to it.

A resource lives from a create to its confirmed deletion; the same id may live again. Within a life, versions count the
accepted changes: a create is version 1, and a status names the version it answers. Deletes keep the version, and from
the server on also the op-id, of the change before them; so deletes are told by their type, never by op-id. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from maestropy.trace.request.hits import Hit, What
from maestropy.trace.request.reports import Report, is_about_status, reports_of

_SLACK = 0.5
_SPEC = frozenset({What.PUBLISHING, What.SENDING_SPEC, What.TO_AGENTS, What.RECEIVED_SPEC})
_CHANGES = ("create", "update")
_ON_AGENT = frozenset({What.STORED, What.APPLIED, What.APPLY_FAILED, What.DECODE_FAILED})


@dataclass(slots=True, kw_only=True)
class Wish:
    """One request and everything the logs say about it."""

    resource: str
    action: str
    at: float
    life: int = 1
    version: int = 0
    """What it became; 0 when nothing shows it."""
    asked: Hit | None = None
    """Its arrival, where the logs show it."""
    refused: str = ""
    """Why the server did not take it."""
    is_surely_refused: bool = False
    no_op: str = ""
    hits: list[Hit] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    later: "Wish | None" = None
    """The next accepted request of the same life."""
    _by_stage: dict[int, list[Hit]] = field(default_factory=dict)
    """Filled when first asked for, which is after everything was given."""

    @property
    def is_change(self) -> bool:
        """Say whether it creates or updates."""
        return self.action in _CHANGES

    def stage(self, number: int) -> list[Hit]:
        """Return its records of one stage in order of time."""
        if not self._by_stage:
            for hit in (*self.hits, *(hit for report in self.reports for hit in report.hits)):
                self._by_stage.setdefault(hit.stage, []).append(hit)
            for hits in self._by_stage.values():
                hits.sort(key=lambda hit: hit.at)
        return self._by_stage.get(number, [])

    def first(self, name: str) -> str:
        """Return the first value that any of its records has for a field."""
        own = [self.asked] if self.asked else []
        for hit in (*own, *self.hits, *(hit for report in self.reports for hit in report.hits)):
            value = getattr(hit, name)
            if value and (name != "name" or value != self.resource):
                return str(value)
        return ""


def wishes_of(resource: str, hits: Sequence[Hit]) -> list[Wish]:
    """Return the requests of `resource` with their records, in order of time."""
    wishes = _asked(resource, hits)
    _count_versions(wishes, hits)
    _add_unseen(resource, wishes, hits)
    wishes.sort(key=lambda wish: wish.at)
    for hit in hits:
        if not is_about_status(hit):
            owner = _owner(hit, wishes)
            if owner is not None and hit is not owner.asked:
                _give(owner, hit)
    for report in reports_of([hit for hit in hits if is_about_status(hit)]):
        wish = _owner_of_report(report, wishes)
        if wish is not None:
            wish.reports.append(report)
    _link(wishes)
    return wishes


def _asked(resource: str, hits: Sequence[Hit]) -> list[Wish]:
    wishes: list[Wish] = []
    life, is_over = 1, False
    for hit in hits:
        if hit.what is What.DELETE_SENT or (hit.what is What.BROADCAST and hit.action == "delete"):
            is_over = True
        elif hit.what is What.WISH and hit.action in (*_CHANGES, "delete"):
            if is_over and hit.action == "create":
                life, is_over = life + 1, False
            wishes.append(Wish(resource=resource, action=hit.action, at=hit.at, life=life, asked=hit, hits=[hit]))
    return wishes


def _count_versions(wishes: Sequence[Wish], hits: Sequence[Hit]) -> None:
    by_op: dict[str, int] = {}
    for hit in hits:
        if hit.op and hit.version > 0 and not hit.is_deleting and hit.what is not What.WISH:
            by_op[hit.op] = min(hit.version, by_op.get(hit.op, hit.version))
    life, current = 0, 0
    for wish in wishes:
        if wish.life != life:
            life, current = wish.life, 0
        assert wish.asked is not None
        sent = wish.asked.version
        if wish.action == "create":
            if current:
                wish.refused = "the resource exists already"
                continue
            wish.version = 1
        elif wish.action == "update":
            if sent > 0 and current and sent < current:
                wish.refused = f"it was based on version {sent}, but the resource had version {current} already"
                wish.is_surely_refused = True
                continue
            wish.version = by_op.get(wish.asked.op, 0) or (sent + 1 if sent > 0 else 0) or _next(current, wish, hits)
        else:
            wish.version = current
        current = max(current, wish.version)


def _next(current: int, wish: Wish, hits: Sequence[Hit]) -> int:
    """Return the version after `current` if anything later shows that there was one."""
    later = [hit.version for hit in hits if hit.version > current and hit.at >= wish.at - _SLACK]
    published = any(hit.what is What.PUBLISHING and hit.action == "update" and hit.at >= wish.at for hit in hits)
    return current + 1 if (later or published) and current else min(later, default=0)


def _add_unseen(resource: str, wishes: list[Wish], hits: Sequence[Hit]) -> None:
    """Add requests whose arrival the logs do not show, but whose way they do."""
    spec = [hit for hit in hits if hit.what in _SPEC and (hit.version > 0 or hit.what is What.PUBLISHING)]
    # "Publishing" does not tell its version: it may belong to what the others tell of.
    for hit in sorted(spec, key=lambda hit: (hit.version <= 0, hit.at)):
        action = "delete" if hit.is_deleting or hit.action == "delete" else hit.action
        if _matching(hit, wishes, action=action) is not None:
            continue
        if action == "resync":
            action = "create" if hit.version == 1 else "update"
        life = max((wish.life for wish in wishes if wish.at <= hit.at), default=1)
        wishes.append(Wish(resource=resource, action=action, at=hit.at, life=life, version=max(hit.version, 0)))
    if not wishes and hits:
        version = max(hit.version for hit in hits)
        wishes.append(Wish(resource=resource, action="unknown", at=hits[0].at, version=max(version, 0)))


def _matching(hit: Hit, wishes: Sequence[Wish], *, action: str) -> Wish | None:
    if action == "delete":
        return _latest([wish for wish in wishes if wish.action == "delete"], hit.at)
    if hit.version > 0:
        return _latest([wish for wish in wishes if wish.is_change and wish.version == hit.version], hit.at)
    return _latest([wish for wish in wishes if wish.action == action and not wish.refused], hit.at)


def _latest(wishes: Sequence[Wish], at: float) -> Wish | None:
    """Return the last wish that had begun by `at`, as clocks of several pods tell it."""
    return max((wish for wish in wishes if wish.at <= at + _SLACK), key=lambda wish: wish.at, default=None)


def _owner(hit: Hit, wishes: Sequence[Wish]) -> Wish | None:
    if hit.what is What.WISH:
        return next((wish for wish in wishes if wish.asked is hit), None)
    if hit.what in (What.REFUSED, What.NO_OP):
        return _latest([wish for wish in wishes if not hit.op or not wish.asked or wish.asked.op == hit.op], hit.at)
    accepted = [wish for wish in wishes if not wish.refused]
    if hit.what in _SPEC:
        action = "delete" if hit.is_deleting or hit.action == "delete" else hit.action
        return _matching(_with_version(hit, wishes), accepted, action=action)
    if hit.what in (What.DELETING, What.REMOVED, What.PENDING_DELETION):
        return _latest([wish for wish in accepted if wish.action == "delete"], hit.at) or _latest(accepted, hit.at)
    if hit.what in _ON_AGENT:
        changes = [wish for wish in accepted if wish.is_change] if hit.what is What.APPLIED else accepted
        by_op = [wish for wish in changes if hit.op and wish.first("op") == hit.op]
        arrived = [wish for wish in changes if any(one.what is What.RECEIVED_SPEC and one.at <= hit.at + 0.001
                                                   for one in wish.hits)]  # fmt: skip
        return _latest(by_op, hit.at) or _latest(arrived, hit.at) or _latest(changes, hit.at)
    by_action = [wish for wish in accepted if hit.action and wish.action == hit.action]
    return _latest(by_action, hit.at) or _latest(accepted, hit.at)


def _with_version(hit: Hit, wishes: Sequence[Wish]) -> Hit:
    """Give "Publishing" the version with which the same database event was sent."""
    if hit.version > 0 or not hit.event:
        return hit
    for wish in wishes:
        if any(one.event == hit.event and one.version > 0 for one in wish.hits):
            return hit._replace(version=wish.version)
    return hit


def _give(wish: Wish, hit: Hit) -> None:
    if hit.what is What.WISH:
        return
    wish.hits.append(hit)
    if hit.what is What.REFUSED:
        wish.refused, wish.is_surely_refused = hit.detail or "the server refused it", True
    elif hit.what is What.NO_OP:
        wish.no_op = hit.detail or "it changes nothing"


def _owner_of_report(report: Report, wishes: Sequence[Wish]) -> Wish | None:
    accepted = [wish for wish in wishes if not wish.refused]
    deletes = [wish for wish in accepted if wish.action == "delete"]
    if report.is_deleting or report.is_last_word:
        return _latest(deletes, report.at) or _latest(accepted, report.at)
    if report.version > 0:
        return _latest([wish for wish in accepted if wish.version == report.version and wish.is_change], report.at)
    if report.has(What.STALE):
        return None
    return _latest(accepted, report.at) or (accepted[0] if accepted and accepted[0].asked is None else None)


def _link(wishes: Sequence[Wish]) -> None:
    accepted = [wish for wish in wishes if not wish.refused and not wish.no_op]
    for wish in wishes:
        wish.later = next(
            (other for other in accepted if other.life == wish.life and other.at > wish.at and other is not wish), None
        )
