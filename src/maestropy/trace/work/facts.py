"""Facts about one work that several verdicts rest on, computed once. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from maestropy.trace.work import relations
from maestropy.trace.work.model import Gathered, Live, Sight
from maestropy.trace.work.relations import Line

UNDELIVERED_AFTER = timedelta(seconds=600)
"""The server's --undelivered-resource-threshold."""
STUCK_AFTER = timedelta(hours=1)
"""The server's --stale-delete-event-threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody told us to expect and to compare."""

    broker_host: str = ""
    agent_namespace: str = "maestro-agent"
    compare: bool = False
    """Whether live objects are compared with their manifests."""


PLAIN = Wish()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One work, joined and dated."""

    gathered: Gathered
    lines: tuple[Line, ...]
    now: datetime
    wish: Wish

    @property
    def broker_host(self) -> str:
        """The broker whose applied works are expected; empty if nobody said."""
        return self.wish.broker_host

    @property
    def agent_namespace(self) -> str:
        """Where agents run."""
        return self.wish.agent_namespace

    @property
    def consumer(self) -> str:
        """Whose cluster it is for."""
        return self.gathered.row.consumer if self.gathered.row else ""

    @property
    def concerned(self) -> tuple[Sight, ...]:
        """The clusters that may be the consumer's; without a row any may be."""
        return tuple(
            each for each in self.gathered.clusters if not self.consumer or each.consumer in {"", self.consumer}
        )

    @property
    def its_clusters(self) -> tuple[Sight, ...]:
        """Those of them that could be seen."""
        return tuple(each for each in self.concerned if each.is_clear)

    @property
    def cluster_is_dark(self) -> bool:
        """Whether the consumer's cluster may be one that could not be seen, or none was asked."""
        return not any(each.is_clear for each in self.gathered.clusters)

    @property
    def terminating(self) -> tuple[Live, ...]:
        """Objects of the work that somebody deletes."""
        return tuple(live for line in self.lines for live in line.lives if live.deleting)

    @property
    def remaining(self) -> tuple[Live, ...]:
        """Objects of the work that are still there."""
        return tuple(live for line in self.lines for live in line.lives if live.state == "present")

    def age(self, moment: datetime | None) -> timedelta:
        """Return how long ago something was; nothing was long ago."""
        return self.now - moment if moment else timedelta.max


def establish(gathered: Gathered, *, now: datetime, wish: Wish = PLAIN) -> Facts:
    """Join the sides of a work."""
    return Facts(gathered=gathered, lines=relations.lines(gathered), now=now, wish=wish)
