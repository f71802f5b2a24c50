"""Reject client certificates that have expired since their handshake.

Pure. gRPC checks the validity of a certificate in the handshake only, and a subscription stays open for days.
"""

from datetime import datetime

from maestropy.server.auth.denied import Denied, DeniedCode
from maestropy.transport.peer_identity import Peer, Unidentified, certificate_expiry

_EXPIRED = "the client certificate has expired; connect with a new one"


def check_certificate(peer: Peer, *, now: datetime) -> None:
    """Raise `Denied` if the peer has a certificate that is no longer valid."""
    if peer.certificate is None:
        return
    try:
        expires_at = certificate_expiry(peer.certificate)
    except Unidentified as error:
        raise Denied(DeniedCode.UNAUTHENTICATED, str(error)) from error
    if now >= expires_at:
        raise Denied(DeniedCode.UNAUTHENTICATED, _EXPIRED)
