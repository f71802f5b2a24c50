"""Which lease do several agents of one cluster compete for, and how long does everything about it take?

The answer comes from the flags and from the file of `--config`, of which only `leaderElection` counts: `disable`,
`namespace`, `name`, `leaseDuration`, `renewDeadline` and `retryPeriod`, as in the Go agent. Competing for it is
`maestropy.kube.leases`' half.

| namespace of the lease | from |
|---|---|
| first | `leaderElection.namespace` |
| then | `--namespace` |
| then | the namespace of the pod, or of the kubeconfig's context |
| at last | `default` |
"""

from dataclasses import dataclass, replace
from pathlib import Path

from maestropy.agent.settings import AgentSettings
from maestropy.flags import SettingsError, document
from maestropy.kube.address import ClusterAddress
from maestropy.kube.leases import Terms

LEASE = "maestro-agent-lock"
_SECTION = "leaderElection"
_KEYS = frozenset({"disable", "namespace", "name", "leaseDuration", "renewDeadline", "retryPeriod"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """How the agents of one cluster agree on who acts."""

    terms: Terms | None
    """None if this one acts without asking."""
    notes: tuple[str, ...] = ()
    """What an operator should know, one sentence each; for the log."""


def election(settings: AgentSettings, address: ClusterAddress, *, identity: str) -> Election:
    """Return the terms under which this agent, `identity`, may act."""
    section, notes = _read(settings.process.config)
    if settings.cluster.disable_leader_election or section.switch("disable"):
        return Election(terms=None, notes=notes)
    usual = Terms(
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
    return Election(terms=terms, notes=notes)


def _read(path: Path | None) -> tuple[document.Section, tuple[str, ...]]:
    if path is None:
        return document.Section({}, origin="--config"), ()
    whole = document.read(path, flag="--config", example="leaderElection: {retryPeriod: 26s}")
    section = whole.section(_SECTION)
    # Deployments pass whole files of OpenShift's operators; what else is in them is not worth a word each.
    unknown = section.unknown(_KEYS)
    return section, tuple(f"--config={path}: {_SECTION}.{name} is not known and is ignored" for name in unknown)


def _check(terms: Terms) -> None:
    if not 0 < terms.retry_seconds < terms.renew_seconds < terms.lease_seconds:
        raise SettingsError(
            f"--config: {_SECTION} needs retryPeriod < renewDeadline < leaseDuration, each longer than nothing; "
            f"they are {terms.retry_seconds:g}s, {terms.renew_seconds:g}s and {terms.lease_seconds:g}s"
        )
