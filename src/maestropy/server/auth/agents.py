"""Decide whether the certificate of an agent may act for a consumer.

Pure. A certificate may act for consumer C when

| field | value |
|---|---|
| common name | `C` |
| common name, policy `suffix` | `C-client`, `C-work-agent`, `C-work-agent-client` |
| common name | `system:open-cluster-management:C:<agent>`, as cluster registration issues it |
| an organization | `system:open-cluster-management:C` or `maestro:consumer:C` |

With policy `suffix` the certificate `C-client` may act for the consumers `C` and `C-client`: a CA that serves both
must name one of them by organization. The charts of Go Maestro give all agents one certificate, whatever consumer
they have; so the default is to accept it and to say so in the log.
"""

from enum import Enum
from typing import Final

from maestropy.server.auth.denied import Denied, DeniedCode
from maestropy.transport.peer_identity import ANONYMOUS, Peer, PeerIdentity, Unidentified, read_certificate

OCM: Final = "system:open-cluster-management:"
CONSUMER: Final = "maestro:consumer:"

_SUFFIXES: Final = ("-client", "-work-agent", "-work-agent-client")
_MAX_LOGGED: Final = 10_000
"""An agent with the certificate of all could name any number of consumers."""

# Cluster registration uses these words in the position of a cluster name: every certificate of an agent has the
# organization `…:managed-clusters`, those of add-ons have `…:cluster:<name>:addon:<name>` and `…:addon:<name>`.
_NOT_CLUSTERS: Final = frozenset({"managed-clusters", "cluster", "addon"})


class AgentIdentityPolicy(Enum):
    """Whether the certificate of an agent is compared with the consumer."""

    EXACT = "exact"
    SUFFIX = "suffix"
    """Also common names that are the consumer and one of the suffixes."""

    WARN = "warn"
    """As ANY; the log names certificates that EXACT would reject."""

    ANY = "any"
    """Every agent that passes TLS may act for every consumer, as in the Go server."""


def default_policy(*, client_ca: bool) -> AgentIdentityPolicy:
    """Return the default policy: without client certificates there is nothing to compare."""
    return AgentIdentityPolicy.WARN if client_ca else AgentIdentityPolicy.ANY


def may_act_for(consumer: str, *, identity: PeerIdentity, policy: AgentIdentityPolicy) -> bool:
    """Return whether the identity may send and receive the events of the consumer."""
    if policy in (AgentIdentityPolicy.WARN, AgentIdentityPolicy.ANY):
        return True
    if not consumer:
        return False
    return (
        identity.user == consumer
        or (policy is AgentIdentityPolicy.SUFFIX and _has_suffix(identity.user, consumer=consumer))
        or f"{CONSUMER}{consumer}" in identity.groups
        or _is_registered_as(consumer, identity=identity)
    )


def identify_agent(peer: Peer) -> PeerIdentity:
    """Return the identity in the certificate of the agent, anonymous without one; raises `Denied`."""
    try:
        return read_certificate(peer.certificate) if peer.certificate else ANONYMOUS
    except Unidentified as error:
        raise Denied(DeniedCode.UNAUTHENTICATED, str(error)) from error


def authorize_agent(peer: Peer, *, consumer: str, policy: AgentIdentityPolicy) -> PeerIdentity:
    """Return the identity of the agent if it may act for the consumer; raises `Denied`."""
    identity = identify_agent(peer)
    if may_act_for(consumer, identity=identity, policy=policy):
        return identity
    raise Denied(
        DeniedCode.PERMISSION_DENIED,
        f"the client certificate of {identity.user!r} may not act for consumer {consumer!r}: its common "
        f"name must be {consumer!r} or one of its organizations {CONSUMER + consumer!r}"
        + _suffix_hint(identity, consumer),
    )


class UnnamedConsumers:
    """Remembers which certificates acted for a consumer that they do not name, so that each is logged once."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, str]] = set()

    def is_new(self, identity: PeerIdentity, consumer: str) -> bool:
        """Return whether the log should name this certificate and consumer."""
        pair = (identity.user, consumer)
        if pair in self._logged or len(self._logged) >= _MAX_LOGGED:
            return False
        if may_act_for(consumer, identity=identity, policy=AgentIdentityPolicy.EXACT):
            return False
        self._logged.add(pair)
        return True


def _has_suffix(user: str, *, consumer: str) -> bool:
    return user in {consumer + suffix for suffix in _SUFFIXES}


def _suffix_hint(identity: PeerIdentity, consumer: str) -> str:
    if not _has_suffix(identity.user, consumer=consumer):
        return ""
    return "; the server accepts this name with --grpc-broker-agent-identity=suffix"


def _is_registered_as(cluster: str, *, identity: PeerIdentity) -> bool:
    # A name with a colon could match the agent part of the certificate of another cluster.
    if ":" in cluster or cluster in _NOT_CLUSTERS:
        return False
    prefix = f"{OCM}{cluster}:"
    is_agent_of_cluster = identity.user.startswith(prefix) and identity.user != prefix
    return is_agent_of_cluster or f"{OCM}{cluster}" in identity.groups
