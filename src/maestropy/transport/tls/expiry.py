"""Read when the configured certificates of a process expire.

The files are read for every measurement, because certificates are rotated while a process runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography import x509

from maestropy.aio import checks
from maestropy.transport.tls.certificates import Certificates

MEASURE_EVERY_SECONDS: Final = 30.0
"""How often a process should read its certificates."""

SOON_SECONDS: Final = 14 * 86400
"""A certificate that expires earlier should have been rotated."""

UNREADABLE: Final = 0.0
"""The expiry of a certificate that cannot be read: it counts as expired, since the next start would fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCertificate:
    """A PEM file, or PEM data, that a process uses."""

    name: str
    """The name of the setting, as the value of a label."""
    file: Path | None = None
    data: bytes | None = field(default=None, repr=False)
    is_bundle: bool = False
    """Whether it holds certificate authorities, of which one that is valid is enough."""

    def expiry(self) -> float:
        """Return when the certificate expires, in seconds since 1970; for a bundle, when its last one does."""
        try:
            pem = self.data if self.data else self.file.read_bytes() if self.file else b""
            expiries = [
                certificate.not_valid_after_utc.timestamp() for certificate in x509.load_pem_x509_certificates(pem)
            ]
        except (OSError, ValueError):
            return UNREADABLE
        # The first certificate of a chain is that of the process.
        return max(expiries) if self.is_bundle else expiries[0]


def of_connection(certificates: Certificates, *, prefix: str) -> list[WatchedCertificate]:
    """Return the certificates of a client connection."""
    watched = []
    if certificates.has_ca:
        watched.append(
            WatchedCertificate(
                name=f"{prefix}-ca", file=certificates.ca_file, data=certificates.ca_data, is_bundle=True
            )
        )
    if certificates.has_client_cert:
        watched.append(
            WatchedCertificate(
                name=f"{prefix}-client", file=certificates.client_cert_file, data=certificates.client_cert_data
            )
        )
    return watched


def measure(watched: Iterable[WatchedCertificate], *, report: Callable[[str, float], None]) -> None:
    """Report the expiry of each certificate."""
    for certificate in watched:
        report(certificate.name, certificate.expiry())


def checked(watched: Iterable[WatchedCertificate], *, now: float) -> list[checks.Check]:
    """Check the dates of certificates; never a failure: open connections go on, and a rotated file is used at once."""
    return [_check(certificate, now=now) for certificate in watched]


def _check(certificate: WatchedCertificate, *, now: float) -> checks.Check:
    name, expiry = f"certificate {certificate.name}", certificate.expiry()
    if expiry == UNREADABLE:
        return checks.warning(name, "cannot be read", remedy="restore the file, with a PEM block BEGIN CERTIFICATE")
    day = datetime.fromtimestamp(expiry, tz=UTC).date()
    if expiry <= now:
        return checks.warning(name, f"has expired on {day}", remedy="rotate it; a restart is not needed")
    if expiry - now < SOON_SECONDS:
        return checks.warning(name, f"expires on {day}", remedy="rotate it; a restart is not needed")
    return checks.ok(name, f"valid until {day}")
