"""Create a TLS context with a new self-signed certificate, for clients that do not verify the server.

TLS then only encrypts the tokens that clients send. The key is never written to disk, so that it also works in a
container with a read-only file system.
"""

import datetime as dt
import os
import ssl
import tempfile
from collections.abc import Sequence
from typing import BinaryIO

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# Longer than any process runs; each process creates its own certificate.
_VALID = dt.timedelta(days=3650)
# The clocks of the server and its clients may differ.
_BACKDATED = dt.timedelta(days=1)


def context(names: Sequence[str], *, now: dt.datetime) -> ssl.SSLContext:
    """Return a server context with a new certificate for these host names."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    with _memory_file() as file:
        file.write(_key_and_certificate(names, now=now))
        file.flush()
        # The ssl module loads a pair only from a path.
        path = file.name if isinstance(file.name, str) else f"/proc/self/fd/{file.name}"
        tls.load_cert_chain(path)
    return tls


def _memory_file() -> BinaryIO:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("certificate", os.MFD_CLOEXEC), "wb")
    return tempfile.NamedTemporaryFile()  # type: ignore[return-value]  # a file in everything but its declared type


def _key_and_certificate(names: Sequence[str], *, now: dt.datetime) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)
