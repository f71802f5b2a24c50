"""Build the TLS context of the next connection, again when certificate files change."""

import os
import ssl
import tempfile
from pathlib import Path

from maestropy.kube.config.address import ClusterAddress, Pem
from maestropy.kube.config.credentials import RequestAuth
from maestropy.kube.errors import BadConfig

_Stamp = tuple[object, ...]


class TlsContexts:
    """Caches the newest context; open connections keep theirs."""

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._stamp: _Stamp | None = None
        self._context: ssl.SSLContext | None = None

    def current(self, auth: RequestAuth) -> ssl.SSLContext | None:
        """Return the context to connect with, None for plain HTTP."""
        if self._address.server.startswith("http://"):
            return None
        stamp = tuple(_stamp(pem) for pem in (self._address.ca, auth.certificate, auth.key))
        if self._context is None or stamp != self._stamp:
            try:
                self._context = _build(self._address, auth)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                # A rotation writes several files; between two of them the last valid context is used.
                if self._context is None:
                    raise BadConfig(f"{self._address.origin}: the certificates cannot be used: {error}") from error
            self._stamp = stamp
        return self._context


def _build(address: ClusterAddress, auth: RequestAuth) -> ssl.SSLContext:
    # The minimum of client-go; the default of Python depends on its build.
    context = ssl.create_default_context(cadata=_text(address.ca) if address.ca else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Many cluster CAs lack the key identifiers that strict verification requires.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if address.skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if auth.certificate is not None and auth.key is not None:
        _load_pair(context, auth.certificate, auth.key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """Load a certificate and its key. OpenSSL takes paths only, so data is written to a private directory."""
    with tempfile.TemporaryDirectory(prefix="maestro-") as directory:
        certificate_path = certificate.file or _write_private(Path(directory) / "tls.crt", certificate.data)
        key_path = key.file or _write_private(Path(directory) / "tls.key", key.data)
        # The empty password keeps OpenSSL from prompting.
        context.load_cert_chain(certificate_path, key_path, password="")


def _write_private(path: Path, data: bytes) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path


def _text(pem: Pem) -> str:
    data = pem.file.read_bytes() if pem.file else pem.data
    # CA bundles have comments in any encoding; certificates are ASCII.
    return data.decode("ascii", errors="replace").replace("\ufffd", "?")


def _stamp(pem: Pem | None) -> _Stamp:
    if pem is None or pem.file is None:
        return (pem.data,) if pem else ()
    try:
        stat = pem.file.stat()
    except OSError:
        return (None,)
    return stat.st_ino, stat.st_mtime_ns, stat.st_size
