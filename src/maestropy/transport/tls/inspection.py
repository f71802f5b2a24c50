"""Inspect certificates before they are used: presence, dates, key and names, and a handshake with a server.

Every function returns results and never raises for a bad file or an unreachable host.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from maestropy.aio import checks
from maestropy.transport.tls import credentials, expiry
from maestropy.transport.tls.certificates import Certificates

_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_ROTATE = "issue a new certificate; a running process uses it at once"


def listener(files: credentials.TlsFiles, *, hostname: str, now: datetime) -> list[checks.Check]:
    """Check the files of a listener; `hostname` is the name that it is bound to, empty for all addresses."""
    name = files.flags.cert
    try:
        leaf = credentials.verify(files)
    except credentials.TlsError as error:
        return [checks.failed(name, str(error), remedy="correct the file or the flag")]
    found = [_dates(name, leaf, now=now), _names(name, leaf, hostname=hostname)]
    if files.client_ca is not None:
        watched = expiry.WatchedCertificate(name=files.flags.client_ca, file=files.client_ca, is_bundle=True)
        found.append(_authority(files.flags.client_ca, watched, now=now))
    return found


def connection(certificates: Certificates, *, setting: str, now: datetime) -> list[checks.Check]:
    """Check the certificates of a client connection; `setting` names the file that configures them."""
    found = []
    if certificates.has_ca:
        watched = expiry.WatchedCertificate(
            name="caFile", file=certificates.ca_file, data=certificates.ca_data, is_bundle=True
        )
        found.append(_authority(f"{setting} caFile", watched, now=now))
    if certificates.has_client_cert:
        found.append(_client_pair(certificates, name=f"{setting} clientCertFile", now=now))
    return found


async def handshake(host: str, port: int, context: ssl.SSLContext, *, name: str) -> checks.Check:
    """Connect to a server with TLS, and say why the handshake fails."""
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        remedy = "give the authority that issued the server's certificate, and the host name that it is issued for"
        if error.verify_code == _EXPIRED:
            remedy = "renew the certificate of the server, or correct the clock of this host"
        return checks.failed(
            name, f"the certificate of {host}:{port} is rejected: {error.verify_message}", remedy=remedy
        )
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        return checks.failed(name, f"the TLS handshake with {host}:{port} fails: {reason}")
    except OSError as error:
        return checks.failed(name, f"{host}:{port} cannot be reached: {_reason(error)}")
    # A gRPC server that has not had a request need not answer the end of TLS, so nobody waits for that.
    writer.transport.abort()
    return checks.ok(name, f"the certificate of {host}:{port} is valid for this name")


async def reach(host: str, port: int, *, name: str) -> checks.Check:
    """Connect to a server without TLS."""
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        return checks.failed(
            name, f"{host}:{port} cannot be reached: {_reason(error)}", remedy="check address and network"
        )
    writer.close()
    return checks.ok(name, f"{host}:{port} accepts connections")


def _reason(error: OSError) -> str:
    # asyncio writes the address into the text; the errors of name resolution have numbers of their own.
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)


def _client_pair(certificates: Certificates, *, name: str, now: datetime) -> checks.Check:
    try:
        pem = _pem(certificates.client_cert_data, certificates.client_cert_file)
        key = _pem(certificates.client_key_data, certificates.client_key_file)
        leaf = x509.load_pem_x509_certificates(pem)[0]
        is_pair = leaf.public_key() == serialization.load_pem_private_key(key, password=None).public_key()
    except OSError as error:
        return checks.failed(name, f"{error.filename} cannot be read: {error.strerror}", remedy="mount the secret")
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return checks.failed(name, "it is no PEM certificate with an unencrypted PEM key", remedy="correct the files")
    if not is_pair:
        return checks.failed(
            name, "the key does not belong to the certificate", remedy="give the key of this certificate"
        )
    return _dates(name, leaf, now=now)


def _pem(data: bytes | None, file: Path | None) -> bytes:
    return data if data else file.read_bytes() if file else b""


def _dates(name: str, leaf: x509.Certificate, *, now: datetime) -> checks.Check:
    since, until = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if until <= now:
        return checks.failed(name, f"has expired on {until.date()}", remedy=_ROTATE)
    if since > now:
        remedy = "wait until then, or correct the clock of this host"
        return checks.failed(name, f"is not valid before {since:%Y-%m-%d %H:%M} UTC", remedy=remedy)
    if (until - now).total_seconds() < expiry.SOON_SECONDS:
        return checks.warning(name, f"expires on {until.date()}", remedy=_ROTATE)
    return checks.ok(name, f"valid until {until.date()}, and the key belongs to it")


def _authority(name: str, watched: expiry.WatchedCertificate, *, now: datetime) -> checks.Check:
    ends = watched.expiry()
    if ends == expiry.UNREADABLE:
        remedy = "mount the secret; the file needs a block BEGIN CERTIFICATE"
        return checks.failed(name, "cannot be read, or holds no PEM certificate", remedy=remedy)
    day = datetime.fromtimestamp(ends, tz=now.tzinfo).date()
    if ends <= now.timestamp():
        return checks.failed(name, f"every authority in it has expired, the last on {day}", remedy=_ROTATE)
    return checks.ok(name, f"an authority in it is valid until {day}")


def _names(flag: str, leaf: x509.Certificate, *, hostname: str) -> checks.Check:
    name, issued = f"{flag} names", _issued_names(leaf)
    shown = ", ".join(issued) or "none"
    if not issued:
        remedy = "issue it with subject alternative names: clients ignore the common name"
        return checks.failed(name, "the certificate has no subject alternative name", remedy=remedy)
    if not hostname or hostname in _EVERYWHERE:
        return checks.not_seen(name, f"issued for {shown}; the name that clients use is not known here")
    if any(_matches(pattern, hostname) for pattern in issued):
        return checks.ok(name, f"issued for {shown}")
    return checks.warning(
        name,
        f"issued for {shown}, not for --server-hostname={hostname}",
        remedy="right if clients use another name; otherwise issue it for this one",
    )


def _issued_names(leaf: x509.Certificate) -> Sequence[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]


def _matches(pattern: str, hostname: str) -> bool:
    if pattern.startswith("*."):
        return hostname.partition(".")[2].lower() == pattern[2:].lower()
    return pattern.lower() == hostname.lower()
