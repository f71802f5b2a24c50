"""Decide whether an agent may speak for a consumer on the agent broker.

Answers: does this certificate belong to that cluster? Pure. A certificate speaks for consumer C when

| field | value |
|---|---|
| common name | `C`, `C-client`, `C-work-agent`, `C-work-agent-client` |
| common name | `system:open-cluster-management:C:<agent>`, as cluster registration issues it |
| an organization | `system:open-cluster-management:C` or `maestro:consumer:C` |

The suffixes make `C-client` speak for consumers `C` and `C-client` alike: a CA that serves both has to
name one of them by organization.
"""

from enum import Enum
from typing import Final

from maestropy.server.auth.denied import Code, Denied
from maestropy.transport.identity import ANONYMOUS, Identity, Peer, Unidentified, read_certificate

OCM: Final = "system:open-cluster-management:"
CONSUMER: Final = "maestro:consumer:"

_SUFFIXES: Final = ("", "-client", "-work-agent", "-work-agent-client")

# Cluster registration uses these words where a cluster's name could stand: every agent's certificate
# carries the organization `…:managed-clusters`, add-ons carry `…:cluster:<name>:addon:<name>` and `…:addon:<name>`.
_NOT_CLUSTERS: Final = frozenset({"managed-clusters", "cluster", "addon"})


class AgentIdentityPolicy(Enum):
    """How closely an agent's certificate is compared with the consumer it speaks for."""

    STRICT = "strict"
    ANY = "any"
    """Whoever passes TLS may speak for every consumer, as in the Go server."""


def default_policy(*, client_ca: bool) -> AgentIdentityPolicy:
    """Return the policy to use when none is set: without client certificates there is nothing to compare."""
    return AgentIdentityPolicy.STRICT if client_ca else AgentIdentityPolicy.ANY


def may_speak_for(consumer: str, *, identity: Identity, policy: AgentIdentityPolicy) -> bool:
    """Return whether the identity's holder may send and receive the consumer's events."""
    if policy is AgentIdentityPolicy.ANY:
        return True
    if not consumer:
        return False
    return (
        identity.user in {consumer + suffix for suffix in _SUFFIXES}
        or f"{CONSUMER}{consumer}" in identity.groups
        or _is_registered_as(consumer, identity=identity)
    )


def admit_agent(peer: Peer, *, consumer: str, policy: AgentIdentityPolicy) -> Identity:
    """Return who the agent is when it may speak for the consumer, or raise `Denied`."""
    try:
        identity = read_certificate(peer.certificate) if peer.certificate else ANONYMOUS
    except Unidentified as error:
        raise Denied(Code.UNAUTHENTICATED, str(error)) from error
    if may_speak_for(consumer, identity=identity, policy=policy):
        return identity
    raise Denied(
        Code.PERMISSION_DENIED,
        f"the client certificate of {identity.user!r} may not speak for consumer {consumer!r}: its common "
        f"name must be {consumer!r} or one of its organizations {CONSUMER + consumer!r}",
    )


def _is_registered_as(cluster: str, *, identity: Identity) -> bool:
    # A name with a colon could end inside the agent part of another cluster's certificate.
    if ":" in cluster or cluster in _NOT_CLUSTERS:
        return False
    prefix = f"{OCM}{cluster}:"
    is_its_agent = identity.user.startswith(prefix) and identity.user != prefix
    return is_its_agent or f"{OCM}{cluster}" in identity.groups
