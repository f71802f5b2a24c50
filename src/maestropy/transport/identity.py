"""Read who a peer says it is from what the handshake and the request carry.

Answers: given a verified client certificate or an `authorization` value, which user and groups does
it name? Pure. It checks no signature: the TLS handshake has verified the certificate before, and
whoever issued a token has to be asked by someone else.
"""

import functools
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID


class Unidentified(Exception):
    """The peer's certificate does not say who it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user and the groups it belongs to."""

    user: str
    groups: tuple[str, ...] = ()


ANONYMOUS: Final = Identity(user="")
"""Nobody was asked who they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What one call tells about the other end."""

    certificate: bytes | None = None
    """The client's leaf certificate as PEM; present only after the handshake has verified it."""

    authorization: str | None = field(default=None, repr=False)
    """The `authorization` metadata as sent. A secret: it is left out of the printed form."""


def read_peer(auth_context: Mapping[str, Iterable[bytes]], *, metadata: Iterable[tuple[str, str | bytes]]) -> Peer:
    """Pick the two facts that matter out of gRPC's authentication context and request metadata."""
    certificate = next(iter(auth_context.get("x509_pem_cert", ())), None)
    authorization = next((value for name, value in metadata if name.lower() == "authorization"), None)
    if isinstance(authorization, bytes):
        authorization = authorization.decode("utf-8", "replace")
    return Peer(certificate=certificate, authorization=authorization)


# One certificate speaks for a connection's whole life, and parsing costs more than most checks.
@functools.lru_cache(maxsize=1024)
def read_certificate(pem: bytes) -> Identity:
    """Return the certificate's common name as user and its organizations as groups; either may be empty."""
    with warnings.catch_warnings():
        # Kubernetes issues common names longer than the 64 bytes of the standard, which is no news to anyone.
        warnings.simplefilter("ignore")
        try:
            subject = x509.load_pem_x509_certificate(pem).subject
        except ValueError as error:
            raise Unidentified("could not verify peer certificate") from error
    names = _values(subject, NameOID.COMMON_NAME)
    return Identity(
        # With several common names the last one counts, as it does for Kubernetes and every Go program.
        user=names[-1] if names else "",
        groups=_values(subject, NameOID.ORGANIZATION_NAME),
    )


def identify(peer: Peer) -> Identity:
    """Return the user and groups of the peer's certificate, or refuse one that lacks either."""
    if peer.certificate is None:
        raise Unidentified("could not verify peer certificate")
    found = read_certificate(peer.certificate)
    if not found.user:
        raise Unidentified("could not find user in peer certificate")
    if not found.groups:
        raise Unidentified("could not find group in peer certificate")
    return found


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of `Bearer <token>`, or None when there is none."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(each.value for each in subject.get_attributes_for_oid(oid) if isinstance(each.value, str))
