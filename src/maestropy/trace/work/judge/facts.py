"""Compute facts about one work that several verdicts use. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from maestropy.trace.work.judge import manifest_rows
from maestropy.trace.work.judge.manifest_rows import ManifestRow
from maestropy.trace.work.model import AccessStatus, LiveObject, WorkData

UNDELIVERED_AFTER = timedelta(seconds=600)
"""The server's --undelivered-resource-threshold."""
STUCK_AFTER = timedelta(hours=1)
"""The server's --stale-delete-event-threshold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """Options that verdicts depend on."""

    broker_host: str = ""
    agent_namespace: str = "maestro-agent"
    compare: bool = False
    """Whether live objects are compared with their manifests."""
    access_flags: str = ""
    """The flags of `maestro trace work` that reach the same systems."""
    logs: str = ""
    """The folder with the log files of server and agents, if they run on this computer; empty if they run in pods."""


NO_EXPECTATIONS = Expectations()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One work, joined and dated."""

    data: WorkData
    manifest_rows: tuple[ManifestRow, ...]
    now: datetime
    expectations: Expectations

    @property
    def consumer(self) -> str:
        return self.data.row.consumer if self.data.row else ""

    @property
    def candidate_clusters(self) -> tuple[AccessStatus, ...]:
        """The clusters that may be the consumer's; without a row any may be."""
        return tuple(
            cluster for cluster in self.data.clusters if not self.consumer or cluster.consumer in {"", self.consumer}
        )

    @property
    def readable_clusters(self) -> tuple[AccessStatus, ...]:
        """Those of them that could be seen."""
        return tuple(cluster for cluster in self.candidate_clusters if cluster.is_readable)

    @property
    def no_cluster_readable(self) -> bool:
        """Whether no cluster could be read, or none was given."""
        return not any(cluster.is_readable for cluster in self.data.clusters)

    @property
    def terminating(self) -> tuple[LiveObject, ...]:
        return tuple(live for manifest_row in self.manifest_rows for live in manifest_row.live_objects if live.deleting)

    @property
    def remaining(self) -> tuple[LiveObject, ...]:
        return tuple(
            live for manifest_row in self.manifest_rows for live in manifest_row.live_objects if live.state == "present"
        )

    def age(self, moment: datetime | None) -> timedelta:
        """Return how long ago something was; nothing was long ago."""
        return self.now - moment if moment else timedelta.max


def compute(data: WorkData, *, now: datetime, expectations: Expectations = NO_EXPECTATIONS) -> Facts:
    """Join the data of a work."""
    return Facts(data=data, manifest_rows=manifest_rows.rows_of(data), now=now, expectations=expectations)
