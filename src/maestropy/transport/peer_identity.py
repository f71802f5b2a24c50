"""Read user and groups of a peer from its client certificate, and its bearer token from the request.

Pure. No signature is checked here: the TLS handshake has verified the certificate, and `server.auth` has tokens
reviewed by the Kubernetes API.
"""

import functools
import ipaddress
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import unquote

from cryptography import x509
from cryptography.x509.oid import NameOID


class Unidentified(Exception):
    """The certificate of the peer names no user or no group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerIdentity:
    """A user and its groups."""

    user: str
    groups: tuple[str, ...] = ()


_READ_METADATA: Final = frozenset(("authorization", "traceparent", "maestro-check"))

ANONYMOUS: Final = PeerIdentity(user="")
"""The identity of every peer when authentication is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The credentials of the peer of one call."""

    certificate: bytes | None = None
    """The client's leaf certificate as PEM; present only if the handshake has verified it."""

    authorization: str | None = field(default=None, repr=False)
    """The `authorization` metadata as sent. A secret, so it is not part of the repr."""

    address: str = ""
    """The IP address, or the /64 network of an IPv6 address, because one host has all of it."""

    trace_parent: str = ""
    """The `traceparent` metadata: the span of the caller."""

    is_check: bool = False
    """Whether the call only asks if an agent would be accepted (`transport.grpc.check_calls`)."""

    identity: PeerIdentity | None = None
    """The authenticated identity; None before the authentication."""


def read_peer(
    auth_context: Mapping[str, Iterable[bytes]],
    *,
    metadata: Iterable[tuple[str, str | bytes]],
    address: str = "",
) -> Peer:
    """Read the credentials from the authentication context, the metadata and the peer address of a gRPC call."""
    certificate = next(iter(auth_context.get("x509_pem_cert", ())), None)
    sent: dict[str, str] = {}
    for name, value in metadata:
        if (lower := name.lower()) in _READ_METADATA:
            sent.setdefault(lower, value.decode("utf-8", "replace") if isinstance(value, bytes) else value)
    return Peer(
        certificate=certificate,
        authorization=sent.get("authorization"),
        address=host_of(address),
        trace_parent=sent.get("traceparent", ""),
        is_check="maestro-check" in sent,
    )


def host_of(address: str) -> str:
    """Return the host of a gRPC peer address such as `ipv4:10.0.0.1:4711`, or of a bare IP address."""
    host = unquote(address)
    if host.startswith(("ipv4:", "ipv6:")):
        host = host[len("ipv4:") :].rpartition(":")[0].strip("[]")
    return _canonical_host(host)


# Cached without the port: thousands of connections may come from a few hosts.
@functools.lru_cache(maxsize=4096)
def _canonical_host(host: str) -> str:
    try:
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host[:256]
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is None and not ip.is_loopback:
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip.ipv4_mapped or ip if isinstance(ip, ipaddress.IPv6Address) else ip)


# Cached, because a connection always has the same certificate and parsing is expensive.
@functools.lru_cache(maxsize=1024)
def read_certificate(pem: bytes) -> PeerIdentity:
    """Return the certificate's common name as user and its organizations as groups; either may be empty."""
    with warnings.catch_warnings():
        # Kubernetes issues common names that are longer than the 64 bytes of the standard.
        warnings.simplefilter("ignore")
        try:
            subject = x509.load_pem_x509_certificate(pem).subject
        except ValueError as error:
            raise Unidentified("could not verify peer certificate") from error
    names = _values(subject, NameOID.COMMON_NAME)
    return PeerIdentity(
        # With several common names the last one counts, as in Kubernetes and every Go program.
        user=names[-1] if names else "",
        groups=_values(subject, NameOID.ORGANIZATION_NAME),
    )


@functools.lru_cache(maxsize=1024)
def certificate_expiry(pem: bytes) -> datetime:
    """Return when the certificate expires."""
    try:
        return x509.load_pem_x509_certificate(pem).not_valid_after_utc
    except ValueError as error:
        raise Unidentified("could not verify peer certificate") from error


def identify(peer: Peer) -> PeerIdentity:
    """Return user and groups of the peer's certificate; raise `Unidentified` if either is missing."""
    if peer.certificate is None:
        raise Unidentified("could not verify peer certificate")
    identity = read_certificate(peer.certificate)
    if not identity.user:
        raise Unidentified("could not find user in peer certificate")
    if not identity.groups:
        raise Unidentified("could not find group in peer certificate")
    return identity


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of `Bearer <token>`, or None when there is none."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _values(subject: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(
        attribute.value for attribute in subject.get_attributes_for_oid(oid) if isinstance(attribute.value, str)
    )
