"""Name the peer of a call for the history: its authenticated user and its address. Pure."""

import functools

from maestropy.server.decide.history import kinds
from maestropy.store import rows
from maestropy.transport import peer_identity


def of_peer(peer: peer_identity.Peer) -> rows.Requester:
    """Return the requester of a gRPC call."""
    return named(peer.identity.user if peer.identity is not None else "", peer.address)


# Cached, because the calls of a connection have the same peer.
@functools.lru_cache(maxsize=1024)
def named(user: str, address: str) -> rows.Requester:
    """Return a requester whose texts are bounded and can be stored."""
    return rows.Requester(user=kinds.short(user), address=kinds.short(peer_identity.host_of(address)))
