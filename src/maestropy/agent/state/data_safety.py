"""Remember which database the server uses and which works are held, so that nothing is deleted on ignorance.

`decide.data_safety` decides; this keeps the facts it needs and the holds that follow. Works that the server does not
have are judged together when the answer to a spec resync is complete, so that no state in between is shown. A hold has
an ID. The agent reports it to the server with every spec resync request, and an operator ends it by adopting the
database: the server then names that ID. An adoption counts for the works that were held under the ID, never for later
ones.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from maestropy.agent.decide import data_safety
from maestropy.agent.decide.data_safety import EvictionFacts, Hold, HoldReason, SpecOrigin
from maestropy.wire import resync, timestamps
from maestropy.wire.events import event

_COUNTS_VALID_SECONDS = 0.5
_REQUESTS_REMEMBERED = 64
_ABOUT_ABSENT_WORKS = frozenset((HoldReason.UNKNOWN_CONSUMER, HoldReason.TOO_MANY_ORPHANS))
"""These holds end when the server has the work."""
_PENDING = (
    "the server does not have these works; their objects are deleted after the agent's eviction grace period, unless "
    "the works come back"
)
_Held = tuple[Hold, str]


@dataclass(slots=True)
class _Pending:
    database: str
    """The recorded database of the work; empty if it is not known."""
    since: timestamps.Timestamp | None = None
    """When the grace period began; None while it has not."""
    deadline: timestamps.Timestamp | None = None


class DataSafety:
    """The database of the server and the works that are held."""

    def __init__(
        self,
        *,
        list_works: Callable[[], Mapping[str, bool]],
        limit_percent: int,
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
    ) -> None:
        """Prepare; `list_works` returns by the name of each AppliedManifestWork whether the agent has its work."""
        self._list_works = list_works
        self._limit_percent = limit_percent
        self._monotonic = monotonic
        self._new_id = new_id
        self.database = ""
        """The identity of the server's database; empty until a server has sent one."""
        self.is_judged = False
        """Whether an answer to a spec resync was complete; before that the agent does not know what it holds."""
        self.is_held_at_server = False
        """Whether the server shows a hold of this agent to operators."""
        self._is_consumer_known = True
        self._requests: dict[str, None] = {}
        self._holds: dict[str, _Held] = {}
        """The hold and the recorded database of each held work, by the name of its AppliedManifestWork."""
        self._pending: dict[str, _Pending] = {}
        """The works that are evicted after the grace period, by the names of their AppliedManifestWorks."""
        self._hold_id = ""
        self._pending_id = ""
        """What names `_pending` to operators: an adoption counts only for the works that they were shown."""
        self._adopted: dict[str, None] = {}
        self._counts = (0, 0)
        self._counted_at: float | None = None
        self.orphan_seen_at: float | None = None
        """When the last orphan was received, by the monotonic clock."""
        self.changed = asyncio.Event()
        """Set when a hold begins or ends."""

    @property
    def held_count(self) -> int:
        """How many works are held."""
        return len(self._held())

    @property
    def hold_id(self) -> str:
        """The ID of the hold; empty if no work is held."""
        return self._hold_id

    @property
    def must_ask(self) -> bool:
        """Whether the server is asked again: about held works, or whether it has the consumer now."""
        return bool(self._holds or self._pending) or not self._is_consumer_known

    def counts(self) -> Mapping[HoldReason, int]:
        """Return how many works are held, by reason; all of them are while the server does not have the consumer."""
        counts = Counter(hold.reason for hold, _ in self._held().values())
        if self._pending:
            counts[HoldReason.EVICTION_PENDING] = len(self._pending)
        return counts

    def summary(self) -> str:
        """Return why how many works are held or will be evicted, in one line; empty if none is."""
        counts = dict(self.counts())
        pending = counts.pop(HoldReason.EVICTION_PENDING, 0)
        parts = []
        if counts:
            reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
            total = sum(counts.values())
            kept = "1 work is kept as it is" if total == 1 else f"{total} works are kept as they are"
            parts.append(f"data-safety hold {self._hold_id}: {kept} ({reasons})")
        if pending:
            deadline = self._first_countdown().deadline
            first = f" (the first from {deadline.rfc3339_seconds()} on)" if deadline else ""
            parts.append(f"{HoldReason.EVICTION_PENDING} {pending}{first}: {_PENDING}")
        return "; ".join(parts)

    def note_request(self, request_id: str) -> None:
        """Remember a spec resync request, whose answer ends with the deletion of a work of this ID."""
        self._requests[request_id] = None
        for oldest in list(self._requests)[:-_REQUESTS_REMEMBERED]:
            del self._requests[oldest]

    def receive(self, received: event.CloudEvent) -> bool:
        """Note the database of an event; return whether the event is the end of a resync answer and nothing else.

        The caller then lets `judge` decide about the works that the server does not have.
        """
        database = received.optional_text(event.DATABASE_ID)
        if database:
            self.database = database
        if received.optional_text(event.RESOURCE_ID) not in self._requests:
            if not self._is_consumer_known:
                # A server sends works of consumers only that it has.
                self.changed.set()
            return False
        is_known = not received.is_set(event.UNKNOWN_CONSUMER)
        if is_known != self._is_consumer_known:
            self._is_consumer_known = is_known
            self.changed.set()
        self.is_held_at_server = received.is_set(event.STORED_HOLD)
        if self.is_held_at_server and not self.must_ask:
            self.changed.set()
        return True

    def judge(self, orphans: Mapping[str, SpecOrigin | None]) -> None:
        """Decide about all works that the server does not have, by the names of their AppliedManifestWorks."""
        if not self.is_judged:
            self.is_judged = True
            self.changed.set()
        self._counted_at = None
        verdicts = {
            name: (self.eviction_verdict(origin), origin)
            for name, origin in orphans.items()
            if not self.is_adopted(name)
        }
        for name, (verdict, origin) in verdicts.items():
            if isinstance(verdict, Hold):
                self.hold(name, verdict, applied=origin)
        if not self._is_consumer_known and self._held():
            self._hold_id = self._hold_id or self._new_id()
        # Released last: a hold that goes on for another reason keeps its ID.
        for name, (verdict, origin) in verdicts.items():
            if not isinstance(verdict, Hold):
                self.await_eviction(name, applied=origin)
        has_work = self._list_works()
        present = [name for name in [*self._holds, *self._pending] if has_work.get(name)]
        for name in present:
            if name in self._pending or self._holds[name][0].reason in _ABOUT_ABSENT_WORKS:
                self.release(name)
        self._forget_ids()

    def adopted_by(self, received: event.CloudEvent) -> list[str]:
        """Return the works whose hold this event ends; an operator has adopted the database."""
        adopted = received.optional_text(event.ADOPTED_HOLD)
        if not adopted or adopted not in (self._hold_id, self._pending_id):
            return []
        names = list(self._held() if adopted == self._hold_id else self._pending)
        self._adopted.update(dict.fromkeys(names))
        return names

    def note_orphan(self) -> None:
        """Note that the server sent the deletion of a work that it does not have."""
        self.orphan_seen_at = self._monotonic()
        self._counted_at = None

    def is_adopted(self, name: str) -> bool:
        """Return whether an operator ended the hold of this work."""
        return name in self._adopted

    def hold(self, name: str, hold: Hold, *, applied: SpecOrigin | None) -> bool:
        """Hold a work; return whether it was not held for this reason before."""
        previous = self._holds.get(name)
        self._pending.pop(name, None)
        self._holds[name] = hold, applied.database if applied else ""
        is_new = previous is None or previous[0].reason != hold.reason
        if is_new:
            self._hold_id = self._hold_id or self._new_id()
            self.changed.set()
        return is_new

    def await_eviction(self, name: str, *, applied: SpecOrigin | None) -> None:
        """Note that a work is not held, and is evicted after the grace period; also if an operator has agreed to it."""
        if applied is not None and applied.is_adopted:
            # The adoption is recorded on the cluster by now.
            self._adopted.pop(name, None)
        if name not in self._pending:
            self._holds.pop(name, None)
            self._pending[name] = _Pending(applied.database if applied else "")
            self._pending_id = self._pending_id or self._new_id()
            self._forget_ids()
            self.changed.set()

    def note_countdown(self, name: str, *, since: timestamps.Timestamp, deadline: timestamps.Timestamp) -> None:
        """Note since when the grace period of a work runs, and when it may be evicted."""
        pending = self._pending.get(name)
        if pending is not None and (pending.since, pending.deadline) != (since, deadline):
            pending.since, pending.deadline = since, deadline
            self.changed.set()

    def _first_countdown(self) -> _Pending:
        """Return the pending work whose grace period ends first."""
        counting = [pending for pending in self._pending.values() if pending.deadline is not None]
        return min(counting, key=lambda pending: pending.deadline or timestamps.Timestamp(0), default=_Pending(""))

    def release(self, name: str) -> None:
        """End the hold of a work."""
        self._adopted.pop(name, None)
        if self._holds.pop(name, None) is not None or self._pending.pop(name, None) is not None:
            self._forget_ids()
            self.changed.set()

    def _forget_ids(self) -> None:
        if not self._pending:
            self._pending_id = ""
        if not self._holds and self._is_consumer_known:
            self._hold_id = ""

    def _held(self) -> Mapping[str, _Held]:
        """Return all works that are held; every work is while the server does not have the consumer."""
        if self._is_consumer_known:
            return self._holds
        facts = EvictionFacts(database=self.database, is_consumer_known=False, orphans=0, applied_works=0)
        verdict = data_safety.eviction_verdict(None, facts)
        assert isinstance(verdict, Hold)
        return {**dict.fromkeys(self._list_works(), (verdict, "")), **self._holds}

    def spec_verdict(self, name: str, applied: SpecOrigin | None, incoming: SpecOrigin) -> data_safety.Verdict:
        """Decide whether a spec may replace the applied one."""
        return data_safety.Proceed() if self.is_adopted(name) else data_safety.spec_verdict(applied, incoming)

    def deletion_verdict(self, name: str, applied: SpecOrigin | None, incoming: SpecOrigin) -> data_safety.Verdict:
        """Decide whether a requested deletion may be carried out."""
        return data_safety.Proceed() if self.is_adopted(name) else data_safety.deletion_verdict(applied, incoming)

    def eviction_verdict(self, applied: SpecOrigin | None) -> data_safety.Verdict:
        """Decide whether an AppliedManifestWork without a work may be evicted."""
        now = self._monotonic()
        if self._counted_at is None or now - self._counted_at > _COUNTS_VALID_SECONDS:
            has_work = self._list_works()
            orphan_count = sum(1 for is_there in has_work.values() if not is_there)
            self._counts, self._counted_at = (orphan_count, len(has_work)), now
        orphans, applied_works = self._counts
        facts = EvictionFacts(
            database=self.database,
            is_consumer_known=self._is_consumer_known,
            orphans=orphans,
            applied_works=applied_works,
            limit_percent=self._limit_percent,
        )
        return data_safety.eviction_verdict(applied, facts)

    def report(self, work_names: Callable[[str], str]) -> resync.ReportedHold | None:
        """Return the hold for the server; `work_names` returns the name of a work by its AppliedManifestWork's."""
        held = self._held()
        pending = Hold(reason=HoldReason.EVICTION_PENDING, message=_PENDING)
        shown = held or {name: (pending, work.database) for name, work in self._pending.items()}
        if not shown:
            return None
        counts = Counter(hold.reason for hold, _ in shown.values())
        reason = max(sorted(counts), key=counts.__getitem__)
        message = next(hold.message for hold, _ in shown.values() if hold.reason == reason)
        others = {other: count for other, count in sorted(self.counts().items()) if other != reason}
        if others:
            message += "; also " + ", ".join(f"{other} {count}" for other, count in others.items())
        names = sorted(shown)[: resync.HELD_NAMES]
        return resync.ReportedHold(
            id=self._hold_id if held else self._pending_id,
            reason=reason,
            message=message,
            database=_most_frequent(database for _, database in shown.values()),
            count=len(shown),
            works=tuple(work_names(name) for name in names),
            pending=self._report_pending(work_names),
        )

    def _report_pending(self, work_names: Callable[[str], str]) -> resync.PendingEvictions | None:
        if not self._pending:
            return None
        first = self._first_countdown()
        return resync.PendingEvictions(
            count=len(self._pending),
            works=tuple(work_names(name) for name in sorted(self._pending)[: resync.HELD_NAMES]),
            since=first.since.rfc3339_seconds() if first.since else "",
            deadline=first.deadline.rfc3339_seconds() if first.deadline else "",
        )


def _most_frequent(databases: Iterable[str]) -> str:
    counted = Counter(database for database in databases if database)
    return counted.most_common(1)[0][0] if counted else ""
