"""Record what clients were told, and compare it with the database and the clusters.

Every test of this folder writes into one ledger what the system promised: acknowledged spec requests, spec requests
whose answer was lost, statuses that were received, specs that agents were sent. At the end `differences` compares it
with what the database and the clusters hold. The numbers I1 to I9 are those of docs/reliability.md. No I/O.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

GONE = None
"""The text of a bundle that is not there."""
Text = str | None
Fate = Literal["taken", "refused", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A promise that was not kept."""

    invariant: str
    bundle: str
    told: str
    found: str

    def __str__(self) -> str:
        return f"{self.invariant} {self.bundle}: told {self.told}, found {self.found}"


@dataclass(slots=True)
class Account:
    """What is known of one bundle."""

    consumer: str
    certain: Text = GONE
    """The text that was acknowledged last; GONE also before the first."""
    possible: set[Text] = field(default_factory=set)
    """What spec requests may have made of it whose answers were lost since."""
    was_created: bool = False
    deletion_was_taken: bool = False

    @property
    def allowed(self) -> set[Text]:
        return {self.certain, *self.possible}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A bundle as the database holds it."""

    version: int
    text: str
    deleting: bool
    sequence: str = ""
    """Of its status; empty when it has none."""
    status_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What there is at the end."""

    rows: Mapping[str, Row]
    objects: Mapping[str, Mapping[str, str]]
    """By consumer: the texts that its cluster holds, by bundle."""
    pending: Mapping[str, int] = field(default_factory=dict)
    """Events that wait, by bundle."""
    last_words: Mapping[str, int] = field(default_factory=dict)
    """How many times the end of a bundle was written down for subscribers."""


class Ledger:
    """The promises of one test."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self.counts: Counter[str] = Counter()
        self.noticed: list[Difference] = []
        """Promises that were broken on the way, whatever holds at the end."""
        self._newest: dict[tuple[str, str], tuple[int, int]] = {}
        self._ended: set[tuple[str, str]] = set()

    def requested(self, bundle: str, consumer: str, text: Text, fate: Fate) -> None:
        """Write down what a client was told about a create or an update to `text`, or a deletion (GONE)."""
        account = self.accounts.setdefault(bundle, Account(consumer))
        kind = "delete" if text is GONE else "update" if account.was_created else "create"
        self.counts[f"{kind} {fate}"] += 1
        if fate == "taken":
            account.was_created = True
            account.certain, account.possible = text, set()
            account.deletion_was_taken |= text is GONE
        elif fate == "unknown":
            account.possible.add(text)

    def heard(self, stream: str, bundle: str, *, version: int, sequence: int = 0) -> None:
        """Write down that a stream carried a state of a bundle; one stream never goes back."""
        self.counts["states heard"] += 1
        newest = self._newest.get((stream, bundle), (-1, -1))
        if (version, sequence) < newest:
            self.noticed.append(
                Difference(
                    invariant="I4", bundle=bundle, told=f"{newest} on {stream}", found=f"{(version, sequence)} after it"
                )
            )
        self._newest[stream, bundle] = max(newest, (version, sequence))

    def ended(self, who: str, bundle: str) -> None:
        """Write down that an agent told the end of a bundle, and the server took it."""
        self._ended.add((who, bundle))

    def appeared(self, who: str, bundle: str) -> None:
        """Write down that a bundle's object was made; not after its end."""
        if (who, bundle) in self._ended:
            self.noticed.append(
                Difference(invariant="I3", bundle=bundle, told=f"deleted from {who}", found="made once more")
            )

    @property
    def taken(self) -> int:
        """How many creations were acknowledged."""
        return self.counts["create taken"]

    def unsettled(self) -> list[str]:
        """Return the bundles of which nobody knows what they should be."""
        return [bundle for bundle, account in self.accounts.items() if account.possible - {account.certain}]

    def differences(self, world: World) -> list[Difference]:
        """Return every promise that the world does not keep."""
        return [
            *self.noticed,
            *self._lost(world.rows),
            *self._not_converged(world),
            *self._queued(world.pending),
            *self._ended_twice(world.last_words),
        ]

    def _lost(self, rows: Mapping[str, Row]) -> Iterable[Difference]:
        for bundle, account in self.accounts.items():
            row = rows.get(bundle)
            found = GONE if row is None or row.deleting else row.text
            if found not in account.allowed:
                yield Difference(
                    invariant="I3" if account.deletion_was_taken else "I1",
                    bundle=bundle,
                    told=" or ".join(sorted(map(str, account.allowed))),
                    found=f"{found} in the database",
                )
        for bundle in rows.keys() - self.accounts.keys():
            yield Difference(invariant="I1", bundle=bundle, told="nothing", found="a row")

    def _not_converged(self, world: World) -> Iterable[Difference]:
        held = {(consumer, each): text for consumer, found in world.objects.items() for each, text in found.items()}
        for bundle, row in world.rows.items():
            account = self.accounts.get(bundle)
            if account is None or account.consumer not in world.objects:
                continue
            found = held.pop((account.consumer, bundle), GONE)
            wanted = GONE if row.deleting else row.text
            if found != wanted:
                yield Difference(invariant="I2", bundle=bundle, told=str(wanted), found=f"{found} on the cluster")
            if row.deleting:
                yield Difference(invariant="I3", bundle=bundle, told="deleted", found="a row that is still deleting")
            if row.status_version > row.version:
                yield Difference(
                    invariant="I4", bundle=bundle, told=f"version {row.version}", found=f"status {row.status_version}"
                )
        for consumer, bundle in held:
            yield Difference(invariant="I3", bundle=bundle, told="no such bundle", found=f"an object on {consumer}")

    def _queued(self, pending: Mapping[str, int]) -> Iterable[Difference]:
        for bundle, count in pending.items():
            yield Difference(invariant="I5", bundle=bundle, told="everything delivered", found=f"{count} events wait")

    def _ended_twice(self, last_words: Mapping[str, int]) -> Iterable[Difference]:
        for bundle, count in last_words.items():
            if count > 1:
                yield Difference(invariant="I3", bundle=bundle, told="deleted", found=f"its end told {count} times")


def untold(rows: Mapping[str, Row], heard: Mapping[str, str]) -> list[Difference]:
    """Return the bundles whose latest status a subscriber that listens and resyncs has not got (I7)."""
    return [
        Difference(invariant="I7", bundle=bundle, told=f"status {row.sequence}", found=heard.get(bundle, "nothing"))
        for bundle, row in rows.items()
        if row.sequence and heard.get(bundle) != row.sequence
    ]
