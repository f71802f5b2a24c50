"""Decide the lease of the leader election: its namespace, name and durations.

They come from the flags and from the file of `--config`, of which only `leaderElection` counts: `disable`,
`namespace`, `name`, `leaseDuration`, `renewDeadline` and `retryPeriod`, as in the Go agent. `maestropy.kube.leases`
runs the election.

| namespace of the lease | from |
|---|---|
| first | `leaderElection.namespace` |
| then | `--namespace` |
| then | the namespace of the pod, or of the kubeconfig's context |
| otherwise | `default` |
"""

from dataclasses import dataclass, replace
from pathlib import Path

from maestropy.agent.decide import agent_records
from maestropy.agent.settings import AgentSettings
from maestropy.flags import SettingsError, document
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.leases import LeaderElectionSettings

LEASE = agent_records.LEASE
_SECTION = "leaderElection"
_KEYS = frozenset({"disable", "namespace", "name", "leaseDuration", "renewDeadline", "retryPeriod"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """How the agents of one cluster elect a leader."""

    terms: LeaderElectionSettings | None
    """None without leader election."""
    notes: tuple[str, ...] = ()
    """Warnings for the operator, one sentence each; for the log."""


def election(settings: AgentSettings, address: ClusterAddress, *, identity: str) -> LeaderElection:
    """Return the lease terms of this agent, `identity`."""
    section, notes = _read(settings.process.config)
    if settings.cluster.disable_leader_election or section.switch("disable"):
        return LeaderElection(terms=None, notes=notes)
    usual = LeaderElectionSettings(
        namespace=section.text("namespace") or settings.cluster.namespace or address.namespace or "default",
        name=section.text("name") or LEASE,
        identity=identity,
    )
    terms = replace(
        usual,
        lease_seconds=section.seconds("leaseDuration", default=usual.lease_seconds),
        renew_seconds=section.seconds("renewDeadline", default=usual.renew_seconds),
        retry_seconds=section.seconds("retryPeriod", default=usual.retry_seconds),
    )
    _check(terms)
    return LeaderElection(terms=terms, notes=notes)


def _read(path: Path | None) -> tuple[document.Section, tuple[str, ...]]:
    if path is None:
        return document.Section({}, origin="--config"), ()
    whole = document.read(path, flag="--config", example="leaderElection: {retryPeriod: 26s}")
    section = whole.section(_SECTION)
    # Deployments pass whole OpenShift operator files; their other sections are ignored without a warning.
    unknown = section.unknown(_KEYS)
    return section, tuple(f"--config={path}: {_SECTION}.{name} is not known and is ignored" for name in unknown)


def _check(terms: LeaderElectionSettings) -> None:
    if not 0 < terms.retry_seconds < terms.renew_seconds < terms.lease_seconds:
        raise SettingsError(
            f"--config: {_SECTION} needs retryPeriod < renewDeadline < leaseDuration, each longer than zero; "
            f"they are {terms.retry_seconds:g}s, {terms.renew_seconds:g}s and {terms.lease_seconds:g}s"
        )
